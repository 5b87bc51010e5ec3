package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/scaling"
)

func TestStepTimes(t *testing.T) {
	s := openStore(t)
	run := aRun()
	texts := twoRanks()
	ingestRun(t, s, run, writeRanks(t, t.TempDir(), texts[:])...)
	var steady, warmup int
	if err := s.read.QueryRow("SELECT steady_steps, warmup_steps FROM result").Scan(&steady, &warmup); err != nil {
		t.Fatal(err)
	}
	got, err := s.StepTimes(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	// By hand from twoRanks: without the first step, and with 10 or 11 steady
	// ones, rank 0 always takes 1 s, rank 1 takes 0.5 s and twice 1.5 s.
	if warmup < 1 || steady != 12-warmup || steady < 8 {
		t.Fatalf("%d warm-up and %d steady steps: the runs of this test have changed", warmup, steady)
	}
	want := []scaling.StepTimes{
		{Rank: 0, Steps: steady, P5: 1, P25: 1, P50: 1, P75: 1, P95: 1, Max: 1},
		{Rank: 1, Steps: steady, P5: 0.5, P25: 0.5, P50: 0.5, P75: 0.5, P95: 1.5, Max: 1.5},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := s.StepTimes(t.Context(), "none"); err != nil || got != nil {
		t.Errorf("of no run: %v, %v", got, err)
	}
}

func TestProvenance(t *testing.T) {
	s := openStore(t)
	dir := t.TempDir()
	for repeat := 1; repeat <= 3; repeat++ {
		run := aRun()
		run.ID, run.Repeat = "s/p-r"+string(rune('0'+repeat))+"-a1", repeat
		texts := twoRanks()
		ingestRun(t, s, run, writeRanks(t, dir+"/"+string(rune('0'+repeat)), texts[:])...)
	}
	got, err := s.Provenance(t.Context(), []string{"s/p-r1-a1", "s/p-r3-a1", "s/none"})
	if err != nil {
		t.Fatal(err)
	}
	want := &Provenance{
		Hosts:             []Counted[string]{{"n0", 2}, {"n1", 2}},
		Environments:      []Counted[metrics.Environment]{{metrics.Environment{CPUs: 4}, 2}},
		InitialParameters: []Counted[string]{{"aa", 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
