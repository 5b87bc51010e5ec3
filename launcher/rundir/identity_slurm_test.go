//go:build slurm

package rundir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs/nfstest"
)

// Two mounts of a folder show one file, even when one of them has cached what the file was before
// another host removed a link to it.
func TestSameFileOnTwoMounts(t *testing.T) {
	folder := t.TempDir()
	one := nfstest.Mount(t, folder, nfstest.Plan{Memory: time.Minute})
	two := nfstest.Mount(t, folder, nfstest.Plan{Memory: time.Minute})
	at := func(host *nfstest.Client, name string) string { return filepath.Join(host.Path, name) }
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(at(one, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(at(one, "a"), at(one, "link")); err != nil {
		t.Fatal(err)
	}
	if !SameFile(at(one, "a"), at(two, "a")) { // the second mount caches the file with two links
		t.Error("the file with two links is not the same on both mounts")
	}
	if err := os.Remove(at(one, "link")); err != nil {
		t.Fatal(err)
	}
	if !SameFile(at(one, "a"), at(two, "a")) {
		t.Error("the file is not the same on both mounts after its link was removed")
	}
	if SameFile(at(one, "a"), at(two, "b")) {
		t.Error("two files are the same")
	}
}
