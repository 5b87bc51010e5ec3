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
			return Estimate{}, fmt.Errorf("cannot take a median of %g", x)
		}
	}
	r, err := reachedBy(xs, confidence)
	if err == nil && r.Median == nil {
		err = fmt.Errorf("cannot take a median of no runs")
	}
	if err != nil {
		return Estimate{}, err
	}
	return *r.Median, nil
}

// MedianLacking is Median of runs of which some have no value, because of what it would
// be: its interval holds wherever those lie.
func MedianLacking(xs []float64, lacking int, confidence float64) (Estimate, error) {
	e, err := Median(xs, confidence)
	if err == nil && lacking > 0 {
		confidence, _ = level(confidence)
		e.Interval, e.Why = medianLacking(slices.Sorted(slices.Values(xs)), lacking, confidence)
	}
	return e, err
}

// level is the confidence that is asked for; 0 is 0.95.
func level(confidence float64) (float64, error) {
	if confidence == 0 {
		return 0.95, nil
	}
	if !(confidence > 0 && confidence < 1) {
		return 0, fmt.Errorf("confidence %g is not a level; give a fraction between 0 and 1, like 0.95", confidence)
	}
	return confidence, nil
}

// byNode gives the estimate the interval of a median of fewer values where runs
// share nodes, of groups of runs that are alike, widened to hold the estimate.
func (e *Estimate) byNode(runs []made, confidence float64) {
	groups := groups(runs)
	if len(groups) == len(runs) {
		return
	}
	if e.Interval, e.Why = medianInterval(groups, confidence); e.Interval != nil {
		e.Interval.Low, e.Interval.High = min(e.Interval.Low, e.Value), max(e.Interval.High, e.Value)
		return
	}
	e.Why = fmt.Sprintf("runs that share a node count as one, so %d runs count as %d: %s", e.Runs, len(groups), e.Why)
}

// medianOf is the median of an ascending, non-empty sample, with its interval; see
// Reached for either end that is infinite.
func medianOf(sorted []float64, confidence float64) *Estimate {
	e := &Estimate{Value: middle(sorted), Runs: len(sorted)}
	e.Interval, e.Why = medianInterval(sorted, confidence)
	return e
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
