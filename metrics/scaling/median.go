package scaling

import (
	"fmt"
	"math"
	"slices"
)

// Median is the median of a sample of runs, with its exact interval where
// there are runs enough for one. Confidence is the level asked; 0 is 0.95.
func Median(xs []float64, confidence float64) (Estimate, error) {
	for _, x := range xs {
		if math.IsInf(x, 0) {
			return Estimate{}, fmt.Errorf("%g is no value that a median could be of", x)
		}
	}
	e, err := MedianReached(xs, confidence)
	if err == nil && e == nil {
		err = fmt.Errorf("there is no median of no runs")
	}
	if err != nil {
		return Estimate{}, err
	}
	return *e, nil
}

// MedianReached is Median of times to a target: +Inf is a run that misses it and
// ranks behind all that reach it. It is nil without runs, and where half of them or
// more miss the target.
func MedianReached(xs []float64, confidence float64) (*Estimate, error) {
	if confidence == 0 {
		confidence = 0.95
	}
	if !(confidence > 0 && confidence < 1) {
		return nil, fmt.Errorf("confidence %g is no level; give a fraction between 0 and 1, like 0.95", confidence)
	}
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, -1) {
			return nil, fmt.Errorf("%g is no value that a median could be of", x)
		}
	}
	if len(xs) == 0 {
		return nil, nil
	}
	return medianOf(slices.Sorted(slices.Values(xs)), confidence), nil
}

// among gives the estimate the interval of a median of fewer values, of groups of
// runs that are alike, widened to hold the estimate.
func (e *Estimate) among(groups []float64, confidence float64) {
	if e.Interval, e.Why = boundedInterval(groups, confidence); e.Interval != nil {
		e.Interval.Low, e.Interval.High = min(e.Interval.Low, e.Value), max(e.Interval.High, e.Value)
		return
	}
	e.Why = fmt.Sprintf("runs that share a node are alike, and %d count as %d: %s", e.Runs, len(groups), e.Why)
}

// medianOf is the median of an ascending, non-empty sample, with its interval; nil
// where it is infinite.
func medianOf(sorted []float64, confidence float64) *Estimate {
	value := middle(sorted)
	if math.IsInf(value, 1) {
		return nil
	}
	e := &Estimate{Value: value, Runs: len(sorted)}
	e.Interval, e.Why = boundedInterval(sorted, confidence)
	return e
}

// boundedInterval is medianInterval, or none where that has no upper end.
func boundedInterval(sorted []float64, confidence float64) (*Interval, string) {
	in, why := medianInterval(sorted, confidence)
	if in != nil && math.IsInf(in.High, 1) {
		return nil, "too many runs miss the target for an interval with an upper end"
	}
	return in, why
}

// Middle is the median of a non-empty sample in any order, as a value alone. The
// mean of the middle two cannot overflow, nor vanish; with +Inf for one of them it
// is +Inf.
func Middle(xs []float64) float64 { return middle(slices.Sorted(slices.Values(xs))) }

// middle is Middle of an ascending sample.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	a, b := sorted[n/2-1], sorted[n/2]
	if math.IsInf(b, 1) {
		return b
	}
	return a + (b-a)/2
}
