// Package tables turns answers into tables: curves, costs, advice, comparisons, histories,
// runs. It also assembles the report of a study (report.go). Each answer has a function for
// people, with units, intervals and notes, and, where needed, one for programs (…Data),
// with unrounded values in base units. Package metrics/table prints tables.
package tables

import (
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// estimate formats an estimate: "12.3 [11.9, 12.8]", or "12.3 –" without an interval. exact
// marks a value that has no uncertainty by definition.
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

// spreadText formats a value and its interval in the same unit.
func spreadText(value float64, in *scaling.Interval, show func(float64) string) (text, interval string) {
	if in != nil {
		show = number.Alike(show, value, in.Low, in.High)
	}
	return show(value), intervalText(in, show)
}

// intervalText formats an interval in one unit, "[11.9, 12.8]", or a dash for nil.
func intervalText(in *scaling.Interval, show func(float64) string) string {
	if in == nil {
		return number.Absent
	}
	show = number.Alike(show, in.Low, in.High)
	return "[" + show(in.Low) + ", " + show(in.High) + "]"
}

// estimateCells returns a value and the ends of its interval; nil if missing.
func estimateCells(e *scaling.Estimate) []any {
	switch {
	case e == nil:
		return []any{nil, nil, nil}
	case e.Interval == nil:
		return []any{e.Value, nil, nil}
	}
	return []any{e.Value, e.Interval.Low, e.Interval.High}
}
