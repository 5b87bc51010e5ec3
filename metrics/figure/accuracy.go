package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// manyLooks is how many kinds of line one tells apart where they cross.
const manyLooks = 14

// judged is what evaluations found, as one line a run draws it.
type judged struct {
	of    string // what targets call it
	title string
	log   bool
	value func(scaling.Evaluation) (float64, bool)
}

var (
	accuracies = judged{measure.OfAccuracy, "test accuracy", false, func(e scaling.Evaluation) (float64, bool) {
		return e.Accuracy, e.Accuracy >= 0 && e.Accuracy <= 1
	}}
	losses = judged{measure.OfLoss, "test loss", false, func(e scaling.Evaluation) (float64, bool) {
		if e.Loss == nil {
			return 0, false
		}
		return *e.Loss, true
	}}
	// Of a perplexity's beginning and end the ratio tells, as the difference of losses.
	perplexities = judged{measure.OfPerplexity, "test perplexity", true, func(e scaling.Evaluation) (float64, bool) {
		if e.Loss == nil {
			return 0, false
		}
		return math.Exp(*e.Loss), true
	}}
)

// againstTime draws one thin line a run, against the time since training began.
func (j judged) againstTime(d Data) (chart, error) {
	return j.traces(d, func(longest float64) axis { return timeAxis("training time", longest) },
		func(_ scaling.Observation, e scaling.Evaluation) float64 { return e.Seconds })
}

// againstSamples draws it against the samples trained on over all ranks: lines that
// part here have learnt differently from the same data, whatever their speed. That is
// what a batch too large to converge looks like. Where every run says how many tokens
// a sample has, it is against tokens, of which samples of other lengths have others.
func (j judged) againstSamples(d Data) (chart, error) {
	what := "samples"
	each := func(o scaling.Observation) float64 { return 1 }
	if j.of != measure.OfAccuracy && !slices.ContainsFunc(d.Observations, func(o scaling.Observation) bool { return !(o.Values[measure.TokensPerSample] >= 1) }) {
		what = "tokens"
		each = func(o scaling.Observation) float64 { return o.Values[measure.TokensPerSample] }
	}
	return j.traces(d, func(most float64) axis {
		a := newAxis(what + " trained on")
		if most >= 1e6 {
			a.unit, a.title = 1e6, a.title+" (millions)"
		}
		return a
	}, func(o scaling.Observation, e scaling.Evaluation) float64 { return float64(e.Samples) * each(o) })
}

// traces draws one line a run, against at.
func (j judged) traces(d Data, along func(most float64) axis, at func(scaling.Observation, scaling.Evaluation) float64) (chart, error) {
	curves := d.Curves
	byRun := make(map[string]scaling.Observation, len(d.Observations))
	longest := 0.0
	for _, o := range d.Observations {
		byRun[o.Run] = o
		for _, p := range j.trace(o, at) {
			longest = max(longest, p.X)
		}
	}
	c := chart{x: along(longest), y: newAxis(j.title), scattered: true}
	c.x.zero, c.y.zero, c.y.log = true, !j.log, j.log
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
				line := j.trace(o, at)
				if len(line) == 0 {
					continue
				}
				lines++
				end := Mark{Kind: End, Series: name, Points: line[len(line)-1:], style: style}
				for _, target := range o.Targets() {
					if target.Of != j.of {
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
		return chart{}, fmt.Errorf("nothing to draw: no run has an evaluation%s", map[bool]string{true: " with a loss"}[j.of != measure.OfAccuracy])
	}
	for _, t := range targets {
		c.add(Mark{Kind: Target, Points: []XY{{0, t}, {longest, t}}, style: -1})
		labels = append(labels, Mark{Kind: Label, Points: []XY{{longest, t}}, Text: "target " + number.Short(t, 12), style: -1})
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
	if j.of == measure.OfAccuracy {
		c.y.max = min(c.y.max, 1.05)
	}
	return c, err
}

// trace is a run's line against at, without what is no number.
func (j judged) trace(o scaling.Observation, at func(scaling.Observation, scaling.Evaluation) float64) []XY {
	var line []XY
	for _, e := range o.Evaluations {
		y, ok := j.value(e)
		if x := at(o, e); ok && x >= 0 && !math.IsInf(x, 1) && y >= 0 && !math.IsInf(y, 1) {
			line = append(line, XY{x, y})
		}
	}
	return line
}
