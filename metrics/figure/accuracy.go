package figure

import (
	"errors"
	"fmt"
	"math"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// manyLooks is how many kinds of line one tells apart where they cross.
const manyLooks = 14

// accuracy draws one thin line a run, of accuracy on the test split against
// the time since training began.
func accuracy(curves []scaling.Curve, obs []scaling.Observation) (chart, error) {
	return traces(curves, obs, func(longest float64) axis { return timeAxis("training time", longest) },
		func(e scaling.Evaluation) float64 { return e.Seconds })
}

// accuracyBySamples draws it against the samples trained on over all ranks:
// lines that part here have learnt differently from the same data, whatever
// their speed. That is what a batch too large to converge looks like.
func accuracyBySamples(curves []scaling.Curve, obs []scaling.Observation) (chart, error) {
	return traces(curves, obs, func(most float64) axis {
		a := newAxis("samples trained on")
		if most >= 1e6 {
			a.unit, a.title = 1e6, a.title+" (millions)"
		}
		return a
	}, func(e scaling.Evaluation) float64 { return float64(e.Samples) })
}

// traces draws one line a run, of accuracy against at.
func traces(curves []scaling.Curve, obs []scaling.Observation, along func(most float64) axis, at func(scaling.Evaluation) float64) (chart, error) {
	byRun := make(map[string]scaling.Observation, len(obs))
	longest := 0.0
	for _, o := range obs {
		byRun[o.Run] = o
		for _, p := range trace(o, at) {
			longest = max(longest, p.X)
		}
	}
	c := chart{x: along(longest), y: newAxis("test accuracy"), scattered: true}
	c.x.zero, c.y.zero = true, true
	var targets []float64
	style, lines, missed := 0, 0, 0
	var labels, ends []Mark
	// Each worker count of each series has its own look, as long as these can
	// be told apart; beyond that each series has.
	looks := 0
	for _, cv := range curves {
		looks += len(cv.Points)
	}
	bySeries := looks > manyLooks && len(curves) > 1
	for _, cv := range curves {
		var last *XY
		for i, p := range cv.Points {
			name := shown(cv.Series)
			switch {
			case len(curves) == 1:
				name = workers(p.Workers)
			case !bySeries:
				name += ", " + workers(p.Workers)
			}
			for _, r := range p.Runs {
				o := byRun[r.ID]
				line := trace(o, at)
				if len(line) == 0 {
					continue
				}
				lines++
				end := Mark{Kind: End, Series: name, Points: line[len(line)-1:], style: style}
				for _, target := range o.Targets() {
					if target.Of != measure.OfAccuracy {
						continue // of another axis
					}
					targets = insert(targets, target.Value)
					if o.Known(target.Time().Name) == nil {
						end.Kind = Missed
					}
				}
				if end.Kind == Missed {
					missed++
				}
				if len(line) > 1 {
					c.add(Mark{Kind: Trace, Series: name, Points: line, style: style})
				}
				ends = append(ends, end)
				if last == nil || end.Points[0].X > last.X {
					last = &end.Points[0]
				}
			}
			if last == nil || bySeries && i < len(cv.Points)-1 {
				continue
			}
			labels = append(labels, Mark{Kind: Label, Series: name, Points: []XY{*last}, Text: name, style: style})
			style++
			last = nil
		}
	}
	if lines == 0 {
		return chart{}, errors.New("nothing to draw: no run has an evaluation")
	}
	for _, t := range targets {
		c.add(Mark{Kind: Target, Points: []XY{{0, t}, {longest, t}}, style: -1})
		labels = append(labels, Mark{Kind: Label, Points: []XY{{longest, t}}, Text: "target " + number.Short(t, 6), style: -1})
	}
	c.marks = append(append(c.marks, ends...), labels...)
	c.caption = append(scalings(curves), "One line per run.", perSeries("runs per point: ", curves, func(cv scaling.Curve) string {
		return runsAt(cv, func(p scaling.Point) int { return len(p.Runs) })
	}))
	if bySeries {
		c.caption = append(c.caption, "A series' lines cover all its worker counts.")
	}
	switch {
	case missed > 0:
		c.caption = append(c.caption, fmt.Sprintf("Crosses: %d of %s missed a target.", missed, number.Count(lines, "run")))
	case targets != nil:
		c.caption = append(c.caption, "Every run reached its targets.")
	}
	err := c.fit()
	c.y.max = min(c.y.max, 1.05)
	return c, err
}

// trace is a run's accuracy against at, without what is no number.
func trace(o scaling.Observation, at func(scaling.Evaluation) float64) []XY {
	var line []XY
	for _, e := range o.Evaluations {
		if x := at(e); x >= 0 && !math.IsInf(x, 1) && e.Accuracy >= 0 && e.Accuracy <= 1 {
			line = append(line, XY{x, e.Accuracy})
		}
	}
	return line
}
