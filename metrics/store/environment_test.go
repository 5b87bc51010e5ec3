package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// What the supervisor found out of the host and what the program said of itself
// are one environment; the program has the last word.
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
