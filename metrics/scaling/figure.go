package scaling

import (
	"maps"

	"github.com/scalebench/scalebench/metrics/measure"
)

// AsThroughput gives the runs a measure in place of their throughput, so that what is
// asked of throughputs can be asked of it. Of a measure that is better when lower it is
// the reciprocal. Runs without the measure have no throughput.
func AsThroughput(runs []Observation, m measure.Measure) {
	for i := range runs {
		o := &runs[i]
		x := o.Known(m.Name)
		o.Values = maps.Clone(o.Values)
		clear(o.Values)
		if x == nil || !(*x > 0) {
			continue
		}
		o.Values[measure.Throughput] = *x
		if m.Better == measure.Lower {
			o.Values[measure.Throughput] = 1 / *x
		}
	}
}
