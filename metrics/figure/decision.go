package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// decision draws, for each interim analysis of a study, how many times as fast the larger of the
// two worker counts in question was, with its interval and the threshold. If the study compares
// settings, it draws their ratio.
func decision(d Data) (chart, error) {
	c := chart{x: newAxis("good runs so far"), y: newAxis("times as fast"), scattered: true}
	var series []string
	of := map[string][]metrics.Look{}
	for _, l := range d.Looks {
		if of[l.Series] == nil {
			series = append(series, l.Series)
		}
		of[l.Series] = append(of[l.Series], l)
	}
	dashed := "Dashed: what more workers must bring to be worth it."
	if slices.ContainsFunc(d.Looks, metrics.Look.Contrast) {
		c.y, dashed = newAxis("ratio"), "Dashed: equal."
	}
	several := len(series) > 1
	for style, name := range series {
		c.looks(style, shown(name), of[name], several)
	}
	if len(c.marks) == 0 {
		return c, errNothing
	}
	if c.count(Bar) > 0 {
		c.caption = append(c.caption, fmt.Sprintf("Bars: %s intervals, which hold at all looks together with 95 %%.", number.ExactPercent(d.Looks[len(d.Looks)-1].Confidence)))
	}
	if shown := c.count(Median); c.count(Bar) < shown {
		c.caption = append(c.caption, withoutBar(d.Looks[len(d.Looks)-1]))
	}
	if c.count(Target) > 0 {
		c.caption = append(c.caption, dashed)
	}
	return c, c.fit()
}

// count returns the number of marks of a kind.
func (c *chart) count(kind MarkKind) (n int) {
	for _, m := range c.marks {
		if m.Kind == kind {
			n++
		}
	}
	return n
}

// withoutBar returns a sentence that says why looks of a study like l have no interval.
func withoutBar(l metrics.Look) string {
	least, of := scaling.LeastSeparate, "worker count"
	if l.Contrast() {
		least, of = scaling.LeastRuns(l.Confidence), "setting"
	}
	return fmt.Sprintf("Looks without a bar have no interval: one needs %d runs or more of each %s, not in two groups.", least, of)
}

// looks draws the interim analyses of one series that compare the same two worker counts as the
// last one.
func (c *chart) looks(style int, name string, looks []metrics.Look, several bool) {
	last := looks[len(looks)-1]
	small, large, ok := compared(last)
	if !ok {
		c.caption = append(c.caption, name+": the last look has no ratio.")
		return
	}
	var line []XY
	var marks []Mark
	for _, l := range looks {
		if a, b, ok := compared(l); !ok || a != small || b != large {
			continue
		}
		x := float64(l.Runs)
		line = append(line, XY{x, *l.Ratio})
		if l.Low != nil && l.High != nil {
			marks = append(marks, Mark{Kind: Bar, Series: name, Points: []XY{{x, *l.Low}, {x, *l.High}}, style: style})
		}
		marks = append(marks, Mark{Kind: Median, Series: name, Points: []XY{{x, *l.Ratio}}, style: style})
	}
	p := last.Price
	if last.Contrast() {
		p = new(1.0)
	}
	if p != nil {
		c.add(Mark{Kind: Target, Points: []XY{{line[0].X, *p}, {math.Max(line[len(line)-1].X, line[0].X+1), *p}}, style: -1})
	}
	if len(line) > 1 {
		c.add(Mark{Kind: Line, Series: name, Points: line, style: style})
	}
	c.marks = append(c.marks, marks...)
	if several {
		c.add(Mark{Kind: Label, Series: name, Points: line[len(line)-1:], Text: name, style: style})
	}
	text := "ratio"
	if large > 0 {
		text = fmt.Sprintf("%s over %d", number.Count(large, "worker"), small)
	}
	if left := len(looks) - len(line); left > 0 {
		text += fmt.Sprintf("; %s compared other counts, or none", number.Count(left, "look"))
	}
	state := "not decided"
	if last.Decided {
		state = "decided"
	}
	c.caption = append(c.caption, fmt.Sprintf("%s: %s, %s after %s.", name, text, state, number.Count(last.Runs, "run")))
}

// compared returns the two worker counts that an interim analysis compares, the smaller first; 0
// and 0 if it compares settings. ok is false if it has no ratio.
func compared(l metrics.Look) (small, large int, ok bool) {
	switch {
	case l.Ratio == nil:
		return 0, 0, false
	case l.Contrast():
		return 0, 0, true
	case l.Workers == nil || l.Rival == 0:
		return 0, 0, false
	}
	return min(*l.Workers, l.Rival), max(*l.Workers, l.Rival), true
}
