package extract

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"io"
	"regexp"
	"strconv"
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
	other          string  // text of the unit, if it is not the one in the expression
	place          string  // the text before the number, as the function place returns it
	rank           string  // rank that the text before the number names; "" for none
	step           uint64  // digest of the text before the number if it has digits, without times of day; else 0
	total          bool    // the text around the number says total, global, ...
	at             float64 // time of day of the line of a step time; 0: unknown
	summary        bool    // the text before the number says best, final, ...
	named          string  // unit that the log states, next to the number or in its name; "" for none
	counter        int     // step number before the number; -1 without one
	done, whole    int     // counter of a progress bar before the number, as in 50/100; 0 without one
	bar            string  // epoch that the progress bar names; "" for none
	mean           string  // how the log names a running mean; "" for other numbers
	undefined      bool    // the number is nan or infinite
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
			last := len(found[i]) - 1
			switch {
			case !ok:
				c.missed(ln)
			case last >= 0 && c.Per != "step" && one.redraws(found[i][last]):
				found[i][last] = one
			default:
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
			hint := ""
			if len(found[i]) > 0 { // values with other units, in lines that the pattern does not identify
				hint = fmt.Sprintf("; line %d has a value in %s, which is read if the pattern has text before the number", found[i][0].v.Line, found[i][0].other)
			}
			l.fail(0, "%w by the pattern of %s: %s%s", ErrNothing, c.Name, c.re, hint)
		}
		if c.missing > 0 {
			l.note("%s: nan or inf where the pattern of %s has a number (line %d is the first): not read", number.Count(c.missing, "line"), c.Name, c.missingAt)
		}
		all = l.defined(c, all)
		l.halfNamed(c, all)
		l.matches(c, all)
	}
}

// rankIn returns the number of the rank that a text names; "" without one. "tok/s/gpu 5000" names none.
func (l *log) rankIn(name *regexp.Regexp, text string) string {
	rank := submatch(name, text)
	if n, err := strconv.Atoi(rank); err != nil || l.o.Workers > 0 && n > l.o.Workers {
		return ""
	}
	return rank
}

// missed counts a line that would match if it had a number in place of nan or inf.
func (c *compiled) missed(ln line) {
	if c.undefined == nil || !hasUndefined.MatchString(ln.text) || !c.undefined.MatchString(ln.text) {
		return
	}
	if c.missing == 0 {
		c.missingAt = ln.number
	}
	c.missing++
}

var hasUndefined = regexp.MustCompile(`(?i)nan|inf`)

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
	one.rank = cmp.Or(l.rankIn(rankName, ln.text[:max(0, m[2*c.value])]), l.rankIn(rankAfter, ln.text[max(0, m[2*c.value+1]):]))
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
	if c.ofStep() {
		one.at = ln.time()
	}
	one.summary = summary.MatchString(ln.text[:max(0, m[2*c.value])])
	one.surroundings(ln.text, max(0, m[2*c.value]))
	if undefinedText(ln.text[max(0, m[2*c.value]):max(0, m[2*c.value+1])]) {
		one.undefined = true
		return one, true
	}
	c.named = ""
	if err := try(func() { one.v.Number = l.quantity(c, ln, m) }); err != nil {
		l.fail(ln.number, "%w (the value of pattern %s)", err, c.Name)
	}
	one.named = c.named
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
