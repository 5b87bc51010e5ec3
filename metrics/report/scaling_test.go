package report

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// A machine gets slower by a tenth from block to block, and two workers take half as long
// as one. Each table with a drift-corrected speedup says so. Tables of runs without a start
// time have no such note.
func TestDriftNotes(t *testing.T) {
	study := func(blocks bool) []scaling.Observation {
		var list []scaling.Observation
		for i := range 9 {
			for k, n := range []int{1, 2} {
				seconds := math.Pow(1.1, float64(i)) / float64(n)
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
			{"the main table", "", scalingTable},
			{"of a target alone", measure.Throughput, scalingTable},
			{"of run times", "", Timing},
			{"of a measure", "", func(c []scaling.Curve) *table.Table {
				m, err := measure.Find(measure.TrainSeconds)
				if err != nil {
					t.Fatal(err)
				}
				return Measure(c, nil, m)
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
			if got := slices.Contains(test.table(curves).Notes, detrended); got != blocks {
				t.Errorf("%s, in blocks: %v; says so: %v", test.name, blocks, got)
			}
		}
	}
}

func scalingTable(curves []scaling.Curve) *table.Table { return Scaling(curves) }

// Of six runs, four were refused a P95, so that it has no median. It is not missing from all runs.
func TestTooFewForAMedian(t *testing.T) {
	m, _ := measure.Find(measure.LatencyP95)
	curves := []scaling.Curve{{Points: []scaling.Point{{Measures: []*scaling.Summary{{Measure: m, Runs: 2}}}}}}
	if got := unmeasured(curves, nil, m); got != "Too many runs lack latency_p95 for a median; `-v` says why." {
		t.Error(got)
	}
}
