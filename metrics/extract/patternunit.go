package extract

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// These patterns match the text around a group that matched only part of a number: 123 of 123.45,
// 45 of 123.45, 1 of 1,234, 5 of 5e3, 5 of -5.
var (
	goesOn    = regexp.MustCompile(`^(?:[0-9]|\.[0-9]|[eE][-+]?[0-9]|:[0-9]{2}:)`)
	commas    = regexp.MustCompile(`^,[0-9]+(?:[^0-9.,]|\.[0-9]|$)`)
	fewDigits = regexp.MustCompile(`^[-+]?[0-9]{1,3}$`)
	beganBy   = regexp.MustCompile(`(?:[0-9]|[0-9][.,]|[0-9][eE][-+]?|(?:^|[^\pL\pN)\]])[-−])$`)
	exponent  = regexp.MustCompile(`^[eE][-+]?[0-9]`)
	inClock   = regexp.MustCompile(`[0-9]:$`)
	twoDigits = regexp.MustCompile(`^[0-9]{2}(?:\.[0-9]+)?$`)
	around    = 32 // bytes of context on each side
)

// shown returns a number with the text around it, for messages.
func shown(text string, from, to int) string {
	return text[max(0, from-around):from] + text[from:to] + text[to:min(len(text), to+around)]
}

// whole returns an error if the group matched only part of a number. Digits after it that the rest
// of the expression matches are not an error, nor is a character before it that the expression
// spells out.
func (c *compiled) whole(text string, m []int, group int) error {
	from, to := m[2*group], m[2*group+1]
	if from < 0 || from == to {
		return nil
	}
	before, after := text[max(0, from-around):from], text[to:min(len(text), to+around)]
	cut := to == m[1] && (goesOn.MatchString(after) || commas.MatchString(after) && fewDigits.MatchString(text[from:to])) ||
		exponent.MatchString(after) || text[from] != '-' && text[from] != '+' && beganBy.MatchString(before) && !c.spells(group, before)
	if !cut {
		return nil
	}
	return partOf(text, from, to)
}

func partOf(text string, from, to int) error {
	return fmt.Errorf("%q is only part of a number in %q; let the expression match all of it, like [-+0-9.eE]+, [0-9:.]+ for H:MM:SS, or \\S+ for 1h02m and PT1H2M", text[from:to], shown(text, from, to))
}

// A numberAt is a number that a group of a pattern matched, with its unit and its place in the line.
type numberAt struct {
	number.Reading
	l        *log
	c        *compiled
	ln       line
	groups   []int // the positions of the pattern's groups in the line
	from, to int   // range of the group in the line, without leading spaces
}

func (w *numberAt) before() string { return w.ln.text[:w.from] }
func (w *numberAt) after() string  { return w.ln.text[w.from+len(w.Number):] }
func (w *numberAt) shown() string  { return shown(w.ln.text, w.from, w.to) }

// takeUnit sets the unit of the number. It ignores text that is not a unit.
func (w *numberAt) takeUnit(text string) {
	if u, known := number.ParseUnit(text); known {
		w.Unit, w.Parsed, w.Known, w.Attached = text, u, true, true
	}
}

// quantity returns the number that a pattern matched, in the pattern's unit. The unit in the log
// is taken from the text next to the number.
func (l *log) quantity(c *compiled, ln line, m []int) float64 {
	text, group := ln.text, c.value
	if err := c.whole(text, m, group); err != nil {
		r, ok := number.Read(text[m[2*group]:])
		if !ok || !r.Clock || m[2*group] > m[0] && inClock.MatchString(text[:m[2*group]]) {
			failIf(err)
		}
	}
	w := &numberAt{l: l, c: c, ln: ln, groups: m, from: max(0, m[2*group]), to: max(0, m[2*group+1])}
	for w.from < w.to && text[w.from] == ' ' {
		w.from++
	}
	var ok bool
	w.Reading, ok = number.Read(text[w.from:])
	if w.from < w.to && insideLength(text, w.from) {
		failIf(partOf(text, w.from, w.to))
	}
	isPlain := !ok || w.from == w.to || w.plainly() || math.Abs(w.Value) > largestNumber
	if ok {
		w.described()
	}
	if isPlain {
		x, ok := parsed(text[w.from:w.to])
		if !ok {
			fail("%s", unreadable(text[w.from:w.to]))
		}
		return x
	}
	x := w.withUnit()
	if !finite(x) || math.Abs(x) > largestNumber {
		fail("%s %s is not a finite number in %s", w.Number, w.Unit, c.Unit)
	}
	return x
}

