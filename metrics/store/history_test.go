package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
)

func TestHistory(t *testing.T) {
	s := openStore(t)
	recorded(t, s, "alpha", "one", 1, 1000, "Xeon", "abc123")
	recorded(t, s, "beta", "one", 1, 2000, "EPYC", "abc999")
	recorded(t, s, "beta", "two", 1, 3000, "Xeon", "def")
	measured(t, s, "gamma", "two", 1, 1, 1, 10, func(r *metrics.Run) { r.Status = metrics.Failed })
	measured(t, s, "delta", "three", 1, 1, 1, 10, nil) // reaches 0.5 at 21 s

	points, prints, err := s.History(t.Context(), Filter{}, find(t, "throughput"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range points {
		names = append(names, p.Point)
	}
	if got := strings.Join(names, " "); got != "one three two" {
		t.Errorf("points %s", got)
	}
	// 20 steps of 16 samples a second, in both studies.
	if diff := cmp.Diff([]compare.Sample{{Run: 1, Unix: 1000, Value: 16, Print: 0}, {Run: 2, Unix: 2000, Value: 16, Print: 1}}, points[0].Samples); diff != "" {
		t.Error(diff)
	}
	if prints[0][fingerprint.CPU] != "Xeon" || prints[1][fingerprint.CPU] != "EPYC" || points[2].Samples[0].Print != 0 {
		t.Errorf("fingerprints %v", prints)
	}
	marks, err := s.Marks(t.Context(), []int64{2, 3})
	if err != nil || len(marks) != 2 || marks[2].Run != "beta/one-r1-a1" || marks[2].GitCommit != "abc999" || marks[3].Workers != 1 {
		t.Errorf("%+v, %v", marks, err)
	}
	for _, test := range []struct {
		filter Filter
		figure string
		want   int // samples
	}{
		{Filter{Study: "beta"}, "end_to_end", 2},
		{Filter{Commit: "abc"}, "train_seconds", 2},
		{Filter{Where: "throughput > 15 AND run LIKE 'beta/%' AND cluster = 'c'"}, "step_p50", 2},
		{Filter{Where: "git_commit = 'def'", Commit: "de"}, "throughput", 1},
		{Filter{}, "to_0.5", 1},
		{Filter{Where: "study = 'delta'"}, "to_0.5", 1},
		{Filter{}, "to_1", 0}, // a target that no run reaches
		{Filter{Study: "delta"}, "final_accuracy", 1},
	} {
		points, _, err := s.History(t.Context(), test.filter, find(t, test.figure))
		if err != nil {
			t.Errorf("%+v %s: %v", test.filter, test.figure, err)
		}
		n := 0
		for _, p := range points {
			n += len(p.Samples)
		}
		if n != test.want {
			t.Errorf("%+v %s: %d samples, want %d", test.filter, test.figure, n, test.want)
		}
	}
}

func find(t testing.TB, name string) measure.Measure {
	t.Helper()
	m, err := measure.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
