package figure

import (
	"cmp"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// frontier draws the tokens/s per GPU against the tokens/s per user of a language model under
// several loads, and the Pareto front of all of them.
func frontier(d Data, o Options) ([]chart, error) {
	perGPU, err := measure.Find(measure.OutputPerGPU)
	if err != nil {
		panic(err) // a programming error: measure declares it
	}
	charts, err := against(o.Against, []measure.Measure{perGPU})(d, o)
	if err != nil {
		return nil, err
	}
	c := &charts[0]
	var medians []XY
	for _, m := range c.marks {
		if m.Kind == Median {
			medians = append(medians, m.Points[0])
		}
	}
	if stairs := frontOfMost(medians); len(stairs) > 1 {
		c.marks = append([]Mark{{Kind: Front, Points: stairs, style: -1}}, c.marks...)
		c.caption = append(c.caption, "Grey stairs: the Pareto front; no measured load is better on both axes.")
	}
	return charts, nil
}

// frontOfMost returns the Pareto front of points whose coordinates should both be large, as stairs
// from left to right. The right end of each step is one of the points; no other corner is.
func frontOfMost(points []XY) []XY {
	points = slices.SortedFunc(slices.Values(points), func(a, b XY) int { return cmp.Or(cmp.Compare(b.X, a.X), cmp.Compare(b.Y, a.Y)) })
	var stairs []XY
	for _, p := range points { // from the right
		if n := len(stairs); n == 0 || p.Y > stairs[n-1].Y {
			if n > 0 {
				stairs = append(stairs, XY{p.X, stairs[n-1].Y})
			}
			stairs = append(stairs, p)
		}
	}
	slices.Reverse(stairs)
	return stairs
}
