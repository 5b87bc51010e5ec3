package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// manyLooks is the number of combinations of colour and marker that readers can distinguish where
// lines cross.
const manyLooks = 14

// judged describes a result of evaluations (accuracy, loss, perplexity) that is drawn as one line
// per run.
type judged struct {
	of    string // the target's name for it
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
	// A perplexity is judged by its ratio, as a loss is by its difference.
	perplexities = judged{measure.OfPerplexity, "test perplexity", true, func(e scaling.Evaluation) (float64, bool) {
		if e.Loss == nil {
			return 0, false
		}
		return math.Exp(*e.Loss), true
	}}
)

// againstTime draws one thin line per run against the time since training began.
func (j judged) againstTime(d Data) (chart, error) {
	return j.traces(d, func(longest float64) axis { return timeAxis("training time", longest) },
		func(_ *scaling.Observation, e scaling.Evaluation) float64 { return e.Seconds })
}

// againstSamples draws one line per run against the samples trained on, over all ranks. If lines
// differ here, the runs learned differently from the same data, as with a batch that is too large
// to converge. If every run states its tokens per sample, the axis is in tokens, because samples
// may differ in length.
func (j judged) againstSamples(d Data) (chart, error) {
	what := "samples"
	each := func(o *scaling.Observation) float64 { return 1 }
	if j.of != measure.OfAccuracy && !slices.ContainsFunc(d.Observations, func(o scaling.Observation) bool { return !(o.Values[measure.TokensPerSample] >= 1) }) {
		what = "tokens"
		each = func(o *scaling.Observation) float64 { return o.Values[measure.TokensPerSample] }
	}
	return j.traces(d, func(most float64) axis {
		a := newAxis(what + " trained on")
		if most >= 1e6 {
			a.unit, a.title = 1e6, a.title+" (millions)"
		}
		return a
	}, func(o *scaling.Observation, e scaling.Evaluation) float64 { return float64(e.Samples) * each(o) })
}

// A where function returns the position of an evaluation on the x axis.
type where func(*scaling.Observation, scaling.Evaluation) float64

// tracing builds a chart with one line per run.
type tracing struct {
	chart
	judged
	at       where
	byRun    map[string]*scaling.Observation
	bySeries bool // one look (colour, marker and dashes) per series; otherwise per worker count of each series
	alone    bool // whether there is only one series

	targets       []float64
	lines, missed int
	labels, ends  []Mark
}

// traces draws one line per run; at gives the positions on the x axis.
func (j judged) traces(d Data, along func(most float64) axis, at where) (chart, error) {
	byRun := scaling.ByRun(d.Observations)
	longest := 0.0
	for i := range d.Observations {
		for _, p := range j.trace(&d.Observations[i], at) {
			longest = max(longest, p.X)
		}
	}
	// Each pair of series and worker count gets its own colour and marker. If there are too many
	// pairs to distinguish, each series gets one.
	looks := 0
	for _, cv := range d.Curves {
		looks += len(cv.Points)
	}
	c := tracing{chart: chart{x: along(longest), y: newAxis(j.title), scattered: true}, judged: j, at: at, byRun: byRun,
		bySeries: looks > manyLooks && len(d.Curves) > 1, alone: len(d.Curves) == 1}
	c.x.zero, c.y.zero, c.y.log = true, !j.log, j.log
	for _, cv := range d.Curves {
		c.series(cv)
	}
	if c.lines == 0 {
		return chart{}, fmt.Errorf("nothing to draw: no run has an evaluation%s", map[bool]string{true: " with a loss"}[j.of != measure.OfAccuracy])
	}
	for _, t := range c.targets {
		c.add(Mark{Kind: Target, Points: []XY{{0, t}, {longest, t}}, style: -1})
		c.labels = append(c.labels, Mark{Kind: Label, Points: []XY{{longest, t}}, Text: "target " + number.Short(t, 12), style: -1})
	}
	c.marks = append(append(c.marks, c.ends...), c.labels...)
	c.caption = append(scalings(d.Curves), "One line per run.", perSeries("runs per point: ", d.Curves, func(cv scaling.Curve) string {
		return runsAt(cv, func(p scaling.Point) int { return len(p.Runs) })
	}))
	if c.bySeries {
		c.caption = append(c.caption, "A series' lines cover all its worker counts.")
	}
	switch {
	case c.missed > 0:
		c.caption = append(c.caption, fmt.Sprintf("Crosses: %d of %s missed a target.", c.missed, number.Count(c.lines, "run")))
	case c.targets != nil:
		c.caption = append(c.caption, "Every run reached its targets.")
	}
	err := c.fit()
	if j.of == measure.OfAccuracy {
		c.y.max = min(c.y.max, 1.05)
	}
	return c.chart, err
}

// series draws the runs of a curve, and labels the longest line of each colour and marker.
func (c *tracing) series(cv scaling.Curve) {
	var last *XY
	for i, p := range cv.Points {
		name := shown(cv.Series)
		switch {
		case c.alone:
			name = workers(p.Workers)
		case !c.bySeries:
			name += ", " + workers(p.Workers)
		}
		style := len(c.labels) // each look has one label
		for _, r := range p.Runs {
			end := c.run(c.byRun[r.ID], name, style)
			if end != nil && (last == nil || end.X > last.X) {
				last = end
			}
		}
		if last == nil || c.bySeries && i < len(cv.Points)-1 {
			continue
		}
		c.labels = append(c.labels, Mark{Kind: Label, Series: name, Points: []XY{*last}, Text: name, style: style})
		last = nil
	}
}

// run draws the line of one run and returns the line's end; nil if the run has fewer points than a
// line needs.
func (c *tracing) run(o *scaling.Observation, name string, style int) *XY {
	line := c.trace(o, c.at)
	if len(line) == 0 {
		return nil
	}
	c.lines++
	end := Mark{Kind: End, Series: name, Points: line[len(line)-1:], style: style}
	for _, target := range o.Targets() {
		if target.Of != c.of {
			continue // a target for another result
		}
		c.targets = insert(c.targets, target.Value)
		if o.Known(target.Time().Name) == nil {
			end.Kind = Missed
		}
	}
	if end.Kind == Missed {
		c.missed++
	}
	if len(line) > 1 {
		c.add(Mark{Kind: Trace, Series: name, Points: line, style: style})
	}
	c.ends = append(c.ends, end)
	return &end.Points[0]
}

// trace returns the points of a run's line, without values that are not finite.
func (j judged) trace(o *scaling.Observation, at where) []XY {
	var line []XY
	for _, e := range o.Evaluations {
		y, ok := j.value(e)
		if x := at(o, e); ok && x >= 0 && !math.IsInf(x, 1) && y >= 0 && !math.IsInf(y, 1) {
			line = append(line, XY{x, y})
		}
	}
	return line
}
