package scaling

import (
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// StepTimes is how long the steps of one rank took in the steady state of one
// run: nearest-rank percentiles, so values that occurred, in seconds.
type StepTimes struct {
	Rank  int
	Steps int // that they are of
	// P5 is the time that 5 % of the steps stay within, and so on.
	P5, P25, P50, P75, P95, Max float64
}

// NewStepTimes describes the durations of one rank's steps, which it sorts.
// There must be one at least.
func NewStepTimes(rank int, durations []float64) StepTimes {
	slices.Sort(durations)
	at := func(share float64) float64 {
		return durations[max(0, int(math.Ceil(share*float64(len(durations))))-1)]
	}
	return StepTimes{Rank: rank, Steps: len(durations), P5: at(0.05), P25: at(0.25), P50: at(0.5), P75: at(0.75), P95: at(0.95), Max: at(1)}
}

// MedianRun is the run that stands for a point: the one with the median
// throughput, of two in the middle the slower. nil where no run has one. What
// adds up, like the parts of a step, is shown of one run, since medians of the
// parts would not add up.
func (p *Point) MedianRun() *RunValues {
	var list []*RunValues
	for i := range p.Runs {
		if x, ok := p.Runs[i].Values[measure.Throughput]; ok && isRate(x) {
			list = append(list, &p.Runs[i])
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b *RunValues) int {
		switch x, y := a.Values[measure.Throughput], b.Values[measure.Throughput]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return list[(len(list)-1)/2]
}
