package sequential

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// Assumed is the relative standard deviation of runs that is assumed if there are no runs yet.
const Assumed = 0.02

// A Forecast says what one look is expected to show, before any run.
type Forecast struct {
	Repeats int // runs of each worker count that is still open
	// Half is the expected half-width of the interval of the ratio of two counts' speeds, as a
	// fraction; 0 if there are too few runs for an interval.
	Half  float64
	Runs  int     // maximum number of runs up to this look
	Hours float64 // maximum node-hours up to this look
}

// Forecast returns a forecast for each look. The numbers of runs and hours are maxima, for the
// case that all counts stay open. scatter is the relative standard deviation of runs.
func (d Design) Forecast(counts []int, hours func(workers int) float64, scatter float64) (list []Forecast) {
	one := 0.0
	for _, n := range counts {
		one += hours(n)
	}
	for _, n := range d.Looks {
		list = append(list, Forecast{Repeats: n, Half: d.half(n, d.Confidence) * scatter, Runs: n * len(counts), Hours: float64(n) * one})
	}
	return list
}

// half returns the expected half-width of the interval of log(ratio) of two counts with n runs
// each at a level, in standard deviations of a run. It assumes normally distributed runs and uses
// Blom's approximation of expected order statistics (Statistical Estimates and Transformed
// Beta-Variables, 1958).
func (d Design) half(n int, level float64) float64 {
	at := func(rank int) float64 {
		return -distuv.UnitNormal.Quantile((float64(rank) - 0.375) / (float64(n) + 0.25))
	}
	switch rank := decision.Rank(n, level); {
	case rank > 0:
		return math.Sqrt2 * at(rank)
	case n >= scaling.LeastSeparate:
		return 2 * at(1)
	}
	return 0
}

// Scatter returns the relative standard deviation of the throughput of runs within their
// points, pooled over all points; 0 if no point has two runs.
func Scatter(curves []scaling.Curve) float64 {
	sum, free := 0.0, 0
	for _, c := range curves {
		for i := range c.Points {
			values := c.Points[i].Of(measure.Throughput).Values
			if len(values) < 2 {
				continue
			}
			logs := make([]float64, len(values))
			for k, x := range values {
				logs[k] = math.Log(x)
			}
			sum += stat.Variance(logs, nil) * float64(len(logs)-1)
			free += len(logs) - 1
		}
	}
	if free == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(free))
}
