package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A Reach is the time to a target over runs of which some may miss it.
type Reach struct {
	Median *Estimate // over all runs; a run that missed ranks last. nil: see Why
	// AtLeast is the lower end of the interval where runs that miss leave it without
	// an upper end, and Median without an interval; nil otherwise.
	AtLeast *float64
	Why     string
}

const (
	halfMiss   = "reached by no more than half of the runs"
	noUpperEnd = "with so many runs that miss the target the interval has no upper end"
)

// reachedBy is the median time to a target, or what it costs, from all runs of a
// point, +Inf for one that missed it; nothing without runs. Confidence is the level asked; 0 is 0.95.
//
// A run that misses ranks later than all that reach it (MLPerf Training rules), so that
// the sample's median and its order statistics are those of Kaplan and Meier's estimate
// (J. Am. Stat. Assoc. 53, 1958) with the interval of Brookmeyer and Crowley (Biometrics
// 38, 1982) for runs that go on for longer than any that reaches it. The result has no
// median if half of the runs or more miss, and no interval if an end of it would be a run
// that missed.
func reachedBy(xs []float64, confidence float64) (Reach, error) {
	return ReachedOn(xs, nil, confidence)
}

// ReachedOn is Reached of runs on these nodes, those of each run, where results
// depend on the node (Curve.ByNode): runs that share one count as one in the
// interval. nil: they do not depend on it.
func ReachedOn(xs []float64, nodes [][]string, confidence float64) (Reach, error) {
	confidence, err := level(confidence)
	if err != nil {
		return Reach{}, err
	}
	misses := 0
	for _, x := range xs {
		switch {
		case math.IsInf(x, 1):
			misses++
		case math.IsNaN(x) || math.IsInf(x, 0):
			return Reach{}, fmt.Errorf("cannot take a median of %g", x)
		}
	}
	if len(xs) == 0 {
		return Reach{}, nil
	}
	e := medianOf(slices.Sorted(slices.Values(xs)), confidence)
	if nodes != nil {
		e.byNode(madeOn(xs, nodes), confidence)
	}
	return reached(e, misses), nil
}

// ByNode are the medians, ascending, of values of runs that have no node in common
// with those of another group: what is left of them where results depend on the node.
// nodes are those of each run.
func ByNode(xs []float64, nodes [][]string) []float64 { return groups(madeOn(xs, nodes)) }

func madeOn(xs []float64, nodes [][]string) []made {
	runs := make([]made, len(xs))
	for i, x := range xs {
		runs[i] = made{x, &Observation{Hosts: nodes[i]}}
	}
	return runs
}

// reached is what a median of runs, of which some missed, says.
func reached(e *Estimate, misses int) Reach {
	r := Reach{Median: e}
	if in := e.Interval; in != nil && math.IsInf(in.High, 1) {
		if e.Interval, e.Why = nil, noUpperEnd; !math.IsInf(in.Low, 1) {
			r.AtLeast = &in.Low
		}
	}
	if 2*misses >= e.Runs && misses > 0 {
		r.Median, r.Why = nil, halfMiss
	}
	return r
}

// Like is a sample of other values of the summary's runs, such as what their time cost:
// what was taken out of the summary's values for the change of the machine is taken out
// of these. +Inf is a target that was missed, and lacking more runs have no value because
// of what it would be; better is the direction of the values. Nothing is taken out for
// runs that the summary does not have; it may be nil.
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
	misses := 0
	var all []float64
	for i, x := range values {
		if f, known := factor[runs[i].Run]; known {
			x, sample.detrended = x*f, true
		}
		sample.runs = append(sample.runs, made{x, runs[i]})
		if all = append(all, x); math.IsInf(x, 1) {
			misses++
		}
	}
	if len(all) == 0 {
		return sample, nil
	}
	if lacking > 0 {
		sample.Median = lackingReach(slices.Sorted(slices.Values(all)), lacking, better, byNode, confidence).Median
		return sample, nil
	}
	e := medianOf(slices.Sorted(slices.Values(all)), confidence)
	if byNode {
		e.byNode(sample.runs, confidence)
	}
	sample.Median = reached(e, misses).Median
	return sample, nil
}

// RatioOf is the ratio of two samples, as a speedup is; see Ratio. nil where either has
// no median.
func RatioOf(a, b Sample, confidence float64) *Estimate {
	confidence, err := level(confidence)
	if a.Median == nil || b.Median == nil || err != nil { // err: the medians would not be there
		return nil
	}
	e, _ := divide(a, b, confidence)
	return e
}

// RatioOfSets is RatioOf for two sets of runs that may have been made at different times,
// such as before and after a change. Callers state that next to the ratio.
func RatioOfSets(a, b Sample, confidence float64) *Estimate {
	a.apart = true
	return RatioOf(a, b, confidence)
}

// quotient returns one median over another with its interval (see ratioInterval); nil if
// it is not defined.
func quotient(a, b *Estimate) *Estimate {
	if a == nil || b == nil || b.Value == 0 {
		return nil
	}
	e := &Estimate{Value: a.Value / b.Value, Runs: min(a.Runs, b.Runs)}
	e.Interval, e.Why = ratioInterval(a, b)
	return e
}
