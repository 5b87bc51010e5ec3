package capacity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// runs returns n runs of a service, with its requests/s by the number in flight. The runs differ in
// speed by 1 % each. The mean latency follows Little's law.
func runs(gives map[float64]float64, n int) []scaling.Observation {
	var obs []scaling.Observation
	for i := range n {
		var places measure.Places
		for threads, x := range gives {
			x *= 1 + 0.01*float64(i)
			at := map[string]any{measure.Batch: 1.0, measure.Threads: threads}
			places.Add(at, measure.RequestsPerSecond, x)
			places.Add(at, measure.LatencyMean, threads/x)
		}
		obs = append(obs, scaling.Observation{Run: fmt.Sprint("s/", i), Study: "s", Point: "p", Repeat: i + 1, Kind: "serve", Framework: "native", Workers: 1,
			Places: places.List(), Parameters: map[string]any{"workload.kind": "serve", "workers": int64(1)}})
	}
	return obs
}

func TestFindSaturation(t *testing.T) {
	m, err := measure.Find(measure.RequestsPerSecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name        string
		gives       map[float64]float64
		runs        int
		at, medians float64
		why, says   string
	}{
		// 96 of 100 is over 95 %; X²/N is 2500, 4608, 2500, 1250.
		{"bends at 2", map[float64]float64{1: 50, 2: 96, 4: 100, 8: 100}, 6, 2, 2, "", "Knee: 2 in flight, the smallest number shown to give 95 % of the most, 102 requests/s at 4 in flight. Throughput over mean latency is largest at 2 [2, 2]; N* = X_max·R_1 is 2.00 [2.00, 2.00]."},
		{"less than one a second", map[float64]float64{1: 0.05, 2: 0.096, 4: 0.1, 8: 0.1}, 6, 2, 2, "", "Knee: 2 in flight"},
		{"94 is not enough", map[float64]float64{1: 50, 2: 94, 4: 100, 8: 100}, 6, 4, 4, "", "Knee: 4 in flight"},
		{"falls behind its best", map[float64]float64{1: 50, 2: 80, 4: 100, 6: 70}, 6, 4, 4, "", "Knee: 4 in flight"},
		{"rises", map[float64]float64{1: 10, 2: 20, 4: 40}, 6, 0, 4, "it may still be rising at 4 in flight, the most that were measured: measure 8", "No knee: it may"},
		{"rises, in small steps", map[float64]float64{20: 20, 21: 21}, 6, 0, 20, "measure 40", ""},
		{"few runs", map[float64]float64{1: 50, 2: 96, 4: 100, 8: 100}, 3, 0, 2, "too few runs for an interval (3 of 6 needed)", "By the medians alone, 2 in flight reaches 95 % of the most"},
		{"few runs, and rises", map[float64]float64{1: 10, 2: 20}, 3, 0, 2, "measure 4", ""},
		{"one place", map[float64]float64{1: 10}, 6, 0, 0, "only 1 in flight was measured", "No knee: only"},
	} {
		k := findSaturation(curveOf(t, runs(tt.gives, tt.runs), measure.Threads), m)
		if k.At != tt.at || k.AtLeast != tt.at || k.Medians != tt.medians || !strings.Contains(k.Why, tt.why) || tt.why == "" && k.Why != "" || !strings.Contains(k.Sentence(), tt.says) {
			t.Errorf("%s: %+v\n%s", tt.name, k, k.Sentence())
		}
	}
}

// If runs disagree about 2 in flight (94 to 97 of 100), it is open whether 2 saturate the service.
func TestRange(t *testing.T) {
	m, _ := measure.Find(measure.RequestsPerSecond)
	obs := runs(map[float64]float64{1: 50, 4: 100, 8: 100}, 6)
	for i := range obs {
		var places measure.Places
		for _, p := range append(obs[i].Places, measure.Place{At: map[string]any{measure.Batch: 1.0, measure.Threads: 2.0},
			Values: map[string]float64{measure.RequestsPerSecond: (94 + 0.6*float64(i)) * (1 + 0.01*float64(i))}}) {
			places.Add(p.At, measure.RequestsPerSecond, p.Values[measure.RequestsPerSecond])
		}
		obs[i].Places = places.List()
	}
	k := findSaturation(curveOf(t, obs, measure.Threads), m)
	if k.AtLeast != 2 || k.At != 4 || k.Power != nil || k.Bound != nil || !strings.Contains(k.Sentence(), "; 2 may be enough.") || k.Range() != "4 (2 may be enough)" {
		t.Errorf("%+v: %s", k, k.Sentence())
	}
}

// A latency, and a rate that follows the request rate, have no saturation point.
func TestNoSaturation(t *testing.T) {
	c := curveOf(t, runs(map[float64]float64{1: 10, 2: 20}, 6), measure.Threads)
	latency, _ := measure.Find(measure.LatencyMean)
	rate, _ := measure.Find(measure.RequestsPerSecond)
	if findSaturation(c, latency) != nil {
		t.Error("a latency has a knee")
	}
	if list := FindSaturations([]scaling.Curve{c}, rate); len(list) != 1 || list[0].Best != 2 {
		t.Errorf("%d curves have a knee", len(list))
	}
	c.Axis = measure.Rate
	if FindSaturations([]scaling.Curve{c}, rate) != nil {
		t.Error("an open loop has a knee")
	}
}