// insideLength reports whether a number is a later part of a length of time: 2 of PT1H2M3S, 02 of 1h02m.
func insideLength(text string, from int) bool {
	start := from
	for start > 0 && lengthChar.MatchString(text[start-1:start]) {
		start--
	}
	r, ok := number.Read(text[start:])
	return start < from && ok && r.Clock && start+len(r.Number) > from && strings.ContainsAny(r.Number, "PTdhms")
}

var lengthChar = regexp.MustCompile(`[A-Za-z0-9.:]`)

// plainly reports whether the group matched a number without a unit. It fails if the
// group matched only part of a number.
func (w *numberAt) plainly() bool {
	c, text := w.c, w.ln.text
	switch end := w.from + len(w.Number); {
	case w.Clock && c.known && c.Unit != "" && c.declared.Base != "s":
		fail("%q is a length of time, and %s is in %s", w.Number, c.Name, c.Unit)
	case end > w.to && c.names(text[w.to]): // the expression matches what follows
		return true
	case end > w.to && !w.Clock:
		failIf(partOf(text, w.from, w.to))
	case end < w.to:
		rest := strings.TrimPrefix(strings.TrimLeft(text[end:w.to], " [("), w.Unit)
		return strings.Trim(rest, " ,;.)]}") != "" && !strings.HasPrefix(w.Unit, strings.TrimSpace(text[end:w.to])) // otherwise an error
	case !w.Clock && c.declared.Base == "s" && !c.declared.Inverse && twoDigits.MatchString(text[w.from:w.to]) && inClock.MatchString(w.before()):
		failIf(partOf(text, w.from, w.to))
	}
	return false
}

// withUnit returns a number converted from the unit in its group or next to it.
func (w *numberAt) withUnit() float64 {
	c := w.c
	// 1,234 may have a decimal comma; 1,234.5 and 1,234,567 may not.
	if w.Grouped && !c.grouped && strings.Count(w.Number, ",") == 1 && !strings.Contains(w.Number, ".") {
		c.grouped = true
		w.l.note("commas in numbers like %s are read as thousands separators", w.Number)
	}
	w.unitGroup()
	w.neighbours()
	if _, _, keyed := w.keyUnit(); c.unitAt < 0 && (w.Unit == "" || !w.Known && !w.Attached) && !keyed {
		w.besideUnit()
	}
	if u, says, ok := binaryUnit(w.before()); ok && (w.Unit == "MB/sec" || w.Unit == "Mb/sec") {
		w.Unit, w.Parsed = says, u
	}
	located := func(f func()) {
		if err := try(f); err != nil {
			fail("%w: %q", err, w.shown())
		}
	}
	located(w.scope)
	w.unclearScope()
	if w.Unit == "m" && w.Attached && c.declared.Base == "s" { // minutes, or metres
		if c.declared.Scale != 60 {
			fail("\"m\" after the number in %q may be minutes: if it is, write unit = \"min\"", w.shown())
		}
		w.Unit = ""
	}
	if end := w.from + len(w.Number); w.Unit != "" && !w.Known {
		if w.Attached && w.Unit != c.Unit && end < w.to {
			fail("%q after the number in %q is not a known unit; let the group value match the number only, or write unit = %q", w.Unit, w.shown(), w.Unit)
		}
		if w.Attached && w.Unit != c.Unit && c.loose == nil && !c.names(w.ln.text[end]) && end >= w.to {
			fail("%q after the number in %q is not a known unit; let the expression match it, or a group (?P<unit>…)", w.Unit, w.shown())
		}
		w.Unit = ""
	}
	var x float64
	located(func() { x = w.converted() })
	w.contradicted(x)
	return x
}

// unitGroup sets the unit from the group "unit", if the expression has one. If that group matched
// nothing, the number has no unit.
func (w *numberAt) unitGroup() {
	if w.c.unitAt < 0 || w.Clock {
		return
	}
	from, to := w.groups[2*w.c.unitAt], w.groups[2*w.c.unitAt+1]
	w.Unit, w.Known, w.Attached = "", false, false
	if from < 0 || from == to {
		return
	}
	w.Unit = strings.Trim(w.ln.text[from:to], " ,;:.()[]{}|")
	w.Parsed, w.Known = number.ParseUnit(w.Unit)
	switch {
	case w.Known:
	case w.Unit == w.c.Unit: // the user's own unit, which needs no conversion
		w.Unit = ""
	default:
		fail("the group unit matched %q in %q, which is not a known unit; to keep it as it is, write unit = %q", w.Unit, shown(w.ln.text, from, to), w.Unit)
	}
}

