package extract

import (
	"slices"
	"strings"
	"testing"
)

// A figure of the run may match only one line, unless the user sets how to reduce several.
func TestPatternOfTheRun(t *testing.T) {
	read := func(log, reduce string) (Content, error) {
		e, err := Patterns([]Pattern{{Name: "throughput", Pattern: `^rate (?P<value>\d+)$`, Unit: "img/s", Reduce: reduce}})
		if err != nil {
			t.Fatal(err)
		}
		return e.Extract(strings.NewReader(log), Options{File: "log", Workers: 1})
	}
	for _, c := range []struct {
		log, reduce string
		want        float64
	}{{"rate 3\n", "", 3}, {"rate 3\nrate 5\n", "last", 5}, {"rate 3\nrate 5\n", "mean", 4}} {
		r, err := read(c.log, c.reduce)
		if err != nil || r.Found() != 1 || slices.Collect(r.Findings())[0].Event.Figure.Value != c.want {
			t.Errorf("%q by %q: %+v, %v; want %g", c.log, c.reduce, slices.Collect(r.Findings()), err, c.want)
		}
	}
	if r, err := read("rate 3\nwarm\nrate 5\n", ""); err == nil || !strings.Contains(err.Error(), "log:3: a second throughput; the first is on line 1") {
		t.Errorf("%+v, %v of a second figure of the run", r, err)
	}
}

// An expression that matches only part of a number is an error, since the rest would be
// lost silently.
func TestPatternOfAPartOfANumber(t *testing.T) {
	for _, c := range []struct {
		pattern, line string
		want          float64 // 0: an error
	}{
		{`(?P<value>\d+) img/s`, "123.45 img/s", 0},
		{`(?P<value>\d+) img/s`, "at 123 img/s", 123},
		{`rate (?P<value>[\d.]+)`, "rate 12.5e-3", 0},
		{`rate (?P<value>[\d.]+)`, "rate 12.5 e", 12.5},
		{`rate (?P<value>[\d.]+)`, "rate 12.5eq", 0}, // not a unit
		{`rate (?P<value>[\d.]+)`, "rate 1,234.5", 0},
		{`rate (?P<value>[\d.]+)`, "rate 1,234", 0},
		{`rate (?P<value>[\d.]+)`, "rate 1,23", 0},
		{`rate (?P<value>[\d.]+)`, "rate 1.5,234", 1.5},
		{`rate (?P<value>\d+)`, "rate 12.5", 0},
		{`rate (?P<value>\d+)`, "rate 12.", 12},
		{`rate (?P<value>\d+)\.`, "rate 12.5", 12}, // the expression allows it
		{`rate (?P<value>\d{2})`, "rate 1234", 0},
		{`(?P<value>\d+) img`, "-5 img", 0},
		{`(?P<value>\d+) img`, "rate=-5 img", 0},
		{`(?P<value>\d+) img`, "gpu-5 img", 5},
		{`(?P<value>\d+) img`, "1e5 img", 0},
		{`(?P<value>\d+) img`, "1,500 img", 0},
		{`delta=-?(?P<value>[\d.]+)`, "delta=-3.5", 0},
		{`delta=.(?P<value>[\d.]+)`, "delta=-3.5", 0},
		{`delta=-(?P<value>[\d.]+)`, "delta=-3.5", 3.5}, // the expression spells out the sign
		{`reward.*?(?P<value>[\d.]+)`, "reward = −0.25", 0},
		{`rate.*(?P<value>[\d.]+)`, "rate 12.5", 0}, // takes only the 5
		{`rate (?P<value>[\d.]+)e`, "rate 1.5e-4", 0},
		{`^(?:[^,]*,){2}(?P<value>[\d.]+)`, "1,2,300", 300},
		{`[ ,](?P<value>\d+)$`, "1,300", 300},
		{`node-(?P<value>\d+)`, "node-5", 5},
	} {
		e, err := Patterns([]Pattern{{Name: "f", Pattern: c.pattern}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Extract(strings.NewReader(c.line+"\n"), Options{File: "log", Workers: 1})
		switch {
		case c.want == 0 && (err == nil || !strings.Contains(err.Error(), "log:1: ") || !strings.Contains(err.Error(), "is only part of a number") && !strings.Contains(err.Error(), "is not a known unit")):
			t.Errorf("%s of %q: %+v, %v; want an error about a part", c.pattern, c.line, slices.Collect(r.Findings()), err)
		case c.want != 0 && (err != nil || slices.Collect(r.Findings())[0].Event.Figure.Value != c.want):
			t.Errorf("%s of %q: %+v, %v; want %g", c.pattern, c.line, slices.Collect(r.Findings()), err, c.want)
		}
	}
}
