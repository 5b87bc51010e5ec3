package extract

import "testing"

// Each case gives the parts of an expression up to and after the value's group. Parentheses
// in a class, or after a backslash, do not end a group.
func TestSplitOfExpressions(t *testing.T) {
	for _, c := range []struct{ up, after string }{
		{`a (?P<value>\d+)`, ` b`}, {`(?P<value>\d+)`, ``}, {`(?<value>\d+)`, `x`}, {`(x)(?P<value>\d+)`, ` (b)`},
		{`(?P<value>[)]+)`, ` b`}, {`(?P<value>[])]+)`, ` b`}, {`(?P<value>[^)]+)`, ` b`}, {`(?P<value>[(]\d+)`, ` b`}, {`(?P<value>[\])]+)`, ` b`},
		{`(?P<value>\)+)`, ` b`}, {`(?P<value>\(\d+)`, ` b`}, {`(?P<value>(?:a|(b))\d+)`, `c`}, {`(?P<value>\[\d+)`, `)?`[1:]},
	} {
		p := Pattern{Name: "f", Pattern: c.up + c.after}
		one, err := p.compile()
		if err != nil {
			t.Errorf("%s: %v", p.Pattern, err)
			continue
		}
		if up, after, ok := one.split(); !ok || up != c.up || after != c.after {
			t.Errorf("%s: %q and %q, %v; want %q and %q", p.Pattern, up, after, ok, c.up, c.after)
		}
	}
	for _, c := range []struct {
		pattern string
		next    byte
		want    bool
	}{
		{`(?P<value>\d+)ms`, 'm', true}, {`(?P<value>\d+)ms`, 's', false}, {`(?P<value>\d+)\.`, '.', true}, {`(?P<value>\d+).`, '.', false}, {`(?P<value>\d+)\)`, ')', true}, {`(?P<value>\d+)`, 'm', false},
	} {
		one, err := Pattern{Name: "f", Pattern: c.pattern}.compile()
		if err != nil {
			t.Fatal(err)
		}
		if one.names(c.next) != c.want {
			t.Errorf("%s matches %q after the number: %v", c.pattern, c.next, !c.want)
		}
	}
}

// A number with another unit than the expression's counts if nothing else precedes it.
func TestLooseUnits(t *testing.T) {
	for _, c := range []struct {
		pattern, unit, log string
		want               []string
	}{
		{`(?P<value>[\d.]+)s/it`, "s/it", "1.00s/it\n2.00it/s\n", []string{"2 f 0.75 s/it median of 2"}},
		{`(?P<value>[\d.]+) ms`, "ms", "wait 12 ms\nwait 1 s\n", []string{"2 f 0.506 s median of 2"}},
		{`(?P<value>[\d.]+) ms`, "ms", "wait 12 ms\ntook 1 s\n", []string{"1 f 0.012 s"}},
		{`wait (?P<value>[\d.]+) ms`, "ms", "wait 12 ms\ntook 1 s\n", []string{"1 f 0.012 s"}},
		{`(?P<value>[\d.]+) ms`, "ms", "wait 12 ms\nwait 1 GiB\n", []string{"1 f 0.012 s"}},
		{`(?P<value>[\d.]+) ms`, "ms", "wait 12 ms\n1 GiB wait 3 s\n", []string{"2 f 1.506 s median of 2"}},
	} {
		e, err := Patterns([]Pattern{{Name: "f", Pattern: c.pattern, Unit: c.unit, Per: "step"}})
		if err != nil {
			t.Fatal(err)
		}
		lines, _ := found(t, e, c.log, Options{})
		if len(lines) != len(c.want) || lines[0] != c.want[0] {
			t.Errorf("%s of %q: %q, want %q", c.pattern, c.log, lines, c.want)
		}
	}
}
