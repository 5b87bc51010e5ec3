package figure

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/scalebench/scalebench/metrics/scaling"
)

func throughput(curves []scaling.Curve, _ []scaling.Observation) (chart, error) {
	if err := needBase(curves); err != nil {
		return chart{}, err
	}
	c := chart{x: workersAxis(), y: logAxis("throughput (samples/s)")}
	for _, cv := range curves {
		c.idealLine(cv, cv.Base.Throughput)
	}
	for i, cv := range curves {
		c.addCurve(i, cv, 1, func(p *scaling.Point) *scaling.Estimate { return p.Throughput })
	}
	c.caption = about(curves)
	c.labelIdeal()
	c.caption = append(c.caption, bars(estimates(curves, func(p *scaling.Point) *scaling.Estimate { return p.Throughput }), "exact binomial interval of the median")...)
	return c, c.fit()
}

func speedup(curves []scaling.Curve, _ []scaling.Observation) (chart, error) {
	if err := needBase(curves); err != nil {
		return chart{}, err
	}
	c := chart{x: workersAxis(), y: logAxis("speedup over the base")}
	c.y.binary = true
	if n, same := commonBase(curves); same {
		c.y.title = "speedup over " + workers(n)
	}
	c.ratioIdeals(curves, true)
	for i, cv := range curves {
		c.addCurve(i, cv, cv.Base.Throughput, func(p *scaling.Point) *scaling.Estimate { return p.Speedup })
	}
	c.caption = about(curves)
	c.labelIdeal()
	c.caption = append(c.caption, bars(estimates(curves, func(p *scaling.Point) *scaling.Estimate { return p.Speedup }), "Hodges–Lehmann interval over all ratios of runs")...)
	return c, c.fit()
}

func efficiency(curves []scaling.Curve, _ []scaling.Observation) (chart, error) {
	if err := needBase(curves); err != nil {
		return chart{}, err
	}
	c := chart{x: workersAxis(), y: newAxis("efficiency")}
	c.y.zero = true
	c.ratioIdeals(curves, false)
	for i, cv := range curves {
		base := cv.Base
		c.addScaled(i, cv, func(p *scaling.Point, x float64) float64 {
			return x / base.Throughput * (float64(base.Workers) / float64(p.Workers))
		}, func(p *scaling.Point) *scaling.Estimate { return p.Efficiency })
	}
	c.caption = about(curves)
	c.labelIdeal()
	c.caption = append(c.caption, bars(estimates(curves, func(p *scaling.Point) *scaling.Estimate { return p.Efficiency }), "Hodges–Lehmann interval over all ratios of runs")...)
	err := c.fit()
	c.y.max = max(c.y.max, 1.1)
	return c, err
}

// addCurve draws one series whose single runs are their throughputs over unit.
func (c *chart) addCurve(style int, cv scaling.Curve, unit float64, of func(*scaling.Point) *scaling.Estimate) {
	c.addScaled(style, cv, func(_ *scaling.Point, x float64) float64 { return x / unit }, of)
}

// addScaled draws one series: every run a dot, an interval a bar, the medians
// joined along N and labelled at the end.
func (c *chart) addScaled(style int, cv scaling.Curve, scale func(*scaling.Point, float64) float64, of func(*scaling.Point) *scaling.Estimate) {
	series := clean(cv.Series)
	var line []XY
	var medians []Mark
	for i := range cv.Points {
		p := &cv.Points[i]
		n := float64(p.Workers)
		runs := p.Throughputs()
		for _, x := range runs {
			if y := scale(p, x); y > 0 && !math.IsInf(y, 1) {
				c.add(Mark{Kind: Dot, Series: series, Points: []XY{{n, y}}, style: style, alone: len(runs) == 1})
			}
		}
		e := of(p)
		if e == nil {
			c.addLine(style, series, line)
			line = nil
			continue
		}
		if in := e.Interval; in != nil {
			c.add(Mark{Kind: Bar, Series: series, Points: []XY{{n, in.Low}, {n, in.High}}, style: style})
		}
		medians = append(medians, Mark{Kind: Median, Series: series, Points: []XY{{n, e.Value}}, style: style})
		line = append(line, XY{n, e.Value})
	}
	c.addLine(style, series, line)
	c.marks = append(c.marks, medians...)
	if len(medians) > 0 {
		c.add(Mark{Kind: Label, Series: series, Points: medians[len(medians)-1].Points, Text: series, style: style})
	}
}

func (c *chart) addLine(style int, series string, points []XY) {
	if len(points) > 1 {
		c.add(Mark{Kind: Line, Series: series, Points: points, style: style})
	}
}

