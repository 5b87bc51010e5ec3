//go:build slurm

package store

import (
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/metrics/sharedfs/nfstest"
)

// If the server's reply to every removal of a file is lost, results are still stored, and
// no command reports a failure.
func TestStoreWithLostReplies(t *testing.T) {
	c := nfstest.Mount(t, t.TempDir(), nfstest.Plan{Lost: 1})
	path := filepath.Join(c.Path, "db")
	for i := range 3 {
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !s.network {
			t.Fatal("a FUSE file system is taken for a local one")
		}
		run := aRun()
		run.ID += string(rune('a' + i))
		if _, err := s.Ingest(t.Context(), run, nil); err != nil {
			t.Errorf("run %d: %v", i, err)
		}
		if list, err := s.Runs(t.Context(), Filter{}); err != nil || len(list) != i+1 {
			t.Errorf("%d runs, want %d; %v", len(list), i+1, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
