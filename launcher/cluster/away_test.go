package cluster

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/slurm"
)

// With drained nodes, sbatch --test-only of Slurm 22.05 refuses a job that sbatch accepts and lets wait. Any other
// refusal stays a failure.
func TestRefusedWhileNodesAreAway(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		away bool
		want Verdict
	}{
		"away":          {"allocation failure: Requested node configuration is not available", true, Warn},
		"all there":     {"allocation failure: Requested node configuration is not available", false, Fail},
		"another cause": {"allocation failure: Requested time limit is invalid (missing or exceeds some limit)", true, Fail},
	} {
		bin, folder := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte("#!/bin/sh\necho '"+c.said+"' >&2; exit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		check := Cluster{
			Client:      &slurm.Client{Env: []string{"PATH=" + bin + ":/usr/bin:/bin"}},
			Script:      func(study.Planned) (slurm.Script, error) { return slurm.Script{}, nil },
			Render:      func(io.Writer, slurm.Script) error { return nil },
			Examination: Examination{Note: t.Logf, Plan: &study.Plan{Points: []study.Planned{{Point: study.Point{ID: "p", Workers: 4}}}}},
		}
		list, err := check.checkScripts(context.Background(), folder, c.away)
		if err != nil || len(list) != 1 || list[0].Verdict != c.want {
			t.Errorf("%s: %+v, %v; want %s", name, list, err, c.want)
		}
	}
}
