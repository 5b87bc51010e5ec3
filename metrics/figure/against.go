package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// against draws measures (y) against another measure (x) of the same points, such as latency
// against throughput. Points are connected in the order of the curves' axis, such as the load.
func against(x measure.Measure, ys []measure.Measure) build {
	return func(d Data, _ Options) ([]chart, error) {
		var list []trend
		for _, t := range measured(d.Curves, ys...) {
			if slices.ContainsFunc(t.curve.Points, func(p scaling.Point) bool { return t.at(&p).Median != nil && p.Of(x.Name).Median != nil }) {
				list = append(list, t)
			}
		}
		if list == nil {
			return nil, fmt.Errorf("nothing to draw: no point has both %s and %s", titles(ys), x.Title)
		}
		c := pairs{chart: chart{scattered: true}, over: x}
		for style, t := range list {
			c.trend(style, t)
		}
		c.x, c.y = measureAxis(x, slices.Max(c.xs)), measuresAxis(ys, slices.Max(c.ys))
		for of, values := range map[*axis][]float64{&c.x: c.xs, &c.y: c.ys} {
			least, most := slices.Min(values), slices.Max(values)
			of.log = least > 0 && most/least > 10
			of.zero = !of.log && least >= 0
		}
		limits := c.limits(list)
		if len(list) > 1 {
			c.marks = append(c.marks, c.labels...)
		}
		along := shown(last(list[0].curve.Axis))
		c.caption = append(c.caption, fmt.Sprintf("Dots: runs; markers: medians, joined along %s (numbers).", along))
		c.cross(list)
		c.caption = append(c.caption, runsOfEach(list)...)
		c.caption = append(c.caption, limits...)
		of := func(s *scaling.Summary) *scaling.Estimate { return s.Median }
		across := slices.Clone(list) // the same points, for the other measure
		for i := range across {
			across[i].measure = x
		}
		c.caption = append(c.caption, bars(append(estimates(list, of), estimates(across, of)...), "exact binomial intervals of both medians")...)
		if c.missing > 0 {
			c.caption = append(c.caption, fmt.Sprintf("Not drawn: points without %s.", titles(ys)))
		}
		err := c.fit()
		return []chart{c.chart}, err
	}
}

// pairs builds a chart of one or more measures (y) against another measure (x).
type pairs struct {
	chart
	over    measure.Measure
	labels  []Mark
	xs, ys  []float64 // all drawn values
	missing int       // number of points that have only the x measure
}

// trend draws one measure of one series: the runs, the intervals in both directions, and the
// medians, connected by a line.
func (c *pairs) trend(style int, t trend) {
	var line []XY
	var medians []Mark
	for i := range t.curve.Points {
		p := &t.curve.Points[i]
		h, v := p.Of(c.over.Name).Median, t.at(p).Median
		if h == nil || v == nil {
			if h != nil {
				c.missing++
			}
			c.addLine(style, t.name, line)
			line = nil
			continue
		}
		at := XY{h.Value, v.Value}
		c.dots(style, t, p)
		if in := h.Interval; in != nil {
			c.add(Mark{Kind: Bar, Series: t.name, Points: []XY{{in.Low, at.Y}, {in.High, at.Y}}, style: style, alone: true})
		}
		if in := v.Interval; in != nil {
			c.add(Mark{Kind: Bar, Series: t.name, Points: []XY{{at.X, in.Low}, {at.X, in.High}}, style: style, alone: true})
		}
		medians = append(medians, Mark{Kind: Median, Series: t.name, Points: []XY{at}, style: style},
			Mark{Kind: Tag, Series: t.name, Points: []XY{at}, Text: p.At.String(), style: style, spare: true})
		line = append(line, at)
		c.xs, c.ys = append(c.xs, at.X), append(c.ys, at.Y)
	}
	c.addLine(style, t.name, line)
	largest := &medians[len(medians)-1]
	largest.spare = false
	c.marks = append(c.marks, medians...)
	c.labels = append(c.labels, Mark{Kind: Label, Series: t.name, Points: largest.Points, Text: t.name, style: style})
}

