package extract

import (
	"hash/maphash"
	"io"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// match is a match of a pattern in a line.
type match struct {
	v              Value // in the pattern's unit
	source         string
	epoch, elapsed *Value
	other          string // text of the unit, if it is not the one in the expression
	place          string // the text before the number, as the function place returns it
	rank           string // rank that the text before the number names; "" for none
	step           uint64 // digest of the text before the number if it has digits, without times of day; else 0
	total          bool   // the text around the number says total, global, ...
	summary        bool   // the text before the number says best, final, ...
}

var (
	clockText = regexp.MustCompile(`\d\d?:\d\d:\d\d(?:[.,]\d+)?`)
	rankAfter = regexp.MustCompile(`(?i)[^a-z]rank[ :=_#-]{0,2}(\d{1,5})(?:\D|$)`)
	stepSeed  = maphash.MakeSeed()
)

func readPatterns(l *log, r io.Reader, patterns []*compiled) {
	list := make([]*compiled, len(patterns))
	for i, c := range patterns {
		own := *c // a copy, because the unit that it adopts is that of one log
		list[i] = &own
	}
	found := make([][]match, len(list))
	lines := l.scan(r)
	lines.whole = true // a pattern may match the prefixes of log collectors
	head := columnHead{}
	take := joined(func(ln line) {
		head.see(ln.text)
		ln.head = &head
		for i, c := range list {
			one, ok := l.match(c, ln)
			if ok {
				found[i] = append(found[i], one)
			}
		}
	})
	lines.each(take)
	for range 2 {
		take(line{})
	}
	for i, c := range list {
		all := l.otherUnits(c, found[i])
		namedRanks(c, all)
		if len(all) == 0 {
			l.fail(0, "%w by the pattern of %s: %s", ErrNothing, c.Name, c.re)
		}
		l.matches(c, all)
	}
}

// match applies a pattern to a line; ok is false if it does not match.
func (l *log) match(c *compiled, ln line) (one match, ok bool) {
	one.source = ln.source
	m := c.re.FindStringSubmatchIndex(ln.text)
	if m == nil {
		if c.loose == nil || !c.loose.find(c, ln.text, &one) {
			return one, false
		}
		one.v.Line = ln.number
		return one, true
	}
	if c.loose != nil {
		one.place = place(ln.text[:m[2*c.value]])
	}
	if named := rankName.FindStringSubmatch(ln.text[:max(0, m[2*c.value])]); named != nil {
		one.rank = named[1]
	} else if named := rankAfter.FindStringSubmatch(ln.text[max(0, m[2*c.value+1]):]); named != nil {
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
		var err error
		if g.group == c.elapsed {
			of := compiled{Pattern: Pattern{Name: "elapsed", Unit: "s"}, re: c.re, value: g.group, unitAt: -1, declared: number.Unit{Base: "s", Scale: 1}, known: true}
			err = try(func() { v.Number = l.quantity(&of, ln, m) })
		} else if err = c.whole(ln.text, m, g.group); err == nil {
			v = l.parse(ln.number, ln.text[m[2*g.group]:m[2*g.group+1]])
		}
		if err != nil {
			l.fail(ln.number, "%w", err)
		}
		*g.into = &v
	}
	one.v.Line = ln.number
	if before := clockText.ReplaceAllString(ln.text[:max(0, m[2*c.value])], ""); c.Per == "step" && strings.ContainsAny(before, "0123456789") {
		one.step = maphash.String(stepSeed, before)
	}
	one.total = totalOf.MatchString(ln.text[max(0, m[2*c.value]-around):min(len(ln.text), m[2*c.value]+around)])
	one.summary = summary.MatchString(ln.text[:max(0, m[2*c.value])])
	if err := try(func() { one.v.Number = l.quantity(c, ln, m) }); err != nil {
		l.fail(ln.number, "%w (the value of pattern %s)", err, c.Name)
	}
	return one, true
}

// ofAll reports whether the figure is a rate of all workers.
func (c *compiled) ofAll() bool {
	switch c.Name {
	case metrics.FigureThroughput, metrics.FigureEndToEnd, measure.TokensPerSecond:
		return c.Of == "run"
	}
	return false
}
