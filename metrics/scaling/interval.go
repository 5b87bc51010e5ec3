package scaling

import (
	"fmt"
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"
)

// alpha returns the probability outside an interval, slightly increased. In floating point, 1 −
// 0.9 is slightly below 0.1; without the increase, an interval that attains exactly 0.9 would be
// rejected.
func alpha(confidence float64) float64 { return (1 - confidence) * (1 + 1e-12) }

func insufficient(have, need int) string {
	return fmt.Sprintf("too few runs for an interval (%d of %d needed)", have, need)
}

// medianInterval returns the exact, distribution-free confidence interval of a median. Its ends
// are the order statistics X(l) and X(n+1−l), with the largest l for which the binomial tails,
// 2·P(B ≤ l−1) with B ~ Bin(n, ½), leave at least the requested level (David & Nagaraja, Order
// Statistics, 7.1). A level of 95 % needs 6 runs; the attained level is 96.9, 97.9 and 95.9 %
// with 6, 10 and 20 runs. If the upper end is +Inf, the median has no upper bound. The text says
// why there is no interval.
//
// stats.QuantileCI is not used, because it switches to the normal approximation above 30 runs and
// may trim one side. An interval that states its attained level should be central and exact.
func medianInterval(sorted []float64, confidence float64) (*Interval, string) {
	return censoredMedian(sorted, 0, confidence)
}

// censoredMedian is like medianInterval for a sample in which lacking further values are missing.
// They must not be ignored if the reason why a run lacks its value depends on the value, such as
// a full queue. The interval is valid wherever the missing values are: its lower end is the one
// that it has if all of them are below the sample, its upper end if all are above.
func censoredMedian(sorted []float64, lacking int, confidence float64) (*Interval, string) {
	n := len(sorted) + lacking
	below := distuv.Binomial{N: float64(n), P: 0.5} // go-moremath's version panics for a million runs
	l := lowerRank(n, confidence)
	if l == 0 {
		// Even the interval from the smallest to the largest value leaves 2·½ⁿ outside.
		return nil, insufficient(n, LeastRuns(confidence))
	}
	if l <= lacking {
		return nil, lacks(lacking, n)
	}
	return &Interval{Low: sorted[l-lacking-1], High: sorted[n-l], Level: 1 - 2*below.CDF(float64(l-1))}, ""
}

// lowerRank returns the 1-based index of the order statistic at the lower end of the interval of a
// median of n runs; 0: too few runs.
func lowerRank(n int, confidence float64) int {
	alpha, below := alpha(confidence), distuv.Binomial{N: float64(n), P: 0.5}
	return sort.Search(n/2, func(l int) bool { return 2*below.CDF(float64(l)) > alpha }) // the tails grow with l
}

// lacks says why the interval is missing if some runs lack a value.
func lacks(lacking, runs int) string {
	return fmt.Sprintf("%d of %d runs lack it, too many to leave out: they may be the slow ones", lacking, runs)
}

// LeastRuns returns the smallest number of runs from which the interval of a median can be
// computed.
func LeastRuns(confidence float64) int {
	return int(math.Ceil(1 - math.Log2(alpha(confidence)) - 1e-9))
}

// ratioInterval returns a confidence interval for the ratio of two medians, a over b, computed
// from the medians and their intervals by MOVER, the method of variance estimates recovery (Zou &
// Donner, Statistics in Medicine 27, 2008), on logarithms. The distance of each end from the
// ratio is the distance of one end of a's interval and that of the opposite end of b's, added in
// quadrature:
//
//	log(a/b) − √(log²(a/a.Low) + log²(b.High/b))
//	log(a/b) + √(log²(a.High/a) + log²(b/b.Low))
//
// The method makes no assumption about the distributions of the samples, not even that they have
// the same shape. So it suits points that scatter differently or have slow outliers. The interval
// of a shift (Hodges–Lehmann) is narrower, but wrong in these cases. All values must be positive.
func ratioInterval(a, b *Estimate) (*Interval, string) {
	for _, e := range []*Estimate{a, b} {
		if e.Interval == nil {
			return nil, e.Why
		}
	}
	in := mover(a, b, a.Interval, b.Interval)
	if in == nil {
		return nil, farApart
	}
	return in, ""
}

