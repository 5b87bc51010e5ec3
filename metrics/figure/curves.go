package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// trend is one measure of one series over the axis of the curves.
type trend struct {
	curve   scaling.Curve
	measure measure.Measure
	name    string // label of the line
}

// at returns the measure's summary over the runs of a point.
func (t *trend) at(p *scaling.Point) *scaling.Summary { return p.Of(t.measure.Name) }

// base returns the measure's summary over the base's runs.
func (t *trend) base() *scaling.Summary { return t.curve.Base.Of(t.measure.Name) }

// trends returns the main measures, throughput and times to targets, of every series that
// has a base. If there are several measures, names include the measure.
func trends(curves []scaling.Curve, with func(measure.Measure) bool) []trend {
	var list []trend
	several := map[string]bool{}
	for _, cv := range curves {
		seen := map[string]bool{}
		for i := range cv.Points {
			for _, s := range cv.Points[i].Measures {
				if !seen[s.Name] && with(s.Measure) && s.Median != nil && cv.Base != nil && cv.Base.Of(s.Name).Median != nil {
					seen[s.Name], several[s.Name] = true, true
					list = append(list, trend{curve: cv, measure: s.Measure})
				}
			}
		}
	}
	for i := range list {
		t := &list[i]
		switch {
		case len(several) == 1:
			t.name = shown(t.curve.Series)
		case len(curves) == 1:
			t.name = t.measure.Title
		default:
			t.name = shown(t.curve.Series) + ", " + t.measure.Title
		}
	}
	return list
}

func isThroughput(m measure.Measure) bool { return m.Name == measure.Throughput }

// work draws plots about the work of a training: its throughput, and the time to one target. With
// a line for every target, they would be unreadable.
type work struct {
	goal *measure.Target // nil: the program's own, or else the hardest that a base reaches
}

// ofWork returns a build function for a plot that uses Options.Goal.
func ofWork(one func(work, Data) (chart, error)) build {
	return func(d Data, o Options) ([]chart, error) {
		c, err := one(work{o.Goal}, d)
		return []chart{c}, err
	}
}

// measures returns a function that reports whether a measure is drawn.
func (w work) measures(curves []scaling.Curve) (func(measure.Measure) bool, error) {
	var goal *measure.Measure
	var known []string
	for _, t := range trends(curves, func(m measure.Measure) bool { return m.Missable }) {
		if title := strings.TrimPrefix(t.measure.Title, "time to "); !slices.Contains(known, title) {
			known = append(known, title)
		}
		better := goal == nil || t.measure.Name == measure.ToTarget || goal.Name != measure.ToTarget && measure.ByGoal(t.measure, *goal) > 0
		if w.goal != nil {
			better = t.measure.Name == w.goal.Time().Name
		}
		if better {
			goal = &t.measure
		}
	}
	switch {
	case w.goal != nil && goal == nil && known == nil:
		return nil, fmt.Errorf("no series has a base that reached a target; `workload.targets` in the study sets targets")
	case w.goal != nil && goal == nil:
		return nil, fmt.Errorf("no series has a base that reached the target %s; reached: %s", w.goal, strings.Join(known, ", "))
	}
	return func(m measure.Measure) bool { return isThroughput(m) || goal != nil && m.Name == goal.Name }, nil
}

func throughput(d Data) (chart, error) {
	curves := d.Curves
	if err := needBase(curves, isThroughput); err != nil {
		return chart{}, err
	}
	c := chart{x: workersAxis(), y: logAxis("throughput (" + scaling.RateUnit(curves...) + ")")}
	list := trends(curves, isThroughput)
	for _, t := range list {
		c.idealLine(t.curve, t.base().Median.Value)
	}
	of := func(s *scaling.Summary) *scaling.Estimate { return s.Median }
	for i, t := range list {
		c.addTrend(i, t, func(_ *scaling.Point, x float64) float64 { return x }, of)
	}
	c.caption = append(about(list), baseless(curves, isThroughput)...)
	c.labelIdeal()
	c.caption = append(c.caption, bars(estimates(list, of), "exact binomial interval of the median")...)
	return c, c.fit()
}

func (w work) speedup(d Data) (chart, error) {
	curves := d.Curves
	with, err := w.measures(curves)
	if err != nil {
		return chart{}, err
	}
	if err := needBase(curves, with); err != nil {
		return chart{}, err
	}
	c := chart{x: workersAxis(), y: logAxis("speedup over the base")}
	c.y.binary = true
	list := trends(curves, with)
	if n, same := commonBase(list); same {
		c.y.title = "speedup over " + workers(n)
	}
	c.ratioIdeals(list, true)
	for i, t := range list {
		base := t.base().Median.Value
		c.addTrend(i, t, func(_ *scaling.Point, x float64) float64 { return t.measure.Gain(x, base) }, (*scaling.Summary).Gain)
	}
	c.caption = append(about(list), baseless(curves, with)...)
	c.labelIdeal()
	c.caption = append(c.caption, bars(estimates(list, (*scaling.Summary).Gain), "interval of a ratio of medians")...)
	return c, c.fit()
}

