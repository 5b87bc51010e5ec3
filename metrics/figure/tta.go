package figure

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// goalSeries is the series of times of one curve to one target.
type goalSeries struct {
	name  string
	curve scaling.Curve
	goal  measure.Measure
}

// times is a chart of times to targets under construction.
type times struct {
	chart
	drawn  []estimate
	misses []string // by series: "N of M runs reached the target", if some missed it
}

// timeToAccuracy draws the time to each target over the workers, and marks points where
// runs missed it.
func timeToAccuracy(d Data) (chart, error) {
	list, longest, err := goalsOf(d.Curves)
	if err != nil {
		return chart{}, err
	}
	what := "time to accuracy"
	if slices.ContainsFunc(list, func(s goalSeries) bool {
		t, ok := measure.TargetOf(s.goal.Name)
		return !ok || t.Of != measure.OfAccuracy
	}) {
		what = "time to target"
	}
	c := times{chart: chart{x: workersAxis(), y: timeAxis(what, longest)}}
	c.y.log = true
	for style, s := range list {
		c.series(style, s)
	}
	c.caption = append(scalings(d.Curves), "Dots: runs; markers: medians, a run that misses a target ranking last.")
	c.caption = append(c.caption, ttaRuns(d.Curves)...)
	c.caption = append(c.caption, bars(c.drawn, "exact binomial interval of the median")...)
	if c.misses != nil {
		c.caption = append(c.caption, "Crosses at the top: runs missed the target. Reached "+strings.Join(c.misses, "; ")+".")
	}
	err = c.fit()
	return c.chart, err
}

// goalsOf lists the targets of each curve, and the longest median time to one. It returns
// an error if no curve has a target, or if no run reached one.
func goalsOf(curves []scaling.Curve) (list []goalSeries, longest float64, err error) {
	reached := false
	for _, cv := range curves {
		var targets []measure.Measure
		for _, p := range cv.Points {
			for _, t := range p.Targets() {
				reached = reached || t.Reached() > 0
				if t.Median != nil {
					longest = max(longest, t.Median.Value)
				}
				if !slices.Contains(targets, t.Measure) {
					targets = append(targets, t.Measure)
				}
			}
		}
		slices.SortFunc(targets, measure.ByGoal)
		for _, t := range targets {
			name := t.GoalText()
			if len(curves) > 1 {
				name = shown(cv.Series) + ", " + name
			}
			list = append(list, goalSeries{name, cv, t})
		}
	}
	switch {
	case list == nil:
		return nil, 0, errors.New("no run has a target; set workload.targets in the study")
	case !reached:
		return nil, 0, errors.New("no run reached any of its targets; the accuracy figure shows how close they came")
	}
	return list, longest, nil
}

// series draws the times to one target.
func (c *times) series(style int, s goalSeries) {
	var missed []string
	var line []XY
	var medians []Mark
	for _, p := range s.curve.Points {
		t := p.Of(s.goal.Name)
		if t.Runs == 0 {
			continue
		}
		n := float64(p.Workers)
		c.point(style, s.name, p.Workers, t)
		if t.Reached() < t.Runs {
			c.add(Mark{Kind: Missed, Series: s.name, Points: []XY{{n, math.Inf(1)}}, style: style})
			missed = append(missed, fmt.Sprintf("%d/%d at %s", t.Reached(), t.Runs, workers(p.Workers)))
		}
		if t.Median == nil {
			c.addLine(style, s.name, line)
			line = nil
			continue
		}
		medians = append(medians, Mark{Kind: Median, Series: s.name, Points: []XY{{n, t.Median.Value}}, style: style})
		line = append(line, XY{n, t.Median.Value})
	}
	c.addLine(style, s.name, line)
	if missed != nil {
		c.misses = append(c.misses, s.name+": "+strings.Join(missed, ", "))
	}
	c.marks = append(c.marks, medians...)
	end := Mark{Kind: Label, Series: s.name, Text: s.name, style: style, Points: []XY{{float64(s.curve.Points[0].Workers), math.Inf(1)}}}
	if len(medians) > 0 {
		end.Points = medians[len(medians)-1].Points
	}
	c.add(end)
}

// point draws the interval and the runs of one point.
func (c *times) point(style int, name string, workers int, t *scaling.Summary) {
	n := float64(workers)
	e := estimate{"worker", workers, nil, t.Why, false}
	if t.Median != nil {
		e = estimate{"worker", workers, t.Median.Interval, t.Median.Why, false}
		if in := t.Median.Interval; in != nil {
			c.add(Mark{Kind: Bar, Series: name, Points: []XY{{n, in.Low}, {n, in.High}}, style: style})
		}
	}
	c.drawn = append(c.drawn, e)
	for _, x := range t.Values {
		c.add(Mark{Kind: Dot, Series: name, Points: []XY{{n, x}}, style: style, alone: t.Runs == 1})
	}
}
