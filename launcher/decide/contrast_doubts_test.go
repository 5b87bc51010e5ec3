package decide

import (
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// The answer has the decisive warnings about the compared points, and about the study, and no others.
func TestContrastDoubts(t *testing.T) {
	crowded := "4 ranks on n1 compute with 4 threads on 2 CPUs"
	at := func(run string, workers int, warnings ...string) scaling.Point {
		return scaling.Point{At: scaling.Value{Number: float64(workers)}, Workers: workers, Runs: []scaling.RunValues{{ID: run}}, Warnings: warnings}
	}
	r := &Results{
		Contrast:     &Contrast{},
		Observations: []scaling.Observation{{Run: "one", Point: "p1"}, {Run: "four", Point: "p4"}},
		Curves:       []scaling.Curve{{Series: "native", Axis: scaling.Workers, Points: []scaling.Point{at("one", 1), at("four", 4, crowded)}}},
	}
	if got := r.doubts([]string{"p1"}); got != "" {
		t.Errorf("of 1 worker: %q", got)
	}
	if got, want := r.doubts([]string{"p4"}), " Doubtful: 4 workers: "+crowded+"."; got != want {
		t.Errorf("of 4 workers: %q, want %q", got, want)
	}
	r.Contrast.Warnings = []string{"learning_rate differs between runs: 1, 2"}
	if got, want := r.doubts([]string{"p1"}), " Doubtful: learning_rate differs between runs: 1, 2."; got != want {
		t.Errorf("of the study: %q, want %q", got, want)
	}
}
