package extract

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// match is one match of one pattern.
type match struct {
	v              Value // in the pattern's unit
	source         string
	epoch, elapsed *Value
	other          string // the unit's text, where the expression names another one
	place          string // what stands before the number
	rank           string // the rank that the text before the number names; "" for none
	summary        bool   // the text before the number says best, final, ...
}

func readPatterns(l *log, r io.Reader, patterns []*compiled) error {
	list := make([]*compiled, len(patterns))
	for i, c := range patterns {
		own := *c // a unit that is adopted is of one log
		list[i] = &own
	}
	found := make([][]match, len(list))
	err := l.each(r, func(ln line) error {
		for i, c := range list {
			one, ok, err := l.match(c, ln)
			if err != nil {
				return err
			}
			if ok {
				found[i] = append(found[i], one)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range list {
		all := l.otherUnits(c, found[i])
		namedRanks(c, all)
		if len(all) == 0 {
			return fmt.Errorf("%s: %w by the pattern of %s: %s", l.o.File, ErrNothing, c.Name, c.re)
		}
		if err := l.matches(c, all); err != nil {
			return err
		}
	}
	return nil
}

// match reads a line by a pattern; ok is false where there is nothing to read.
func (l *log) match(c *compiled, ln line) (one match, ok bool, err error) {
	one.source = ln.source
	m := c.re.FindStringSubmatchIndex(ln.text)
	if m == nil {
		if c.loose == nil || !c.loose.find(c, ln.text, &one) {
			return one, false, nil
		}
		one.v.Line = ln.number
		return one, true, nil
	}
	if c.loose != nil {
		one.place = place(ln.text[:m[2*c.value]])
	}
	if named := rankName.FindStringSubmatch(ln.text[:max(0, m[2*c.value])]); named != nil {
		one.rank = named[1]
	}
	for _, g := range []struct {
		group int
		into  **Value
	}{{c.epoch, &one.epoch}, {c.elapsed, &one.elapsed}} {
		if g.group < 0 || m[2*g.group] >= m[2*g.group+1] {
			continue
		}
		v := Value{Line: ln.number}
		if g.group == c.elapsed {
			of := compiled{Pattern: Pattern{Name: "elapsed", Unit: "s"}, re: c.re, value: g.group, unitAt: -1, declared: number.Unit{Base: "s", Scale: 1}, known: true}
			v.Number, err = l.quantity(&of, ln, m)
		} else if err = whole(ln.text, m, g.group); err != nil {
			err = l.errorAt(ln.number, "%w", err)
		} else {
			v, err = l.parse(ln.number, ln.text[m[2*g.group]:m[2*g.group+1]])
		}
		if err != nil {
			return one, false, err
		}
		*g.into = &v
	}
	one.v.Line = ln.number
	one.summary = summary.MatchString(ln.text[:max(0, m[2*c.value])])
	if one.v.Number, err = l.quantity(c, ln, m); err != nil {
		return one, false, fmt.Errorf("%w (the value of pattern %s)", err, c.Name)
	}
	return one, true, nil
}

// ofAll reports whether the figure is of all workers together.
func (c *compiled) ofAll() bool {
	switch c.Name {
	case metrics.FigureThroughput, metrics.FigureEndToEnd, measure.TokensPerSecond:
		return c.Of == "run"
	}
	return false
}

// What stands before and after a number that is only a part of one: 123 of
// 123.45, 45 of it, 1 of 1,234, 5 of 5e3, 5 of -5.
var (
	goesOn    = regexp.MustCompile(`^(?:[0-9]|\.[0-9]|[eE][-+]?[0-9])`)
	commas    = regexp.MustCompile(`^,[0-9]+(?:[^0-9.,]|\.[0-9]|$)`)
	fewDigits = regexp.MustCompile(`^[-+]?[0-9]{1,3}$`)
	beganBy   = regexp.MustCompile(`(?:[0-9]|[0-9][.,]|[0-9][eE][-+]?|(?:^|[\s:=(])-)$`)
	inClock   = regexp.MustCompile(`[0-9]:$`)
	twoDigits = regexp.MustCompile(`^[0-9]{2}(?:\.[0-9]+)?$`)
	around    = 32 // bytes beside a number that are looked at, and shown
)

// shown is a number with the text around it.
func shown(text string, from, to int) string {
	return text[max(0, from-around):from] + text[from:to] + text[to:min(len(text), to+around)]
}

// whole refuses a number whose rest the expression has left out, before or after
// all that it matches. What it matches itself beside the number is its own affair.
func whole(text string, m []int, group int) error {
	from, to := m[2*group], m[2*group+1]
	if from < 0 || from == to {
		return nil
	}
	before, after := text[max(0, from-around):from], text[to:min(len(text), to+around)]
	cut := to == m[1] && (goesOn.MatchString(after) || commas.MatchString(after) && fewDigits.MatchString(text[from:to])) ||
		from == m[0] && text[from] != '-' && text[from] != '+' && beganBy.MatchString(before)
	if !cut {
		return nil
	}
	return partOf(text, from, to)
}

func partOf(text string, from, to int) error {
	return fmt.Errorf("%q is only part of a number in %q; let the expression match all of it, like [-+0-9.eE]+, or [0-9:.]+ for H:MM:SS", text[from:to], shown(text, from, to))
}

// quantity is the number of a pattern in the unit of the pattern. What stands next to
// the number says in which unit the log has it.
func (l *log) quantity(c *compiled, ln line, m []int) (float64, error) {
	text, group := ln.text, c.value
	if err := whole(text, m, group); err != nil {
		r, ok := number.Read(text[m[2*group]:])
		if !ok || !r.Clock || m[2*group] > m[0] && inClock.MatchString(text[:m[2*group]]) {
			return 0, l.errorAt(ln.number, "%w", err)
		}
	}
	from, to := max(0, m[2*group]), max(0, m[2*group+1])
	for from < to && text[from] == ' ' {
		from++
	}
	plainly := func() (float64, error) {
		v, err := l.parse(ln.number, text[from:to])
		return v.Number, err
	}
	r, ok := number.Read(text[from:])
	if !ok || from == to {
		return plainly()
	}
	switch end := from + len(r.Number); {
	case r.Clock && c.known && c.Unit != "" && c.declared.Base != "s":
		return 0, l.errorAt(ln.number, "%q is a length of time, and %s is in %s", r.Number, c.Name, c.Unit)
	case end > to && c.names(text[to]): // said so
		return plainly()
	case end > to && !r.Clock:
		return 0, l.errorAt(ln.number, "%w", partOf(text, from, to))
	case end < to && strings.Trim(strings.TrimPrefix(strings.TrimLeft(text[end:to], " [("), r.Unit), " ,;.)]}") != "" && !strings.HasPrefix(r.Unit, strings.TrimSpace(text[end:to])):
		return plainly() // an error
	case !r.Clock && c.declared.Base == "s" && !c.declared.Inverse && twoDigits.MatchString(text[from:to]) && inClock.MatchString(text[:from]):
		return 0, l.errorAt(ln.number, "%w", partOf(text, from, to))
	}
	if math.Abs(r.Value) > largestNumber {
		return plainly() // an error
	}
	if r.Grouped {
		l.note("numbers like %s are read with commas between thousands", r.Number)
	}
	if err := c.unitGroup(text, m, &r); err != nil {
		return 0, l.errorAt(ln.number, "%w", err)
	}
	if err := l.neighbours(c, text, from, &r); err != nil {
		return 0, l.errorAt(ln.number, "%w", err)
	}
	if err := c.scope(r, text[:from], text[from+len(r.Number):]); err != nil {
		return 0, l.errorAt(ln.number, "%w: %q", err, shown(text, from, to))
	}
	if r.Unit != "" && !r.Known {
		if r.Attached && r.Unit != c.Unit && c.loose == nil && !c.names(text[from+len(r.Number)]) && from+len(r.Number) >= to {
			return 0, l.errorAt(ln.number, "%q follows the number in %q, and is no unit that is known; let the expression match it, or a group (?P<unit>…)", r.Unit, shown(text, from, to))
		}
		r.Unit = ""
	}
	x, err := l.converted(c, r, text[:from])
	if err != nil {
		return 0, l.errorAt(ln.number, "%w: %q", err, shown(text, from, to))
	}
	if !finite(x) || math.Abs(x) > largestNumber {
		return 0, l.errorAt(ln.number, "%s %s is not a finite number in %s", r.Number, r.Unit, c.Unit)
	}
	return x, nil
}

// unitGroup takes the unit from the group of that name, where the expression has one. An
// empty one says that the number has none.
func (c *compiled) unitGroup(text string, m []int, r *number.Reading) error {
	if c.unitAt < 0 || r.Clock {
		return nil
	}
	from, to := m[2*c.unitAt], m[2*c.unitAt+1]
	r.Unit, r.Known, r.Attached = "", false, false
	if from < 0 || from == to {
		return nil
	}
	r.Unit = strings.Trim(text[from:to], " ,;:.()[]{}|")
	if r.Parsed, r.Known = number.ParseUnit(r.Unit); !r.Known {
		return fmt.Errorf("the group unit has %q in %q, which is no unit that is known (%s)", r.Unit, shown(text, from, to), strings.Join(unitNames()[1:], ", "))
	}
	return nil
}

// converted is a number in the pattern's unit. before is what stands before it.
func (l *log) converted(c *compiled, r number.Reading, before string) (float64, error) {
	u, says := r.Parsed, r.Unit != ""
	own, name, keyed := c.keyUnit(before)
	keyed = keyed && c.unitAt < 0
	if perDevice := says && u.PerDevice || keyed && own.PerDevice; perDevice && c.ofAll() {
		if keyed && own.PerDevice {
			r.Unit = name
		}
		return 0, fmt.Errorf("the log has %s for each device (%s); set of = \"rank\", or take the rate of all", c.Name, r.Unit)
	}
	switch {
	case c.Unit == "":
		return l.adopt(c, r)
	case !c.known:
		if says && u.Bare && u.Base == "" && r.Unit != c.Unit {
			return r.Value * u.Scale, nil
		}
		if says && r.Unit != c.Unit && (r.Attached || u.IsRate()) {
			return 0, fmt.Errorf("the log has %s in %s, and its unit is given as %q, which is not known; write unit = %q", c.Name, r.Unit, c.Unit, r.Unit)
		}
		return r.Value, nil
	}
	d, x := c.declared, r.Value
	if says && u.Base+"/s" == d.Base && !u.Bare { // 12K tokens, for tokens/s
		u = number.Unit{Scale: u.Scale, Bare: true}
	}
	if !says || u.Bare && u.Base == "" {
		if says {
			x = x * u.Scale
			if !(keyed && own.Base == d.Base) {
				x, _ = u.In(d, r.Value)
			}
		}
		switch {
		case !keyed || own.Bare:
		case own.Base != d.Base:
			if own.IsRate() && d.IsRate() {
				return 0, fmt.Errorf("the log has %s in %s by its name, and its unit is given as %q; write unit = %q", c.Name, name, c.Unit, name)
			}
		case !alike(own, d):
			l.note("%s is in %s by its name in the log, and is read so, not in %s", c.Name, name, c.Unit)
			x, _ = own.In(d, x)
		}
		return x, nil
	}
	if u.Base == d.Base && alike(u, d) {
		return x, nil
	}
	y, ok := u.In(d, x)
	switch {
	case ok:
		return y, nil
	case d.Inverse && u.Base == "s" && !u.Inverse: // step time: 250 ms
		return x * u.Scale / d.Scale, nil
	case !r.Attached && !u.IsRate() && u.Scale == 1 && u.Base != "s": // a word
		return x, nil
	}
	return 0, fmt.Errorf("the log has %s in %s, and its unit is given as %q: write unit = %q, or another pattern", c.Name, r.Unit, c.Unit, r.Unit)
}

// alike reports whether two units of the same are one: many programs call 1024³ bytes GB,
// and the user knows.
func alike(a, b number.Unit) bool {
	return a.Inverse == b.Inverse && (a.Scale == b.Scale || (a.Base == "B" || a.Base == "B/s") && max(a.Scale/b.Scale, b.Scale/a.Scale) < 1.13)
}

// adopt is a number whose pattern gives no unit: it is in the base unit of what stands
// next to it, which must be of the same in all lines.
func (l *log) adopt(c *compiled, r number.Reading) (float64, error) {
	u, x := r.Parsed, r.Value
	if r.Unit == "" || !u.IsRate() && strings.HasSuffix(u.Base, "s") && u.Base != "s" { // a count
		u = number.Unit{Scale: 1}
		if r.Unit != "" {
			u.Scale = r.Parsed.Scale
		}
	}
	base := u.Base
	if u.Inverse {
		base = "s"
	}
	if base == "" || u.Bare {
		if c.unit.base != "" && x != 0 {
			return 0, fmt.Errorf("%s has no unit here, and %s above; write unit = %q, or a group (?P<unit>…)", c.Name, c.adopted, c.adopted)
		}
		return scaled(x, u.Scale), nil
	}
	if c.adopted == "" && c.Name != "accuracy" {
		c.adopted = r.Unit
		c.unit.base, c.declared = base, number.Unit{Base: u.Base, Scale: 1, Inverse: u.Inverse}
	}
	y, ok := u.In(c.declared, x)
	if !ok {
		return 0, fmt.Errorf("%s is in %s here; write which with unit, or a group (?P<unit>…)", c.Name, r.Unit)
	}
	return y, nil
}

// names reports whether the expression itself goes on with that character behind the
// number, so that what follows is its own affair.
func (c *compiled) names(next byte) bool {
	_, behind, ok := c.split()
	behind = strings.TrimPrefix(behind, `\`)
	return ok && behind != "" && behind[0] == next && next != '.' || ok && strings.HasPrefix(c.behind(), `\.`) && next == '.'
}

func (c *compiled) behind() string {
	_, behind, _ := c.split()
	return behind
}

// split is the expression up to the end of the number's group, and the rest.
func (c *compiled) split() (up, behind string, ok bool) {
	text := c.re.String()
	name := c.re.SubexpNames()[c.value]
	at := strings.Index(text, "(?P<"+name+">")
	if at < 0 {
		at = strings.Index(text, "(?<"+name+">")
	}
	if at < 0 {
		return "", "", false
	}
	depth, class := 0, false
	for i := at; i < len(text); i++ {
		switch ch := text[i]; {
		case ch == '\\':
			i++
		case class:
			class = ch != ']'
		case ch == '[':
			class = true
			if i+1 < len(text) && text[i+1] == ']' {
				i++
			}
		case ch == '(':
			depth++
		case ch == ')':
			if depth--; depth == 0 {
				return text[:i+1], text[i+1:], true
			}
		}
	}
	return "", "", false
}

// loose is an expression that names a unit behind the number, for any unit: programs
// change it with the size of a number, as a progress bar does from s/it to it/s.
type loose struct {
	re          *regexp.Regexp
	value, unit int
	named       string // the unit that the expression names
	anchored    bool   // by a text before the number
}

var namedUnit = regexp.MustCompile(`^((?: |\\s|\[ \\t\])[?*+]?)?((?:%|[A-Za-zµ]+)(?: ?/ ?[A-Za-zµ]+)*)`)

func (c *compiled) loosened() *loose {
	up, behind, ok := c.split()
	if !ok || c.unitAt >= 0 || c.Unit == "" || !c.known {
		return nil
	}
	m := namedUnit.FindStringSubmatch(behind)
	if m == nil {
		return nil
	}
	rest := behind[len(m[0]):]
	u, known := number.ParseUnit(m[2])
	if !known || u.Bare && u.Base == "" || rest != "" && strings.ContainsAny(rest[:1], "?*+{|") {
		return nil
	}
	if u.Base != c.declared.Base {
		return nil
	}
	tree, err := syntax.Parse(c.re.String(), syntax.Perl)
	if err != nil || tree.Op == syntax.OpAlternate {
		return nil
	}
	re, err := regexp.Compile(up + `[ \t]?(?P<looseunit>%|[A-Za-zµ]+(?: ?/ ?[A-Za-zµ]+)*)` + rest)
	if err != nil {
		return nil
	}
	o := &loose{re: re, value: c.value, unit: re.SubexpIndex("looseunit"), named: m[2]}
	before := up[:strings.LastIndex(up, "(?")]
	o.anchored = strings.ContainsFunc(regexp.MustCompile(`\\.|\[[^\]]*\]|\(\?.*?[>:]|[\s^.*+?(){}|]`).ReplaceAllString(before, ""), func(rune) bool { return true }) ||
		regexp.MustCompile(`\\[\[\](|)]`).MatchString(before)
	return o
}

// find reads a line that has the number with another unit.
func (o *loose) find(c *compiled, text string, one *match) bool {
	for _, m := range o.re.FindAllStringSubmatchIndex(text, -1) {
		if o.take(c, text, m, one) {
			return true
		}
	}
	return false
}

// take reads one match of the expression for any unit.
func (o *loose) take(c *compiled, text string, m []int, one *match) bool {
	if whole(text, m, o.value) != nil {
		return false
	}
	r, ok := number.Read(text[m[2*o.value]:])
	u, known := number.ParseUnit(text[m[2*o.unit]:m[2*o.unit+1]])
	if !ok || !known || r.Clock || len(r.Number) != m[2*o.value+1]-m[2*o.value] {
		return false
	}
	x, ok := u.In(c.declared, r.Value)
	if !ok || !finite(x) || u.PerDevice != c.declared.PerDevice || math.Abs(x) > largestNumber {
		return false
	}
	one.v.Number, one.other, one.place = x, text[m[2*o.unit]:m[2*o.unit+1]], place(text[:m[2*o.value]])
	return true
}

// place is what stands directly before a number, without what may change from line to line.
func place(before string) string {
	kept := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == ' ' {
			return -1
		}
		return r
	}, before[max(0, len(before)-around):])
	return kept[max(0, len(kept)-2):]
}

// otherUnits leaves out matches with another unit than the expression names, unless they
// stand where those with that unit do, or it has a text before the number.
func (l *log) otherUnits(c *compiled, all []match) []match {
	if c.loose == nil {
		return all
	}
	places, named, others := map[string]bool{}, 0, 0
	for _, m := range all {
		if m.other == "" {
			named++
			places[m.place] = true
		}
	}
	kept, example := all[:0], match{}
	for _, m := range all {
		if m.other != "" {
			if named > 0 && !places[m.place] || named == 0 && !c.loose.anchored {
				continue
			}
			others++
			example = m
		}
		kept = append(kept, m)
	}
	if others > 0 {
		l.note("%d of %s have %s in %s (as line %d), where the pattern has %s: they are converted", others, number.Count(len(kept), "line"), c.Name, example.other, example.v.Line, c.loose.named)
	}
	return kept
}