// converted returns the number in the pattern's unit.
func (w *numberAt) converted() float64 {
	c, r := w.c, w.Reading
	own, name, keyed := w.keyUnit()
	keyed = keyed && c.unitAt < 0
	says := r.Unit != ""
	per := ""
	if says {
		per = r.Parsed.Per
	}
	if keyed && own.Per != "" {
		per, r.Unit = own.Per, name
	}
	if c.named = r.Unit; keyed && !says {
		c.named = name
	}
	if per != "" && c.ofAll() {
		failScope(c.Name, per, r.Unit)
	}
	switch u := r.Parsed; {
	case !says && !keyed && w.inVegeta():
		fail("%s has no unit in the log, and vegeta writes times in JSON in ns: write unit = \"ns\"", c.Name)
	case !c.known && c.Unit != "":
		return c.inUnknown(r, w.after())
	case says && u.Unclear:
		return w.l.bitsOrBytes(c, u, r.Unit, r.Value)
	case !says && keyed && own.Unclear:
		return w.l.bitsOrBytes(c, own, name, r.Value)
	case c.Unit == "":
		return w.l.adopt(c, r)
	case says && u.Base+"/s" == c.declared.Base && !u.Bare: // 12K tokens, for tokens/s
		r.Parsed = number.Unit{Scale: u.Scale, Bare: true}
	}
	if says && !(r.Parsed.Bare && r.Parsed.Base == "") {
		return c.inDeclared(r)
	}
	x, d := r.Value, c.declared
	if says { // the unit is only an SI prefix
		if x *= r.Parsed.Scale; !keyed || own.Base != d.Base {
			x, _ = r.Parsed.In(d, r.Value)
		}
	}
	if !keyed || own.Bare {
		if !says {
			w.nanoseconds()
		}
		return x
	}
	return w.l.byName(c, x, own, name)
}

// jsonMember matches the text before the value of a member of a JSON object.
var jsonMember = regexp.MustCompile(`"\s*:\s*$`)

// longest is the longest time in seconds, other than of a whole run, that is not taken to be in ns.
const longest = 1e6

// nanoseconds fails if a number without a unit in a JSON file is likely to be in nanoseconds, and the
// pattern has another unit.
func (w *numberAt) nanoseconds() {
	c := w.c
	if d := c.declared; d.Base != "s" || d.Inverse || d.Scale < 1e-8 || strings.Contains(w.Number, ".") || !jsonMember.MatchString(w.before()) {
		return
	}
	if w.Value*c.declared.Scale >= longest && !c.wholeRun() {
		fail("%s has no unit in the log, and vegeta and others write times in JSON in ns: write unit = \"ns\", or let the program print the unit", c.Name)
	}
}

var vegetaKey = regexp.MustCompile(`"(?:total|mean|max|min|\d\dth)"\s*:\s*$`)

// inVegeta reports whether a number is a time in a JSON report of vegeta, which is in nanoseconds, and the
// pattern has another unit.
func (w *numberAt) inVegeta() bool {
	if w.c.declared.Base == "s" && within(w.c.declared.Scale, 1e-9, 2) || strings.Contains(w.Number, ".") || !vegetaKey.MatchString(w.before()) {
		return false
	}
	if w.ln.head != nil && len(w.ln.head.keys) > 0 && w.ln.head.keys[len(w.ln.head.keys)-1] == "latencies" {
		return true
	}
	m := openKey.FindStringSubmatch(w.before())
	return m != nil && m[1] == "latencies" && strings.Contains(w.ln.text, `"bytes_in"`)
}

// wholeRun reports whether the figure is the time of a whole training.
func (c *compiled) wholeRun() bool {
	return c.Name == metrics.FigureTrainSeconds || c.Name == "elapsed"
}

// prefixRatio returns the ratio of two units that differ in their SI prefix only, such as katom-step/s and
// Matom-step/s; 0 for others.
func prefixRatio(unit, other string) float64 {
	stem := func(text string) (string, float64) {
		if len(text) > 2 && number.Prefix(text[:1]) > 0 {
			return text[1:], number.Prefix(text[:1])
		}
		return text, 1
	}
	a, x := stem(unit)
	b, y := stem(other)
	switch {
	case unit == other:
	case a == b:
		return x / y
	case unit == b:
		return 1 / y
	case a == other:
		return x
	}
	return 0
}

