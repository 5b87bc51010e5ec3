package scaling

import (
	"maps"

	"github.com/scalebench/scalebench/metrics/measure"
)

// AsThroughput replaces the throughput of each run by its value of a measure, so that everything
// that is computed for throughputs is computed for that measure. If a lower value is better, it
// uses 1/value. Runs without the measure then have no throughput.
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
