package figure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// The front keeps the points that no other exceeds on both axes: (3, 5) and (2, 1) are below
// (4, 6), and (4, 2) is below it at the same speed. From (1, 9) the stairs go down at x = 1.
func TestFrontOfMost(t *testing.T) {
	got := frontOfMost([]XY{{2, 1}, {1, 9}, {4, 6}, {3, 5}, {8, 1}, {4, 2}})
	if diff := cmp.Diff([]XY{{1, 9}, {1, 6}, {4, 6}, {4, 1}, {8, 1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Two batches at 1 and 8 in flight: a user of batch b gets 100/(b·threads)^½ tokens/s, a GPU gives
// threads times that. At 1 in flight, 100 and 50; at 8, 35.4 and 17.7 with 283 and 141.
func TestFrontier(t *testing.T) {
	var obs []scaling.Observation
	for i := range 6 {
		var places measure.Places
		for batch, x := range map[float64]float64{1: 100, 4: 50} {
			for threads, user := range map[float64]float64{1: x, 8: x / 2.828} {
				at := map[string]any{measure.Batch: batch, measure.Threads: threads}
				places.Add(at, measure.OutputPerUser, user*(1+float64(i)/1000))
				places.Add(at, measure.OutputPerGPU, threads*user*(1+float64(i)/1000))
			}
		}
		obs = append(obs, scaling.Observation{Run: fmt.Sprint("s/", i), Study: "s", Point: "p", Repeat: i + 1, Kind: "serve", Framework: "vllm", Workers: 1,
			Places: places.List(), Parameters: map[string]any{"workload.kind": "serve", "workers": int64(1)}})
	}
	k, _ := Find("frontier")
	of, _ := measure.Find(k.Measure)
	over, _ := measure.Find(k.Over)
	curves, err := scaling.Analyse(obs, scaling.Options{Measure: of, Axis: measure.Threads})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Draw(k.Name, Data{Curves: curves, Observations: obs}, Options{Against: over})
	if err != nil {
		t.Fatal(err)
	}
	var front string
	for _, m := range f.Marks() {
		if m.Kind == Front {
			front = m.String()
		}
	}
	if front != `front  (35.4491, 283.593) (35.4491, 100.25) (100.25, 100.25)` || count(f, Line) != 2 || count(f, Tag) != 4 || !strings.Contains(f.Caption(), "the Pareto front") {
		t.Errorf("%s\n%s", front, f.Caption())
	}
}
