package query

import (
	"fmt"
	"math"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// Two runs of 1 worker took 60 and 84 s on one node, on average 0.02 node-hours, and one of 2 workers 54 s on two
// nodes, 0.03 node-hours: 4 more of each take 0.2. There is no interval yet, so no chance. Of 4 workers nothing is known.
func TestExpect(t *testing.T) {
	var obs []scaling.Observation
	add := func(workers int, seconds float64) {
		obs = append(obs, scaling.Observation{Run: fmt.Sprintf("s/w%d-%d", workers, len(obs)), Study: "s", Workers: workers, Nodes: workers, Values: map[string]float64{measure.Throughput: float64(100 * workers), measure.TrainSeconds: seconds}})
	}
	add(1, 60)
	add(1, 84)
	add(2, 54)
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil || len(curves) != 1 {
		t.Fatal(curves, err)
	}
	for _, c := range []struct {
		counts []int
		hours  float64 // 0: unknown
	}{{[]int{2, 1}, 0.2}, {[]int{1}, 0.08}, {[]int{4, 2}, 0}} {
		a := &advice.Advice{Next: &advice.Next{Runs: 4}, Confidence: 0.95}
		expect(a, c.counts, obs, curves[0])
		n := a.Next
		if (n.NodeHours != nil) != (c.hours > 0) || n.NodeHours != nil && math.Abs(*n.NodeHours-c.hours) > 1e-12 || n.Chance != nil {
			t.Errorf("%v: %v, %v; want %g", c.counts, n.NodeHours, n.Chance, c.hours)
		}
	}
}