// idealLine rises from the base in proportion to the workers, y being its
// value there.
func (c *chart) idealLine(cv scaling.Curve, y float64) {
	first, last := span([]scaling.Curve{cv})
	at := func(n int) XY { return XY{float64(n), y * (float64(n) / float64(cv.Base.Workers))} }
	if first < last {
		c.add(Mark{Kind: Ideal, Points: []XY{at(first), at(last)}, style: -1})
	}
}

// ratioIdeals draws the ideal speedups or efficiencies, one for each base.
func (c *chart) ratioIdeals(curves []scaling.Curve, rising bool) {
	first, last := span(curves)
	if first == last {
		return
	}
	drawn := map[int]bool{}
	for _, cv := range curves {
		base := cv.Base.Workers
		if !rising {
			base = 0 // the same for all
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

// labelIdeal explains the ideal lines, if any, and names the highest of the ideal lines, which stands for all.
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

// span is the smallest and the largest worker count measured.
func span(curves []scaling.Curve) (first, last int) {
	for _, cv := range curves {
		for _, p := range cv.Points {
			if p.Throughput == nil {
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

func timeToAccuracy(curves []scaling.Curve, _ []scaling.Observation) (chart, error) {
	type series struct {
		name    string
		curve   int
		target  float64
		targets int // of the curve
	}
	var list []series
	var longest float64
	reached, asked := false, false
	for i, cv := range curves {
		var targets []float64
		for _, p := range cv.Points {
			for _, t := range p.TimeToAccuracy {
				asked = true
				reached = reached || t.Reached > 0
				if t.Seconds != nil {
					longest = max(longest, *t.Seconds)
				}
				targets = insert(targets, t.Target)
			}
		}
		for _, t := range targets {
			name := "accuracy " + number(t, 6)
			if len(curves) > 1 {
				name = clean(cv.Series) + ", " + name
			}
			list = append(list, series{name, i, t, len(targets)})
		}
	}
	switch {
	case !asked:
		return chart{}, errors.New("no run has a target accuracy; give the study workload.targets")
	case !reached:
		return chart{}, errors.New("no run reached any of its targets; the accuracy figure shows how far they came")
	}
	c := chart{x: workersAxis(), y: timeAxis("time to accuracy", longest)}
	c.y.log = true
	var misses []string
	var drawn []estimate
	for style, s := range list {
		var missed []string
		var line []XY
		var medians []Mark
		flush := func() { c.addLine(style, s.name, line); line = nil }
		for _, p := range curves[s.curve].Points {
			n := float64(p.Workers)
			for _, t := range p.TimeToAccuracy {
				if t.Target != s.target {
					continue
				}
				drawn = append(drawn, estimate{p.Workers, t.Interval, t.Why})
				if in := t.Interval; in != nil {
					c.add(Mark{Kind: Bar, Series: s.name, Points: []XY{{n, in.Low}, {n, in.High}}, style: style})
				}
				for _, x := range t.Times {
					c.add(Mark{Kind: Dot, Series: s.name, Points: []XY{{n, x}}, style: style, alone: t.Runs == 1})
				}
				if t.Reached < t.Runs {
					c.add(Mark{Kind: Missed, Series: s.name, Points: []XY{{n, math.Inf(1)}}, style: style})
					missed = append(missed, fmt.Sprintf("%d/%d at %s", t.Reached, t.Runs, workers(p.Workers)))
				}
				if t.Seconds == nil {
					flush()
					continue
				}
				medians = append(medians, Mark{Kind: Median, Series: s.name, Points: []XY{{n, *t.Seconds}}, style: style})
				line = append(line, XY{n, *t.Seconds})
			}
		}
		flush()
		if missed != nil {
			misses = append(misses, s.name+": "+strings.Join(missed, ", "))
		}
		c.marks = append(c.marks, medians...)
		end := Mark{Kind: Label, Series: s.name, Text: s.name, style: style}
		if len(medians) > 0 {
			end.Points = medians[len(medians)-1].Points
		} else {
			end.Points = []XY{{float64(curves[s.curve].Points[0].Workers), math.Inf(1)}}
		}
		c.add(end)
	}
	c.caption = append(scalings(curves), "Dots: runs; markers: medians, a run that misses a target ranking last.")
	c.caption = append(c.caption, ttaRuns(curves)...)
	c.caption = append(c.caption, bars(drawn, "exact binomial interval of the median")...)
	if misses != nil {
		c.caption = append(c.caption, "Crosses at the top: runs missed the target. Reached "+strings.Join(misses, "; ")+".")
	}
	return c, c.fit()
}
