package scaling

import (
	"cmp"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// StepTimes are percentiles (nearest-rank, in seconds) of one rank's step times in the steady
// state of a run.
type StepTimes struct {
	Rank  int
	Steps int // number of steps
	// P5 is the time that 5 % of the steps do not exceed; the other percentiles correspondingly.
	P5, P25, P50, P75, P95, Max float64
}

// NewStepTimes returns the percentiles of the durations of one rank's steps, of which there must
// be at least one. It sorts durations.
func NewStepTimes(rank int, durations []float64) StepTimes {
	slices.Sort(durations)
	at := func(share float64) float64 {
		return durations[max(0, int(math.Ceil(share*float64(len(durations))))-1)]
	}
	return StepTimes{Rank: rank, Steps: len(durations), P5: at(0.05), P25: at(0.25), P50: at(0.5), P75: at(0.75), P95: at(0.95), Max: at(1)}
}

// MedianRun returns the run that represents a point: the one with the median throughput, or the
// slower of the two in the middle. It is nil if no run has a throughput. Plots of the parts of a
// step show this run, because parts add up within a run but their medians do not.
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
		return cmp.Compare(a.Values[measure.Throughput], b.Values[measure.Throughput])
	})
	return list[(len(list)-1)/2]
}
