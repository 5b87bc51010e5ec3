// Package tables is what each answer says as a table: curves, costs, advice,
// comparisons, histories, runs; and the report of a study (report.go). One function a table for people, with units,
// intervals and notes, and, where they differ, one for programs, in base
// units with every digit (…Data). How a table is printed is in metrics/table.
package tables

import (
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// estimate is "12.3 [11.9, 12.8]", or "12.3 –" without an interval; exact
// is for a value that is so by definition.
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

// spreadText is a value, and its interval as Interval has it, in one unit.
func spreadText(value float64, in *scaling.Interval, show func(float64) string) (text, interval string) {
	if in != nil {
		show = number.Alike(show, value, in.Low, in.High)
	}
	return show(value), intervalText(in, show)
}

// intervalText is "[11.9, 12.8]" in one unit, or a dash for none.
func intervalText(in *scaling.Interval, show func(float64) string) string {
	if in == nil {
		return number.Absent
	}
	show = number.Alike(show, in.Low, in.High)
	return "[" + show(in.Low) + ", " + show(in.High) + "]"
}

// estimateCells are a value and the ends of its interval; nil where not had.
func estimateCells(e *scaling.Estimate) []any {
	switch {
	case e == nil:
		return []any{nil, nil, nil}
	case e.Interval == nil:
		return []any{e.Value, nil, nil}
	}
	return []any{e.Value, e.Interval.Low, e.Interval.High}
}
