package scaling

import (
	"maps"

	"github.com/scalebench/scalebench/metrics/measure"
)

// AsThroughput replaces the runs' throughput by a measure, so that everything computed for
// throughputs applies to it. For a measure that is better when lower, it uses the
// reciprocal. Runs without the measure then have no throughput.
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
