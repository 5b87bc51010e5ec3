package tables

import (
	"fmt"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// A speedup within blocks need not be the ratio of the medians beside it: of times
// 1, 2 and 8 at the base and 1, 1 and 2 beside it, the ratios are 1, 2 and 4, and
// the medians 2 and 1. Each table with such a speedup says so, and none without.
func TestWithinBlocks(t *testing.T) {
	study := func(blocks bool) []scaling.Observation {
		var list []scaling.Observation
		for i := range 9 {
			for k, n := range []int{1, 2} {
				seconds := []float64{1, 2, 8}[i%3]
				if n == 2 {
					seconds = []float64{1, 1, 2}[i%3]
				}
				o := scaling.Observation{
					Run: fmt.Sprintf("s/w%d-r%d-a1", n, i+1), Study: "s", Point: fmt.Sprintf("w%d", n), Repeat: i + 1, Framework: "native", Workers: n, Nodes: n,
					Parameters: map[string]any{"workers": int64(n)},
					Values:     map[string]float64{measure.TrainSeconds: seconds, measure.Throughput: 1 / seconds, "to_0.9": seconds, measure.RunSeconds: seconds},
				}
				if blocks {
					o.BeganUnix = float64(1e9 + 1000*(2*i+k))
				}
				list = append(list, o)
			}
		}
		return list
	}
	for _, blocks := range []bool{true, false} {
		for _, test := range []struct {
			name  string
			drop  string
			table func([]scaling.Curve) *table.Table
		}{
			{"the main table", "", Scaling},
			{"of a target alone", measure.Throughput, Scaling},
			{"of run times", "", Timing},
			{"of a measure", "", func(c []scaling.Curve) *table.Table {
				m, err := measure.Find(measure.TrainSeconds)
				if err != nil {
					t.Fatal(err)
				}
				return Measure(c, m)
			}},
		} {
			list := study(blocks)
			for _, o := range list {
				delete(o.Values, test.drop)
			}
			curves, err := scaling.Analyse(list, scaling.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(test.table(curves).Notes, withinBlocks); got != blocks {
				t.Errorf("%s, in blocks: %v; says so: %v", test.name, blocks, got)
			}
		}
	}
}
