package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// What the supervisor found on the host and what the program stated form one environment;
// the program takes precedence.
func TestEnvironmentOfSupervisorAndRank(t *testing.T) {
	s := openStore(t)
	dir := t.TempDir()
	supervised := start(0, 1, 0)
	supervised.Start.Writer = "supervisor"
	path := filepath.Join(dir, "supervisor-00000-0.jsonl")
	if err := os.WriteFile(path, []byte(lines(supervised, metrics.Event{Environment: &metrics.Environment{
		Hostname: "n0", CPUs: 4, Versions: map[string]string{"go": "1", "driver": "550"}}})), 0o600); err != nil {
		t.Fatal(err)
	}
	rank := rankFile(t, dir, 0, 0, lines(start(0, 1, 0), metrics.Event{Environment: &metrics.Environment{
		Threads: 2, Versions: map[string]string{"go": "2"}}}))
	ingestRun(t, s, aRun(), rank, metrics.EventFile{Path: path, Writer: "supervisor"})
	d, err := s.Show(context.Background(), aRun().ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []Environment{{Ranks: []int{0}, Environment: metrics.Environment{Hostname: "n0", CPUs: 4, Threads: 2,
		Versions: map[string]string{"go": "2", "driver": "550"}}}}
	if diff := cmp.Diff(want, d.Environments); diff != "" {
		t.Error(diff)
	}
}

// If one event file covers the whole run (as for a log), it covers the ranks of several
// supervisors. Each supervisor states where its own ranks ran.
func TestEnvironmentsUnderOneFile(t *testing.T) {
	s := openStore(t)
	dir := t.TempDir()
	whole := start(0, 3, 0)
	whole.Start.Ranks, whole.Start.Host = 3, ""
	files := []metrics.EventFile{rankFile(t, dir, 0, 0, lines(whole))}
	on := func(host string) metrics.Environment {
		return metrics.Environment{Hostname: host, CPUModel: "CPU of " + host, CPUs: 1, CPUSet: "0"}
	}
	for rank, host := range []string{"n0", "n0", "n1"} {
		environment := on(host)
		supervisor := start(rank, 3, 0)
		supervisor.Start.Writer, supervisor.Start.Host = "supervisor", host
		path := filepath.Join(dir, fmt.Sprintf("supervisor-%05d-0.jsonl", rank))
		if err := os.WriteFile(path, []byte(lines(supervisor, metrics.Event{Environment: &environment})), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, metrics.EventFile{Path: path, Writer: "supervisor", Rank: rank})
	}
	ingestRun(t, s, aRun(), files...)
	d, err := s.Show(context.Background(), aRun().ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []Environment{{Ranks: []int{0, 1}, Environment: on("n0")}, {Ranks: []int{2}, Environment: on("n1")}}
	if diff := cmp.Diff(want, d.Environments); diff != "" {
		t.Error(diff)
	}
	if crowded := "2 ranks on n0 compute with 2 threads on 1 CPU"; !slices.Contains(d.Result.Warnings, crowded) {
		t.Errorf("warnings %q, want %q", d.Result.Warnings, crowded)
	}
	if got, want := d.Result.Fingerprint[fingerprint.CPU], "CPU of n0 + CPU of n1"; got != want {
		t.Errorf("it ran on %q, want %q", got, want)
	}
	p, err := s.Provenance(context.Background(), []string{aRun().ID})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Counted[string]{{"n0", 1}, {"n1", 1}}, p.Hosts); diff != "" {
		t.Error(diff)
	}
}