// inUnknown converts a number if the pattern's unit is one that the program does not know. rest is the text
// after the number.
func (c *compiled) inUnknown(r number.Reading, rest string) float64 {
	written, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	switch u, times := r.Parsed, prefixRatio(strings.TrimRight(written, ",;)"), c.Unit); {
	case times > 0:
		return r.Value * times
	case r.Unit == "" || r.Unit == c.Unit:
	case u.Bare && u.Base == "":
		return r.Value * u.Scale
	case r.Attached || u.IsRate():
		fail("the log has %s in %s, but its unit is given as %q, which is unknown; write unit = %q", c.Name, r.Unit, c.Unit, r.Unit)
	}
	return r.Value
}

// inDeclared converts a number with a unit to the pattern's unit.
func (c *compiled) inDeclared(r number.Reading) float64 {
	u, d := r.Parsed, c.declared
	if u.Base == d.Base && alike(u, d) {
		return r.Value
	}
	y, ok := u.In(d, r.Value)
	switch {
	case ok:
		return y
	case d.Inverse && u.Base == "s" && !u.Inverse: // step time: 250 ms
		return r.Value * u.Scale / d.Scale
	case u.Inverse && u.Base == "steps/s" && d.Base == "s" && c.Name == stepSeconds: // 0.05 s/step
		return r.Value * u.Scale / d.Scale
	case r.Attached || u.IsRate() || u.Scale != 1 || u.Base == "s":
		fail("the log has %s in %s, but its unit is given as %q: write unit = %q, or another pattern", c.Name, r.Unit, c.Unit, r.Unit)
	}
	return r.Value // the "unit" is an ordinary word
}

// bitsOrBytes returns a number whose unit in the log may be in bits or in bytes, such as gbps. The
// pattern's unit decides, if it is one of the two.
func (l *log) bitsOrBytes(c *compiled, u number.Unit, name string, x float64) float64 {
	d := c.declared
	if c.known && d.Base == u.Base && (d.Scale == u.Scale || d.Scale == u.Scale/8) {
		l.note("%s is in %s in the log, which may be in bits or in bytes: it is read in %s", c.Name, name, c.Unit)
		return x
	}
	prefix := ""
	for _, one := range []string{"k", "M", "G", "T"} {
		if number.Prefix(one) == u.Scale {
			prefix = one
		}
	}
	fail("%s is in %s in the log, which may be in bits or in bytes: write unit = \"%sbit/s\" or unit = \"%[3]sB/s\"", c.Name, name, prefix)
	return 0
}

// byName converts a number without a unit. Its unit is the one in its name in the log, as in
// "time_ms=12".
func (l *log) byName(c *compiled, x float64, own number.Unit, name string) float64 {
	d := c.declared
	own = c.timeOf(own)
	switch {
	case own.Base == d.Base && !alike(own, d):
		l.note("%s is read in %s, the unit in its name in the log, not in %s", c.Name, name, c.Unit)
		x, _ = own.In(d, x)
	case d.Inverse && own.Base == "s":
		if own.Scale != d.Scale {
			l.note("%s is read in %s, the unit in its name in the log, not in %s", c.Name, name, c.Unit)
		}
		x *= own.Scale / d.Scale
	case own.Base != d.Base && own.IsRate() && d.IsRate():
		fail("the log has %s in %s by its name, but its unit is given as %q; write unit = %q", c.Name, name, c.Unit, name)
	}
	return x
}

// alike reports whether the log's unit may be the user's. Many programs call 1024³ bytes a GB, so
// the user's choice decides what a GB is. A GiB in the log is always 1024³ bytes.
func alike(log, user number.Unit) bool {
	return log.Inverse == user.Inverse && (log.Scale == user.Scale || (log.Base == "B" || log.Base == "B/s") && log.Scale < user.Scale && user.Scale/log.Scale < 1.13)
}

// adopt converts a number for a pattern without a unit. It adopts the unit in the text next to
// the number, which must be the same in all lines.
func (l *log) adopt(c *compiled, r number.Reading) float64 {
	u, x := r.Parsed, r.Value
	if r.Unit == "" || !u.IsRate() && strings.HasSuffix(u.Base, "s") && u.Base != "s" { // a count, such as tokens
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
			fail("%s has no unit here, and %s above; write unit = %q, or a group (?P<unit>…)", c.Name, c.adopted, c.adopted)
		}
		return scaled(x, u.Scale)
	}
	if c.adopted == "" && c.Name != "accuracy" {
		c.adopted = r.Unit
		c.unit.base, c.declared = base, number.Unit{Base: u.Base, Scale: 1, Inverse: u.Inverse}
	}
	y, ok := u.In(c.declared, x)
	if !ok {
		fail("%s is in %s here; state the unit with unit = \"…\" or a group (?P<unit>…)", c.Name, r.Unit)
	}
	return y
}
