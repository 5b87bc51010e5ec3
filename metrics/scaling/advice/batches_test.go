package advice

import (
	"math"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// Each measured count uses the samples of its runs, although their batches do not grow as the
// study's weak scaling says. The batch of other counts is then unknown.
func TestSamplesOfOwnBatch(t *testing.T) {
	batches := map[int]int64{1: 64, 2: 96, 4: 100}
	took := map[int]float64{1: 1e6, 2: 2e6, 4: 5e6}
	s := series{counts: []int{1, 2, 4}, runs: 6, x: tree, took: fixed, change: func(o *scaling.Observation) {
		o.Parameters = map[string]any{"workload.scaling": "weak", "global_batch": batches[o.Workers], "workers": int64(o.Workers)}
		o.Evaluations[0].Samples = int64(took[o.Workers])
	}}
	for range 20 { // the order of maps is random
		for _, c := range s.advise(t, Options{}).Candidates {
			want, measured := took[c.Workers]
			switch {
			case !measured && c.Samples != nil:
				t.Errorf("%d workers: %v samples; its batch is not known", c.Workers, c.Samples.Value)
			case measured && (c.Samples == nil || math.Abs(c.Samples.Value-want) > 1):
				t.Errorf("%d workers: %+v samples, want %g", c.Workers, c.Samples, want)
			}
		}
	}
}
