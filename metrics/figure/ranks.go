package figure

import (
	"errors"
	"fmt"
	"math"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// RankSteps are the step times of every rank of a run.
type RankSteps struct {
	Run     string
	Series  string
	Workers int
	Ranks   []scaling.StepTimes // ascending by rank
}

// ranks draws the distribution of each rank's step times, in one panel per run, so that a slow
// rank is visible.
func ranks(d Data, _ Options) ([]chart, error) {
	runs := d.Ranks
	var charts []chart
	longest, last := 0.0, 0
	for _, r := range runs {
		for _, t := range r.Ranks {
			longest, last = max(longest, t.P95), max(last, t.Rank)
		}
	}
	for i, r := range runs {
		c := chart{x: newAxis("rank"), y: shortTimeAxis("step time", longest)}
		c.x.whole = true
		if len(runs) > 1 {
			c.title = shown(r.Series) + ", " + workers(r.Workers)
		}
		if !c.ranksOf(r, i) {
			continue
		}
		if err := c.fit(); err != nil {
			return nil, err
		}
		for rank := 0; rank <= last; rank += last/manyTicks + 1 {
			c.x.at = append(c.x.at, rank)
		}
		charts = append(charts, c)
	}
	if charts == nil {
		return nil, errors.New("nothing to draw: no run has the step times of its ranks in a steady state")
	}
	return charts, nil
}

// ranksOf draws the ranks of one run; it returns false if none has steps.
func (c *chart) ranksOf(r RankSteps, style int) bool {
	fewest, most := math.MaxInt, 0
	var slowest scaling.StepTimes
	for _, t := range r.Ranks {
		x := float64(t.Rank)
		if !(t.P5 >= 0) || math.IsInf(t.P95, 1) {
			continue
		}
		c.add(Mark{Kind: Trace, Series: r.Run, Points: []XY{{x, t.P5}, {x, t.P95}}, style: style})
		c.add(Mark{Kind: Block, Series: r.Run, Points: []XY{{x - 0.35, t.P25}, {x + 0.35, t.P75}}, style: style, strong: 0.45})
		c.add(Mark{Kind: Line, Series: r.Run, Points: []XY{{x - 0.35, t.P50}, {x + 0.35, t.P50}}, style: style})
		fewest, most = min(fewest, t.Steps), max(most, t.Steps)
		if t.Max > slowest.Max {
			slowest = t
		}
	}
	if len(c.marks) == 0 {
		return false
	}
	steps := fmt.Sprint(most)
	if fewest < most {
		steps = fmt.Sprintf("%d to %d", fewest, most)
	}
	c.caption = []string{
		"Bars: medians; boxes: 25 to 75 % of a rank's steps; thin lines: 5 to 95 %.",
		fmt.Sprintf("Only run %s, the one with the median throughput: %s steady steps of each rank.", shown(r.Run), steps),
	}
	if slowest.Max > 0 {
		c.caption = append(c.caption, fmt.Sprintf("The longest step: %s s, of rank %d.", number.Short(slowest.Max, 3), slowest.Rank))
	}
	return true
}

// shortTimeAxis is timeAxis for times that may be milliseconds or microseconds.
func shortTimeAxis(what string, longest float64) axis {
	if longest >= 1 || longest == 0 {
		return timeAxis(what, longest)
	}
	a := newAxis(what + " (ms)")
	a.unit = 1e-3
	if longest < 1e-3 {
		a.unit, a.title = 1e-6, what+" (µs)"
	}
	return a
}
