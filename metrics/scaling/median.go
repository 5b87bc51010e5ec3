package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Median returns the median of a sample of runs, with its exact interval if there are
// enough runs. Confidence is the requested level; 0 means 0.95.
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

// CensoredMedian returns the median over runs, of which lacking further ones have no value for a
// reason that depends on the value; better is the measure's direction.
//
// The median of the runs with a value alone would be biased towards undisturbed runs. So a median
// is returned only if its interval is valid wherever the missing values are. It is then the
// median of all runs, in which those without a value rank last. Otherwise, for a measure that is
// better when lower, AtLeast is the lower end of the interval, because missing values are assumed
// to be above it. If byNode is true, results depend on the nodes, which are unknown for runs
// without a value; then there is neither a median nor AtLeast.
func CensoredMedian(xs []float64, lacking int, better measure.Direction, byNode bool, confidence float64) (Reach, error) {
	if lacking == 0 {
		return reachedBy(xs, confidence)
	}
	confidence, err := level(confidence)
	if err != nil {
		return Reach{}, err
	}
	for _, x := range xs {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return Reach{}, fmt.Errorf("cannot take a median of %g", x)
		}
	}
	return reachOf(madeOn(xs, nil), lacking, better, byNode, confidence), nil
}

// censoredReach is like CensoredMedian for a sample that is sorted and not empty.
func censoredReach(sorted []float64, lacking int, better measure.Direction, byNode bool, confidence float64) Reach {
	if byNode {
		return Reach{Why: lacks(lacking, len(sorted)+lacking)}
	}
	in, why := censoredMedian(sorted, lacking, confidence)
	all := sorted
	switch better {
	case measure.Lower:
		all = slices.Concat(sorted, slices.Repeat([]float64{math.Inf(1)}, lacking))
	case measure.Higher:
		all = slices.Concat(slices.Repeat([]float64{math.Inf(-1)}, lacking), sorted)
	}
	if in != nil {
		return Reach{Median: &Estimate{Value: middle(all), Runs: len(sorted), Interval: in}}
	}
	r := Reach{Why: why}
	if better == measure.Lower {
		if in, _ := medianInterval(all, confidence); in != nil && !math.IsInf(in.Low, 1) {
			r.AtLeast = &in.Low
		}
	}
	return r
}

// level returns the requested confidence level; 0 means 0.95.
func level(confidence float64) (float64, error) {
	if confidence == 0 {
		return 0.95, nil
	}
	if !(confidence > 0 && confidence < 1) {
		return 0, fmt.Errorf("confidence %g is not a level; give a fraction between 0 and 1, like 0.95", confidence)
	}
	return confidence, nil
}

// byNode replaces the interval by that of the median over groups of runs that share nodes,
// widened so that it includes the value.
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

// medianOf returns the median of a sorted, non-empty sample, with its interval. If an end of the
// interval may be infinite, the caller must handle that (see reached).
func medianOf(sorted []float64, confidence float64) *Estimate {
	e := &Estimate{Value: middle(sorted), Runs: len(sorted)}
	e.Interval, e.Why = medianInterval(sorted, confidence)
	return e
}

// Middle returns the median of a non-empty sample in any order. Of an even number, it is the mean
// of the middle two, computed so that it can neither overflow nor underflow. If one of them is
// +Inf, so is the median.
func Middle(xs []float64) float64 { return middle(slices.Sorted(slices.Values(xs))) }

// middle is like Middle for a sorted sample.
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
