package slurm

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/backend/local"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// The clock was changed by a year between the record and the survey, or differs between hosts: ages are
// computed with the file server's clock.
func TestSurveyWhenClocksJump(t *testing.T) {
	plan := launchtest.SmallPlan(t, "[1]")
	bin := t.TempDir() // Slurm commands that know no job
	for _, name := range []string{"squeue", "sacct"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	folder, number := rundir.OpenStudy(t.TempDir(), "s"), 0
	for _, jump := range []time.Duration{0, time.Hour, -time.Hour, 365 * 24 * time.Hour, -365 * 24 * time.Hour} {
		then := metrics.Unix(time.Now().Add(jump))
		for _, c := range []struct {
			name, backend string
			age           time.Duration // by the file server
			want          metrics.Status
		}{
			{"handed over this moment, and unknown", backendName, 0, metrics.Submitted},
			{"handed over long ago, and unknown", backendName, jobGrace + time.Minute, metrics.Lost},
			{"ended this moment, without its last events", local.Name, 0, metrics.Running},
			{"ended long ago, without its last events", local.Name, launcher.FileGrace + time.Minute, metrics.Incomplete},
		} {
			number++
			a, err := launcher.Creator{Folder: folder}.Create(launcher.Todo{Planned: plan.Points[0], Number: number}, launcher.Record{Backend: c.backend, JobName: "s/p-r1-a1"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			dated := a.Run.Attempt()
			if c.backend == backendName {
				a.Submission, a.Record.CreatedUnix = &launcher.Submission{JobID: "7"}, then
			} else {
				launchtest.Claim(t, a.Run, 0)
				dated = a.Run.Exit(0)
				if err := rundir.WriteJSON(dated, launcher.Exit{StartUnix: then - 10, EndUnix: then}, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			old := time.Now().Add(-c.age)
			if err := os.Chtimes(dated, old, old); err != nil {
				t.Fatal(err)
			}
			states, err := launcher.Survey(t.Context(), []*launcher.Attempt{a})
			if err != nil {
				t.Fatal(err)
			}
			if state := states[0]; state.Err != nil || state.Status != c.want {
				t.Errorf("clock set by %v, %s: %s (%s), want %s; %v", jump, c.name, state.Status, state.Detail, c.want, state.Err)
			}
		}
	}
}
