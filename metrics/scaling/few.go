package scaling

import (
	"math"

	"gonum.org/v1/gonum/stat/combin"
)

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
	in := Interval{Low: min(lowA/highB, e.Value), High: max(highA/lowB, e.Value), Level: 1 - 2/combin.GeneralizedBinomial(float64(n+m), float64(n))}
	if !isRate(in.Low) || !isRate(in.High) {
		return false
	}
	e.Interval, e.Why = &in, ""
	return true
}