// efficiency draws the efficiency of the throughput, or of the time to a target if one
// is requested or throughput is missing.
func (w work) efficiency(d Data) (chart, error) {
	curves := d.Curves
	with := isThroughput
	if w.goal != nil || len(trends(curves, with)) == 0 {
		var err error
		if with, err = w.measures(curves); err != nil {
			return chart{}, err
		}
	}
	if err := needBase(curves, with); err != nil {
		return chart{}, err
	}
	c := chart{x: workersAxis(), y: newAxis("efficiency")}
	c.y.zero = true
	list := trends(curves, with)
	c.ratioIdeals(list, false)
	for i, t := range list {
		base, at := t.base().Median.Value, t.curve.Base.Workers
		c.addTrend(i, t, func(p *scaling.Point, x float64) float64 {
			return t.measure.Gain(x, base) * (float64(at) / float64(p.Workers))
		}, (*scaling.Summary).Efficiency)
	}
	c.caption = append(about(list), baseless(curves, with)...)
	c.labelIdeal()
	c.caption = append(c.caption, bars(estimates(list, (*scaling.Summary).Efficiency), "interval of a ratio of medians")...)
	err := c.fit()
	c.y.max = max(c.y.max, 1.1)
	return c, err
}

// addTrend draws one trend: a dot for each run, a bar for each interval, and a line through the
// medians, with a label at its end.
func (c *chart) addTrend(style int, t trend, scale func(*scaling.Point, float64) float64, of func(*scaling.Summary) *scaling.Estimate) {
	var line []XY
	var medians []Mark
	step, rank := c.dotStep(t), 0
	for i := range t.curve.Points {
		p := &t.curve.Points[i]
		n := p.At.Number
		s := t.at(p)
		for j, x := range s.Values {
			if outer := j == 0 || j == len(s.Values)-1; !outer && (rank+j)%step != 0 {
				continue
			}
			if y := scale(p, x); y > 0 && !math.IsInf(y, 1) {
				c.add(Mark{Kind: Dot, Series: t.name, Points: []XY{{n, y}}, style: style, alone: len(s.Values) == 1})
			}
		}
		rank += len(s.Values)
		e := of(s)
		if e == nil {
			c.addLine(style, t.name, line)
			line = nil
			continue
		}
		if in := e.Interval; in != nil {
			c.add(Mark{Kind: Bar, Series: t.name, Points: []XY{{n, in.Low}, {n, in.High}}, style: style})
		}
		medians = append(medians, Mark{Kind: Median, Series: t.name, Points: []XY{{n, e.Value}}, style: style})
		line = append(line, XY{n, e.Value})
	}
	c.addLine(style, t.name, line)
	c.marks = append(c.marks, medians...)
	if len(medians) > 0 {
		c.add(Mark{Kind: Label, Series: t.name, Points: medians[len(medians)-1].Points, Text: t.name, style: style})
	}
}

func (c *chart) addLine(style int, series string, points []XY) {
	if len(points) > 1 {
		c.add(Mark{Kind: Line, Series: series, Points: points, style: style})
	}
}

// idealLine draws a line that rises from the base in proportion to the workers; y is its
// value at the base.
func (c *chart) idealLine(cv scaling.Curve, y float64) {
	first, last := span([]scaling.Curve{cv}, isThroughput)
	at := func(n int) XY { return XY{float64(n), y * (float64(n) / float64(cv.Base.Workers))} }
	if first < last {
		c.add(Mark{Kind: Ideal, Points: []XY{at(first), at(last)}, style: -1})
	}
}

// ratioIdeals draws the ideal speedups or efficiencies, one per base.
func (c *chart) ratioIdeals(list []trend, rising bool) {
	var curves []scaling.Curve
	for _, t := range list {
		curves = append(curves, t.curve)
	}
	first, last := span(curves, func(m measure.Measure) bool {
		return slices.ContainsFunc(list, func(t trend) bool { return t.measure.Name == m.Name })
	})
	if first == last {
		return
	}
	drawn := map[int]bool{}
	for _, cv := range curves {
		base := cv.Base.Workers
		if !rising {
			base = 0 // the same for all bases
		}
		if drawn[base] {
			continue
		}
		drawn[base] = true
		from, to := 1.0, 1.0
		if rising {
			from, to = float64(first)/float64(base), float64(last)/float64(base)
		}
		c.add(Mark{Kind: Ideal, Points: []XY{{float64(first), from}, {float64(last), to}}, style: -1})
	}
}

// labelIdeal adds one label for all ideal lines, at the highest.
func (c *chart) labelIdeal() {
	var top *XY
	for _, m := range c.marks {
		if m.Kind == Ideal && (top == nil || m.Points[1].Y > top.Y) {
			top = &m.Points[1]
		}
	}
	if top != nil {
		c.add(Mark{Kind: Label, Points: []XY{*top}, Text: "ideal", style: -1})
		c.caption = append(c.caption, "Dashed: ideal.")
	}
}

// span returns the smallest and the largest worker count that has one of the measures.
func span(curves []scaling.Curve, with func(measure.Measure) bool) (first, last int) {
	for _, cv := range curves {
		for _, p := range cv.Points {
			if !slices.ContainsFunc(p.Measures, func(s *scaling.Summary) bool { return with(s.Measure) && s.Median != nil }) {
				continue
			}
			if first == 0 || p.Workers < first {
				first = p.Workers
			}
			last = max(last, p.Workers)
		}
	}
	return first, last
}
