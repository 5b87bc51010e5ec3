package scaling

import (
	"fmt"
	"testing"

	"github.com/scalebench/scalebench/metrics/worktest"
)

// Sixteen times as many runs take about sixteen times the work, even if each run has a warning.
func TestLinear(t *testing.T) {
	worktest.New(t).Linear(t, 2000, func(n int) {
		var obs []Observation
		for _, workers := range []int{1, 2} {
			list := runs(workers, make([]float64, n/2)...)
			for i := range list {
				list[i].Values = map[string]float64{"throughput": float64(100*workers + i)}
				list[i].Warnings = []string{"a doubt", fmt.Sprintf("a doubt with a figure of %d", i%7)}
			}
			obs = append(obs, list...)
		}
		curves, err := Analyse(obs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if lines := Lines(Remarks(curves), 1); len(lines) < 2 {
			t.Errorf("%q", lines)
		}
	})
}

// The interval for four million runs: ranks have a standard deviation of √n/2 = 1000, so the ends
// are 1.95996 and 0.84162 standard deviations from the middle, with continuity correction.
func TestMedianOfMillions(t *testing.T) {
	const n = 4_000_000
	sorted := make([]float64, n)
	for i := range sorted {
		sorted[i] = float64(i + 1)
	}
	for confidence, low := range map[float64]float64{0.95: 1998040, 0.6: 1999158} {
		in, why := medianInterval(sorted, confidence)
		if in == nil || in.Low != low || in.High != n+1-low || !(in.Level >= confidence && in.Level < confidence+0.001) {
			t.Errorf("%g: %+v %s; want %g", confidence, in, why, low)
		}
	}
}
