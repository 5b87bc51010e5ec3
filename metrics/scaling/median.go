package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Median returns the median of a sample of runs, with its exact interval if there are
// enough runs. Confidence is the requested level; 0 means 0.95. The values are discrete, such as
// positions on an axis: if they are equal, the interval has no width.
func Median(xs []float64, confidence float64) (Estimate, error) {
	confidence, err := level(confidence)
	if err != nil {
		return Estimate{}, err
	}
	if len(xs) == 0 {
		return Estimate{}, fmt.Errorf("cannot take a median of no runs")
	}
	for _, x := range xs {
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return Estimate{}, fmt.Errorf("cannot take a median of %g", x)
		}
	}
	sorted := slices.Sorted(slices.Values(xs))
	e := Estimate{Value: middle(sorted), Runs: len(sorted)}
	e.Interval, e.Why = medianInterval(sorted, confidence)
	return e, nil
}

// censoredReach is like ReachOf for a sample that is sorted and not empty, and lacks runs.
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
		e := &Estimate{Value: middle(all), Runs: len(sorted), Interval: in}
		e.dropEmpty()
		return Reach{Median: e}
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
	e.OneSided = nil
	if e.Interval, e.Why = medianInterval(groups, confidence); e.Interval != nil {
		e.Interval.Low, e.Interval.High = min(e.Interval.Low, e.Value), max(e.Interval.High, e.Value)
		e.dropEmpty()
		return
	}
	e.Why = fmt.Sprintf("runs that share a node count as one, so %d runs count as %d: %s", e.Runs, len(groups), e.Why)
}

// OneSidedLevel returns the level of a two-sided interval of which each end alone has the given
// confidence: 0.90 for 0.95.
func OneSidedLevel(confidence float64) float64 { return 2*confidence - 1 }

// medianOf returns the median of a sorted, non-empty sample, with its interval. If an end of the
// interval may be infinite, the caller must handle that (see reached).
func medianOf(sorted []float64, confidence float64) *Estimate {
	e := &Estimate{Value: middle(sorted), Runs: len(sorted)}
	e.Interval, e.Why = medianInterval(sorted, confidence)
	e.dropEmpty()
	if e.Interval != nil {
		if in, _ := medianInterval(sorted, OneSidedLevel(confidence)); in != nil && in.Low < in.High {
			e.OneSided = in
		}
	}
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

// A Reach is the median time to a target over runs, of which some may miss the target.
type Reach struct {
	Median *Estimate // median over all runs, in which misses rank last. nil: see Why
	// AtLeast is the lower end of an interval that has no upper end because of misses; Median
	// then has no interval. Otherwise it is nil.
	AtLeast *float64
	Why     string
}

const (
	halfMiss   = "reached by no more than half of the runs"
	noUpperEnd = "with so many runs that miss the target the interval has no upper end"
)

// ReachOf returns the median time to a target, or its cost, over the runs of a point; a run that
// misses the target has the value +Inf. It returns an empty Reach if there are no runs.
// Confidence is the requested level; 0 means 0.95. If byNode is true, results depend on the nodes
// of the runs (Curve.ByNode), and the interval counts runs that share a node as one.
//
// A miss ranks after all runs that reach the target, as in the rules of MLPerf Training. The
// median and its order statistics are then those of the Kaplan–Meier estimate (J. Am. Stat.
// Assoc. 53, 1958) with the Brookmeyer–Crowley interval (Biometrics 38, 1982), provided that runs
// that miss train longer than any run that reaches the target. There is no median if half of the
// runs miss, and no interval if one of its ends would be a miss.
//
// lacking further runs have no value for a reason that depends on the value; better is the
// measure's direction. The median of the runs with a value alone would be biased towards
// undisturbed runs. So a median is returned only if its interval is valid wherever the missing
// values are. It is then the median of all runs, in which those without a value rank last.
// Otherwise, for a measure that is better when lower, AtLeast is the lower end of the interval,
// because missing values are assumed to be above it. The nodes of runs without a value are
// unknown; with byNode there is then neither a median nor AtLeast.
func ReachOf(xs []float64, runs []*Observation, lacking int, better measure.Direction, byNode bool, confidence float64) (Reach, error) {
	confidence, err := level(confidence)
	if err != nil {
		return Reach{}, err
	}
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, -1) || lacking > 0 && math.IsInf(x, 1) {
			return Reach{}, fmt.Errorf("cannot take a median of %g", x)
		}
	}
	return reachOf(madeBy(xs, runs), lacking, better, byNode, confidence), nil
}