// dots draws the runs of a point that have both measures.
func (c *pairs) dots(style int, t trend, p *scaling.Point) {
	for _, r := range p.Runs {
		x, hasX := r.Values[c.over.Name]
		y, hasY := r.Values[t.measure.Name]
		if hasX && hasY && !math.IsNaN(x+y) && !math.IsInf(x+y, 0) {
			c.add(Mark{Kind: Dot, Series: t.name, Points: []XY{{x, y}}, style: style, alone: true})
			c.xs, c.ys = append(c.xs, x), append(c.ys, y)
		}
	}
}

// limits draws dashed lines at the study's limits for the drawn measures, probes included. A limit
// far above all values would leave them no room: the caption names it instead.
func (c *chart) limits(list []trend) []string {
	ends, most := []XY{{X: math.Inf(1)}, {X: math.Inf(-1)}}, 0.0
	for _, mark := range c.marks {
		for _, p := range mark.Points {
			ends[0].X, ends[1].X, most = min(ends[0].X, p.X), max(ends[1].X, p.X), max(most, p.Y)
		}
	}
	seen := map[float64]bool{}
	var drawn, above []string
	for _, t := range list {
		text, _ := t.curve.Parameters["workload.limit"].(string)
		limit, err := measure.ParseLimit(text)
		seconds, has := limit.Seconds[strings.TrimPrefix(t.measure.Name, measure.Probe)]
		if err != nil || !has || seen[seconds] {
			continue
		}
		seen[seconds] = true
		words := t.measure.Title + " " + t.measure.Text(seconds)
		if seconds > 3*most {
			above = append(above, words)
			continue
		}
		c.marks = append([]Mark{{Kind: Target, Points: []XY{{ends[0].X, seconds}, {ends[1].X, seconds}}, style: -1}}, c.marks...)
		drawn = append(drawn, words)
	}
	var sentences []string
	if drawn != nil {
		sentences = append(sentences, "Dashed: the limit, "+strings.Join(drawn, ", ")+".")
	}
	if above != nil {
		sentences = append(sentences, "Above the plot: the limit, "+strings.Join(above, ", ")+".")
	}
	return sentences
}

// runsOfEach returns the number of runs per point for each measure, or once if all measures have
// the same numbers.
func runsOfEach(list []trend) []string {
	var texts, names []string
	for _, t := range list {
		if slices.Contains(names, t.measure.Title) {
			continue
		}
		names = append(names, t.measure.Title)
		own := slices.DeleteFunc(slices.Clone(list), func(o trend) bool { return o.measure.Name != t.measure.Name })
		texts = append(texts, runsOf(own))
	}
	if len(slices.Compact(slices.Clone(texts))) == 1 {
		return texts[:1]
	}
	for i := range texts {
		texts[i] = names[i] + ": " + strings.ToLower(texts[i][:1]) + texts[i][1:]
	}
	return texts
}

// titles joins the titles of measures.
func titles(list []measure.Measure) string {
	words := make([]string, len(list))
	for i, m := range list {
		words[i] = m.Title
	}
	return strings.Join(words, ", ")
}

// measuresAxis returns an axis for several measures that share it.
func measuresAxis(list []measure.Measure, longest float64) axis {
	m := list[0]
	m.Title = titles(list)
	return measureAxis(m, longest)
}

// Together returns the measures in the name of a figure: one, or several separated by commas,
// which must be able to share an axis.
func Together(kind string, find func(string) (measure.Measure, error)) ([]measure.Measure, error) {
	var list []measure.Measure
	for name := range strings.SplitSeq(kind, ",") {
		m, err := find(name)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(list, func(o measure.Measure) bool { return o.Name == m.Name }); i >= 0 {
			return nil, fmt.Errorf("%s is named twice", m.Name)
		}
		if len(list) > 0 && (m.Unit != list[0].Unit || m.Show != list[0].Show || m.At != list[0].At) {
			return nil, fmt.Errorf("%s and %s cannot share an axis: their units, or their positions within a run, differ", list[0].Name, m.Name)
		}
		list = append(list, m)
	}
	return list, nil
}
