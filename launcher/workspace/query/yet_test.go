package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
)

func TestOneQuestion(t *testing.T) {
	for _, c := range []struct {
		wish Wish
		ok   bool
	}{
		{Wish{}, true},
		{Wish{Spec: true}, true},
		{Wish{Options: advice.Options{Deadline: 60, Budget: 5}}, true},
		{Wish{Spec: true, Rate: 5}, false},
		{Wish{Contrast: "framework", Options: advice.Options{MinEfficiency: 0.5}}, false},
		{Wish{Rate: 5, Options: advice.Options{Budget: 5}}, false},
	} {
		if err := c.wish.single(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.wish, err)
		}
	}
}

// Six runs have an interval from the smallest to the largest value; two have none.
func TestOpenReplicas(t *testing.T) {
	f, err := measure.Find(measure.RateWithinLimit)
	if err != nil {
		t.Fatal(err)
	}
	six := func(low, high float64) []float64 {
		return []float64{low, low, (low + high) / 2, (low + high) / 2, high, high}
	}
	for _, c := range []struct {
		name   string
		rates  map[int][]float64
		demand float64
		want   []int // replicas
	}{
		{"too few runs", map[int][]float64{1: {109, 110}, 2: {190, 191}}, 150, []int{1, 2}},
		{"far too few replicas", map[int][]float64{1: {50, 51}, 2: {101, 102}, 4: {200, 202}}, 100, []int{2, 4}},
		{"more than enough", map[int][]float64{1: {95, 96}, 2: {190, 191}, 4: {380, 381}}, 100, []int{1, 2}},
		{"may be enough", map[int][]float64{1: six(95, 105), 2: six(190, 210)}, 100, []int{1, 2}},
		{"not enough, none between", map[int][]float64{1: six(95, 105), 2: six(190, 210)}, 1000, nil},
	} {
		var obs []scaling.Observation
		for n, rates := range c.rates {
			for i, x := range rates {
				obs = append(obs, scaling.Observation{Run: fmt.Sprintf("s/w%d-r%d-a1", n, i+1), Study: "s", Point: fmt.Sprintf("w%d", n), Repeat: i + 1, Framework: "triton", Kind: "serve", Workers: n, Nodes: 1,
					BeganUnix: 1.79e9 + 100*float64(i) + float64(n), Parameters: map[string]any{"workload.kind": "serve", "workload.limit": "p95=50ms", "workers": int64(n)},
					Places: []measure.Place{{At: map[string]any{measure.Batch: 1.0}, Values: map[string]float64{measure.RateWithinLimit: x}}}})
			}
		}
		curves, err := scaling.Analyse(obs, scaling.Options{Measure: f, Confidence: 0.9615, FewRuns: true})
		if err != nil || len(curves) != 1 {
			t.Fatalf("%s: %v, %d curves", c.name, err, len(curves))
		}
		a := capacity.Estimate(curves[0], capacity.Load{Rate: c.demand, Confidence: 0.9615}, nil)
		var got []int
		for _, i := range openReplicas(curves[0], a) {
			got = append(got, curves[0].Points[i].Workers)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v; %s", c.name, got, c.want, strings.TrimSpace(a.Sentence()))
		}
	}
}
