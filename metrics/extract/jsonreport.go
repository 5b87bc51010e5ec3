package extract

import "math"

// members holds the members of a JSON object in a report.
type members struct {
	l    *log
	of   map[string]value
	line int
}

func (l *log) object(v value) members {
	m := members{l: l, of: map[string]value{}}
	m.read(v)
	return m
}

// read replaces the members by another object's.
func (m *members) read(v value) {
	m.line = v.line
	v.members(m.of)
}

// number returns a member that is a number; ok is false if it is missing or null.
func (m members) number(name string) (v Value, ok bool) {
	x := m.of[name]
	switch {
	case x.null():
		return v, false
	case x.is('"') || x.is('{') || x.is('[') || x.is('t') || x.is('f'):
		m.l.fail(x.line, "%s is not a number", name)
	}
	v = m.l.parse(x.line, string(x.text))
	return v, true
}

// need returns a number that each result must have.
func (m members) need(name string) (v Value) {
	v, ok := m.number(name)
	if !ok {
		m.l.fail(max(m.line, m.of[name].line), "a result without its %s", name)
	}
	return v
}

// count returns a member that is an integer of at least 0.
func (m members) count(name string) (v Value) {
	v = m.need(name)
	if v.Number < 0 || v.Number != math.Trunc(v.Number) || v.Number > 1e15 {
		m.l.fail(v.Line, "%s is %g; want a count", name, v.Number)
	}
	return v
}

// source returns a member. It is the source function that served.fields calls.
func (m members) source(name string) (v Value, scale float64, ok bool) {
	v, ok = m.number(name)
	return v, 1, ok
}

// agrees fails if a mean differs from the mean of the values in the list member.
func (m members) agrees(mean Value, name, list string) {
	sum, n := 0.0, 0
	m.of[list].entries(func(v value) {
		sum += m.l.parse(v.line, string(v.text)).Number
		n++
	})
	if n == 0 {
		return
	}
	if own := sum / float64(n); math.Abs(own-mean.Number) > 1e-6*math.Abs(own) {
		m.l.fail(mean.Line, "%s is %g, and the mean of the %d epochs in %s is %g", name, mean.Number, n, list, own)
	}
}
