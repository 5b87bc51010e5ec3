package scaling

import (
	"fmt"
	"math"
	"slices"
)

// Median is the median of a sample of runs, with its exact interval where
// there are runs enough for one. Confidence is the level asked; 0 is 0.95.
func Median(xs []float64, confidence float64) (Estimate, error) {
	if confidence == 0 {
		confidence = 0.95
	}
	if !(confidence > 0 && confidence < 1) {
		return Estimate{}, fmt.Errorf("confidence %g is no level; give a fraction between 0 and 1, like 0.95", confidence)
	}
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Estimate{}, fmt.Errorf("%g is no value that a median could be of", x)
		}
	}
	if len(xs) == 0 {
		return Estimate{}, fmt.Errorf("there is no median of no runs")
	}
	return *medianOf(slices.Sorted(slices.Values(xs)), confidence), nil
}

// among gives the estimate the interval of a median of fewer values, of groups of
// runs that are alike, widened to hold the estimate.
func (e *Estimate) among(groups []float64, confidence float64) {
	if e.Interval, e.Why = medianInterval(groups, confidence); e.Interval != nil {
		e.Interval.Low, e.Interval.High = min(e.Interval.Low, e.Value), max(e.Interval.High, e.Value)
		return
	}
	e.Why = fmt.Sprintf("runs that share a node are alike, and %d count as %d: %s", e.Runs, len(groups), e.Why)
}

// medianOf is the median of an ascending, non-empty sample, with its interval.
func medianOf(sorted []float64, confidence float64) *Estimate {
	e := &Estimate{Value: median(sorted), Runs: len(sorted)}
	e.Interval, e.Why = medianInterval(sorted, confidence)
	return e
}
