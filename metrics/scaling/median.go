package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
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

// MedianLacking is the median of runs of which lacking more have no value because of what
// it would be; better is the measure's direction. A median of the others alone would be
// that of the calm runs, so there is none unless the interval holds wherever the missing
// values lie. Then the median is that of all runs, with those that lack a value ranked
// last. Where that is not so, AtLeast has the lower end of the interval of a measure that
// is better when lower, which runs that lack it are taken to exceed. With byNode, results
// depend on the nodes, and those of runs without a value are not known: there is neither.
func MedianLacking(xs []float64, lacking int, better measure.Direction, byNode bool, confidence float64) (Reach, error) {
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
	if len(xs) == 0 {
		return Reach{}, nil
	}
	return lackingReach(slices.Sorted(slices.Values(xs)), lacking, better, byNode, confidence), nil
}

// lackingReach is MedianLacking of an ascending, non-empty sample.
func lackingReach(sorted []float64, lacking int, better measure.Direction, byNode bool, confidence float64) Reach {
	if byNode {
		return Reach{Why: lacks(lacking, len(sorted)+lacking)}
	}
	in, why := medianLacking(sorted, lacking, confidence)
	all := make([]float64, 0, len(sorted)+lacking)
	switch better {
	case measure.Lower:
		all = append(all, sorted...)
		for range lacking {
			all = append(all, math.Inf(1))
		}
	case measure.Higher:
		for range lacking {
			all = append(all, math.Inf(-1))
		}
		all = append(all, sorted...)
	default:
		all = append(all, sorted...)
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