// mover returns the interval of the ratio of two medians with the intervals x and y; nil if it is out
// of range.
func mover(a, b *Estimate, x, y *Interval) *Interval {
	away := func(a, b float64) float64 { return math.Log(a) - math.Log(b) }
	low := a.Value / b.Value * math.Exp(-math.Hypot(away(a.Value, x.Low), away(y.High, b.Value)))
	high := a.Value / b.Value * math.Exp(math.Hypot(away(x.High, a.Value), away(b.Value, y.Low)))
	if !isRate(low) || !isRate(high) {
		return nil
	}
	return &Interval{Low: low, High: high, Level: min(x.Level, y.Level)}
}

// minTestRuns returns the smallest n for which the Mann–Whitney test of two samples of n runs
// each can reject at the level alpha: 2/C(2n, n) ≤ alpha.
func minTestRuns(alpha float64) int {
	n, arrangements := 1, 2.0
	for 2/arrangements > alpha {
		n++
		arrangements *= 2 * float64(2*n-1) / float64(n)
	}
	return n
}

// LeastSeparate is the smallest number of runs per point from which separated computes an
// interval. With 4 runs of each of two equal points, all runs of one are faster than all of the
// other by chance in 2.9 % of studies.
const LeastSeparate = 4

// separated sets the interval of a ratio with too few runs for exact intervals of the medians:
// from the smallest to the largest ratio of two runs. It reports whether it did. The interval
// misses the true ratio only if all runs of one point are on one side of all runs of the other.
// For n and m runs of points with equal scatter, the probability of that is 2/C(n+m, n) (Mann &
// Whitney, Ann. Math. Stat. 18, 1947). More runs only widen the interval, so that testing
// repeatedly while a study grows does not raise the error.
func separated(e *Estimate, a, b Sample) bool {
	n, m := len(a.runs), len(b.runs)
	if e == nil || min(n, m) < LeastSeparate || a.byNode || b.byNode {
		return false
	}
	limits := func(runs []made) (low, high float64) {
		low, high = math.Inf(1), 0
		for _, r := range runs {
			low, high = min(low, r.value), max(high, r.value)
		}
		return low, high
	}
	lowA, highA := limits(a.runs)
	lowB, highB := limits(b.runs)
	if lowA == highA || lowB == highB { // equal runs do not show how much they scatter
		return false
	}
	in := Interval{Low: min(lowA/highB, e.Value), High: max(highA/lowB, e.Value), Level: 1 - 2/combin.GeneralizedBinomial(float64(n+m), float64(n))}
	if !isRate(in.Low) || !isRate(in.High) {
		return false
	}
	e.Interval, e.Why = &in, ""
	return true
}

// AllEqual says why samples without scatter have neither an interval nor a p-value.
const AllEqual = "the runs of a point have the same value"

// dropEmpty replaces an interval without width by the reason AllEqual. All runs, or those in the
// middle, then have exactly the same value: it was copied or rounded, and says nothing about the
// error. A value of 0 keeps its interval, since it may be exact, such as no errors.
func (e *Estimate) dropEmpty() {
	if in := e.Interval; in != nil && in.Low == in.High && in.Low != 0 {
		e.Interval, e.Why = nil, AllEqual
	}
}

// Constant reports whether there is no interval because the runs have the same value.
func (e *Estimate) Constant() bool { return e != nil && e.Interval == nil && e.Why == AllEqual }

// Ends returns the ends of the interval, or the value twice if the runs have the same value. ok is
// false if there are too few runs. Callers add a doubt about equal runs.
func (e *Estimate) Ends() (low, high float64, ok bool) {
	switch {
	case e == nil:
		return 0, 0, false
	case e.Interval != nil:
		return e.Interval.Low, e.Interval.High, true
	}
	return e.Value, e.Value, e.Constant()
}

// An Estimate is a median or a ratio of medians, with its error.
type Estimate struct {
	Value    float64
	Runs     int       // number of runs from which Value was computed
	Interval *Interval // nil: Why gives the reason
	// OneSided is an interval of which each end alone has the requested level, for questions with a
	// limit, where only one end matters. It is narrower than Interval; nil: no narrower one is known.
	OneSided *Interval
	Adjusted bool   // of a ratio: the machine's drift over time was removed
	Why      string // why there is no interval; "" with one
}

// AtBase says why the base's own speedup and efficiency have no interval.
const AtBase = "1 by definition at the base point"

// An Interval is a confidence interval. Order statistics are discrete, so the attained
// level may exceed the requested one.
type Interval struct {
	Low, High float64
	Level     float64 // attained level, a fraction
}
