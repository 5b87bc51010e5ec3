//go:build slurm

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSlurmFaultsAreSeen shows that TestSlurmFaults can fail: without one of
// the two things that keep an attempt from running twice, its checks say so.
func TestSlurmFaultsAreSeen(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		name string
		fire func(*trial) error
		want string
	}{
		{"noclaim", func(tr *trial) error {
			tr.site.unclaimed = true
			tr.files()
			return submissionUnseen(tr)
		}, "was run by jobs"},
		{"nolookup", func(tr *trial) error {
			tr.file("kill", "sbatch 1 after\n", 0o644)
			if _, code := tr.finish(tr.start(context.Background(), "submit", "study.toml", "--site", "site.toml")); code != -1 {
				return errors.New("the tool was not killed")
			}
			tr.file("silent", "", 0o644)
			if err := os.Remove(filepath.Join(tr.dir, "kill")); err != nil {
				return err
			}
			tr.submit()
			return os.Remove(filepath.Join(tr.dir, "silent"))
		}, "was submitted twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := r.trial(tt.name, class{name: tt.name}, rand.New(rand.NewPCG(1, 1)))
			if err := errors.Join(r.calm(), tt.fire(tr)); err != nil {
				t.Fatalf("%v\n%s", err, tr.story())
			}
			tr.settle(20 * time.Second)                // unclaimed, it may never be
			if left, err := tr.emptied(); err != nil { // until then a copy may be still to come
				t.Errorf("%v: %+v is left behind", err, left)
			}
			doubled := strings.Join(tr.check().doubled, "\n")
			if !strings.Contains(doubled, tt.want) {
				t.Errorf("found %q, want %q\n%s", doubled, tt.want, tr.story())
			}
		})
	}
}
