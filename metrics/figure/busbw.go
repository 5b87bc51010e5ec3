package figure

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// busBandwidth draws the bus bandwidth of collectives against the message size: a panel per
// operation, a line per series. It uses in-place results, since trainings reduce in place,
// or else out-of-place ones.
func busBandwidth(d Data, _ Options) ([]chart, error) {
	curves := d.Curves
	var ops []any
	for _, c := range curves {
		if op := c.Parameters[measure.Op]; c.Measured(measure.BusBW) && !slices.Contains(ops, op) {
			ops = append(ops, op)
		}
	}
	slices.SortStableFunc(ops, func(a, b any) int { return opRank(a) - opRank(b) })
	var charts []chart
	for _, op := range ops {
		c, err := busbwPanel(op, curves)
		if err != nil {
			return nil, err
		}
		if len(ops) == 1 {
			c.caption = append([]string{c.title + "."}, c.caption...)
		}
		charts = append(charts, c)
	}
	if charts == nil {
		return nil, errors.New("nothing to draw: no run has a bus bandwidth; benchmarks of collectives have one (kind = \"collective\", or imported nccl-tests logs)")
	}
	return charts, nil
}

// opRank returns the position of an operation in the order of panels, which starts with the
// operations that trainings use most.
func opRank(op any) int {
	order := []any{"all_reduce", "reduce_scatter", "all_gather", "broadcast"}
	if i := slices.Index(order, op); i >= 0 {
		return i
	}
	return len(order)
}

// busbwPanel returns the panel of one operation.
func busbwPanel(op any, curves []scaling.Curve) (chart, error) {
	title := "unnamed operation"
	if op != nil {
		title = fmt.Sprint(op)
	}
	var own []scaling.Curve
	for _, cv := range curves {
		if cv.Parameters[measure.Op] == op && cv.Measured(measure.BusBW) {
			own = append(own, cv)
		}
	}
	places := map[bool]bool{}
	own = slices.DeleteFunc(own, func(cv scaling.Curve) bool {
		inPlace := cv.Parameters[measure.InPlace] == 1.0
		if !inPlace && slices.ContainsFunc(own, func(other scaling.Curve) bool {
			return other.Parameters[measure.InPlace] == 1.0 && scaling.Alike(other, cv, measure.InPlace)
		}) {
			return true
		}
		places[inPlace] = true
		return false
	})
	m, err := scaling.Find(own, measure.BusBW)
	if err != nil {
		return chart{}, err
	}
	list := measured(scaling.Rename(own, measure.Op, measure.InPlace), m)
	c := chart{title: title, x: numberAxis(list), y: logAxis("bus bandwidth (GB/s)")}
	c.y.unit = 1e9
	of := func(s *scaling.Summary) *scaling.Estimate { return s.Median }
	for i, t := range list {
		c.addTrend(i, t, func(_ *scaling.Point, x float64) float64 { return x }, of)
	}
	where := "In place."
	switch {
	case places[false] && places[true]:
		where = "In place, or out of place where only that was measured."
	case places[false]:
		where = "Out of place."
	}
	c.caption = append([]string{where, "Markers: medians over runs.", runsOf(list)}, bars(estimates(list, of), "exact binomial interval of the median")...)
	if err := c.fit(); err != nil {
		return c, err
	}
	// Sizes span so many octaves that the usual padding would be as wide as a tick.
	c.x.min, c.x.max = sizes(c.marks)
	return c, nil
}

// sizes returns the range of the sizes with a little padding.
func sizes(marks []Mark) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, m := range marks {
		for _, p := range m.Points {
			low, high = min(low, p.X), max(high, p.X)
		}
	}
	return low / 1.5, high * 1.5
}
