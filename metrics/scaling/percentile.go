package scaling

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// AllowForSkew raises the upper end of the interval of a high percentile of latencies, so that it
// contains the percentile of an endless run. xs are the percentiles of the runs, and lacking further
// runs have none.
//
// The interval of a median assumes that a run is equally likely to lie on either side of the true
// value. But slow requests come in bursts, and few runs have many bursts: most runs lie below the
// true percentile, which is near the mean of theirs. If the logarithms of the runs are normal with
// standard deviation s, a run lies below the mean with probability Φ(s/2). Queues are more skewed, up
// to Φ(s) (TestTruthOfManyRuns). The upper end is the smallest order statistic with which the
// binomial tails, at that probability, leave the requested level. With 10 runs or fewer, or runs
// that scatter little, it stays where it is.
func (r *Reach) AllowForSkew(xs []float64, lacking int, confidence float64) {
	confidence, err := level(confidence)
	if err != nil || r.Median == nil || r.Median.Interval == nil || slices.Min(xs) <= 0 {
		return
	}
	logs := make([]float64, len(xs))
	for i, x := range xs {
		logs[i] = math.Log(x)
	}
	n, in := len(xs)+lacking, r.Median.Interval
	low := lowerRank(n, confidence)
	side := distuv.Binomial{N: float64(n), P: distuv.UnitNormal.CDF(stat.StdDev(logs, nil))}
	first := n + 1 - low
	high := first
	for high < n && side.CDF(float64(low-1))+side.Survival(float64(high-1)) > alpha(confidence) {
		high++
	}
	switch {
	case high == first:
	case high > len(xs):
		r.AtLeast = &in.Low
		r.Median.Interval, r.Median.OneSided, r.Median.Why = nil, nil, lacks(lacking, n)
	default:
		half := distuv.Binomial{N: float64(n), P: 0.5}
		in.High, in.Level = slices.Sorted(slices.Values(xs))[high-1], 1-half.CDF(float64(low-1))-half.Survival(float64(high-1))
		r.Median.OneSided = nil
	}
}