// reachOf is ReachOf for valid arguments.
func reachOf(runs []made, lacking int, better measure.Direction, byNode bool, confidence float64) Reach {
	if len(runs) == 0 {
		return Reach{}
	}
	misses := 0
	values := make([]float64, len(runs))
	for i, m := range runs {
		if values[i] = m.value; math.IsInf(m.value, 1) {
			misses++
		}
	}
	slices.Sort(values)
	if lacking > 0 {
		return censoredReach(values, lacking, better, byNode, confidence)
	}
	e := medianOf(values, confidence)
	if byNode {
		e.byNode(runs, confidence)
	}
	return reached(e, misses)
}

// ByNode returns the sorted medians of groups of runs, where runs that share a node are in one
// group.
func ByNode(xs []float64, runs []*Observation) []float64 { return groups(madeBy(xs, runs)) }

// madeBy returns values with their runs; runs may be nil if only the values matter.
func madeBy(xs []float64, runs []*Observation) []made {
	list := make([]made, len(xs))
	for i, x := range xs {
		if list[i].value = x; runs != nil {
			list[i].Observation = runs[i]
		}
	}
	return list
}

// reached converts a median over runs of which some missed the target to a Reach.
func reached(e *Estimate, misses int) Reach {
	r := Reach{Median: e}
	if in := e.Interval; in != nil && math.IsInf(in.High, 1) {
		e.OneSided = nil
		if e.Interval, e.Why = nil, noUpperEnd; !math.IsInf(in.Low, 1) {
			r.AtLeast = &in.Low
		}
	}
	if 2*misses >= e.Runs && misses > 0 {
		r.Median, r.Why = nil, halfMiss
	}
	return r
}

// Like returns a sample of other values of the summary's runs, such as their costs, with the same
// drift correction as the values of the summary. A missed target has the value +Inf. lacking
// further runs have no value for a reason that depends on it; better is the direction of the
// values. Values of runs that are not in the summary are not corrected. s may be nil.
func (s *Summary) Like(values []float64, runs []*Observation, lacking int, better measure.Direction, byNode bool, confidence float64) (Sample, error) {
	confidence, err := level(confidence)
	if err != nil {
		return Sample{}, err
	}
	factor := map[string]float64{}
	sample := Sample{byNode: byNode, lacking: lacking > 0}
	if s != nil && s.Runs > 0 {
		still := s.sample()
		sample.changing = still.changing
		for i, m := range s.made {
			if x := still.runs[i].value; still.detrended && x > 0 && !math.IsInf(x, 1) {
				factor[m.Run] = x / m.value
			}
		}
	}
	for i, x := range values {
		if f, known := factor[runs[i].Run]; known {
			x, sample.detrended = x*f, true
		}
		sample.runs = append(sample.runs, made{x, runs[i]})
	}
	sample.Median = reachOf(sample.runs, lacking, better, byNode, confidence).Median
	sample.constant = reachOf(madeBy(values, runs), lacking, better, byNode, confidence).Median.Constant()
	return sample, nil
}

// RatioOf returns the ratio of two samples, computed like a speedup (see Ratio). It is nil if one
// of them has no median.
func RatioOf(a, b Sample, confidence float64) *Estimate {
	confidence, err := level(confidence)
	if a.Median == nil || b.Median == nil || err != nil { // err: neither sample would have a median
		return nil
	}
	e, _ := divide(a, b, confidence)
	return e
}

// RatioOfSets is like RatioOf for sets of runs that may have been made at different times, such
// as before and after a change. Callers must state that next to the ratio.
func RatioOfSets(a, b Sample, confidence float64) *Estimate {
	a.apart = true
	return RatioOf(a, b, confidence)
}

// quotient returns the ratio of two medians with its interval (see ratioInterval); nil if a
// median is missing or the second is 0.
func quotient(a, b *Estimate) *Estimate {
	if a == nil || b == nil || b.Value == 0 {
		return nil
	}
	e := &Estimate{Value: a.Value / b.Value, Runs: min(a.Runs, b.Runs)}
	e.Interval, e.Why = ratioInterval(a, b)
	if e.Interval != nil && a.OneSided != nil && b.OneSided != nil {
		e.OneSided = mover(a, b, a.OneSided, b.OneSided)
	}
	return e
}
