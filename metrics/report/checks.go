package report

import (
	"fmt"
	"math"

	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/export"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// ContrastChecks returns a check for each compared point. It fails if the verdict is worse by at
// least limit, a fraction, and is skipped if there is no verdict.
func ContrastChecks(r *compare.Comparison, m measure.Measure, limit float64) (list []export.Check) {
	for _, p := range r.Pairs {
		c := export.Check{Class: m.Name, Name: p.Series + ", " + scaling.Places(p.Axis, p.At)}
		c.Output = fmt.Sprintf("%s: %s", m.Title, p.Verdict)
		if p.Ratio != nil {
			c.Output += ", B over A " + estimateText(p.Ratio)
		}
		c.Output += fmt.Sprintf("; %s of A, %d of B", number.Count(p.NA, "run"), p.NB)
		switch {
		case p.Verdict == compare.Insufficient:
			c.Skipped = p.Why
		case p.Worse(limit):
			c.Failure = c.Output
		}
		list = append(list, c)
	}
	return list
}

// estimateText formats a ratio with its interval.
func estimateText(e *scaling.Estimate) string {
	text := number.Significant(e.Value)
	if i := e.Interval; i != nil {
		text += fmt.Sprintf(" (95 %% interval %s to %s)", number.Significant(i.Low), number.Significant(i.High))
	}
	return text
}

// HistoryChecks returns a check for each point of a history. It fails if the point has an alarm
// and is worse by at least limit, a fraction.
func HistoryChecks(traces []Trace, marks map[int64]store.RunMark, m measure.Measure, limit float64) (list []export.Check) {
	for _, trace := range traces {
		c := export.Check{Class: m.Name, Name: trace.Point}
		if a := trace.Alarm; a != nil {
			c.Output = AlarmText(trace, marks, m)
			if math.IsNaN(a.Ratio) || float64(m.Worse())*(a.Ratio-1) >= limit {
				c.Failure = c.Output
			}
		}
		list = append(list, c)
	}
	return list
}
