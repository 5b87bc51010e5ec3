package report

import (
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// estimate returns an estimate as a cell: "12.3 [11.9, 12.8]", or "12.3 –" without an interval.
// exact is true for a value that has no uncertainty by definition.
func estimate(e *scaling.Estimate, show func(float64) string, exact bool) any {
	switch {
	case e == nil:
		return nil
	case exact:
		return show(e.Value)
	}
	value, interval := spreadText(e.Value, e.Interval, show)
	return value + " " + interval
}

// spreadText returns a value and its interval as texts in the same unit.
func spreadText(value float64, in *scaling.Interval, show func(float64) string) (text, interval string) {
	if in != nil {
		show = number.Alike(show, value, in.Low, in.High)
	}
	return show(value), intervalText(in, show)
}

// intervalText returns an interval in one unit, "[11.9, 12.8]", or a dash if it is nil.
func intervalText(in *scaling.Interval, show func(float64) string) string {
	if in == nil {
		return number.Absent
	}
	show = number.Alike(show, in.Low, in.High)
	return "[" + show(in.Low) + ", " + show(in.High) + "]"
}

// estimateCells returns the cells of an estimate for programs: the value and the ends of its
// interval, each nil if missing.
func estimateCells(e *scaling.Estimate) []any {
	switch {
	case e == nil:
		return []any{nil, nil, nil}
	case e.Interval == nil:
		return []any{e.Value, nil, nil}
	}
	return []any{e.Value, e.Interval.Low, e.Interval.High}
}
