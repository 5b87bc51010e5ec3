package scaling

import (
	"fmt"
	"math"
	"slices"
)

// Reach is what runs say of the time to a target, which some of them miss.
type Reach struct {
	Median *Estimate // over all runs, one that missed ranking last; nil where Why says it
	// AtLeast is the lower end of the interval where there is no median; nil where
	// that cannot be had either.
	AtLeast *float64
	Why     string
}

// Why there is no median.
const (
	halfMiss    = "reached by no more than half of the runs"
	tooManyMiss = "too many runs miss the target for a median time"
)

// Reached is the median time to a target, or what it costs, from all runs of a
// point, +Inf for one that missed it; nothing without runs. Confidence is the level asked; 0 is 0.95.
//
// A run that misses ranks behind all that reach it, so that the sample's median
// and its order statistics are those of Kaplan and Meier's estimate (J. Am.
// Stat. Assoc. 53, 1958) with the interval of Brookmeyer and Crowley (Biometrics
// 38, 1982) for runs that go on for longer than any that reaches it.
//
// Where runs miss, there is a median only with an interval that has an upper end.
// That more than half of a few runs reach the target is often luck, and the
// median of such samples too short; the lower end holds all the same.
func Reached(xs []float64, confidence float64) (Reach, error) {
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
	if misses == 0 || e.Interval != nil && !math.IsInf(e.Interval.High, 1) {
		return Reach{Median: e}
	}
	r := Reach{Why: tooManyMiss}
	if 2*misses >= e.Runs {
		r.Why = halfMiss
	}
	if e.Interval != nil && !math.IsInf(e.Interval.Low, 1) {
		r.AtLeast = &e.Interval.Low
	}
	return r
}

// Sample is what runs of a point came to, and their median.
type Sample struct {
	Median *Estimate
	Values []float64      // +Inf for a target that was missed
	Runs   []*Observation // of each value; nil where that is not known
	ByNode bool           // see Curve
}

// RatioOf is Quotient of the medians of two points' runs, as a speedup is: where the
// runs were made in blocks it is the median of the ratios within them, and where
// those of one point were made before or after those of the other it has no interval.
func RatioOf(a, b Sample, confidence float64) *Estimate {
	e := Quotient(a.Median, b.Median)
	as, bs := a.made(), b.made()
	confidence, err := level(confidence)
	if e == nil || as == nil || bs == nil || err != nil { // err: the medians would not be there
		return e
	}
	if paired := blocks(as, bs); !a.ByNode && !b.ByNode {
		if in, _ := medianInterval(paired, confidence); in != nil {
			return &Estimate{Value: middle(paired), Runs: len(paired), Interval: in, Blocks: true}
		}
	}
	if apart(as, bs) {
		e.Interval, e.Why = nil, madeApart
	}
	return e
}

func (s Sample) made() (list []made) {
	for i, x := range s.Values {
		if s.Runs[i] == nil {
			return nil
		}
		list = append(list, made{x, s.Runs[i]})
	}
	return list
}

// Quotient is one median over another, with its interval; see ratioInterval. nil
// where it is none.
func Quotient(a, b *Estimate) *Estimate {
	if a == nil || b == nil || b.Value == 0 {
		return nil
	}
	e := &Estimate{Value: a.Value / b.Value, Runs: min(a.Runs, b.Runs)}
	e.Interval, e.Why = ratioInterval(a, b)
	return e
}
