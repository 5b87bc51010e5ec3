package extract

import (
	"fmt"
	"io"

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
	summary        bool   // the text before the number says best, final, ...
}

func readPatterns(l *log, r io.Reader, patterns []*compiled) error {
	list := make([]*compiled, len(patterns))
	for i, c := range patterns {
		own := *c // a copy, because the unit that it adopts is that of one log
		list[i] = &own
	}
	found := make([][]match, len(list))
	lines := l.scan(r)
	lines.whole = true // a pattern may match the prefixes of log collectors
	err := lines.each(func(ln line) error {
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

// match applies a pattern to a line; ok is false if it does not match.
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

// ofAll reports whether the figure is a rate of all workers.
func (c *compiled) ofAll() bool {
	switch c.Name {
	case metrics.FigureThroughput, metrics.FigureEndToEnd, measure.TokensPerSecond:
		return c.Of == "run"
	}
	return false
}
