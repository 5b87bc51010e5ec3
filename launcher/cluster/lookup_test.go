package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/slurm"
)

// timedOut is a fake sbatch that fails like the real one when the controller hangs.
const timedOut = "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1"

// queuedAs is a fake squeue that prints a line about one job.
func queuedAs(id, name string) string {
	return "printf '" + strings.Join([]string{id, name, "main", "PENDING", "None", "", "1700000000", "1700000100", "N/A", "(null)"}, `\037`) + `\n'`
}

// TestLostSubmission covers a lost answer of sbatch: the job is in the queue at once or later, or it has
// started, or it is never seen and then cannot do anything.
func TestLostSubmission(t *testing.T) {
	const name = "scalebench-doctor-0"
	for title, c := range map[string]struct {
		sbatch, squeue string
		claimed        bool
		id, wrong      string
		looks          int
	}{
		"answered":                 {"echo 5", "exit 1", false, "5", "", 0},
		"refused":                  {"echo 'sbatch: error: Invalid qos specification' >&2; exit 1", "exit 1", false, "", "Invalid qos", 0},
		"in the queue":             {timedOut, queuedAs("7", name), false, "7", "", 1},
		"the controller awakes":    {timedOut, `if [ "$looks" -lt 3 ]; then echo 'slurm_load_jobs error: Socket timed out on send/recv operation' >&2; exit 1; fi; ` + queuedAs("7", name), false, "7", "", 3},
		"nowhere":                  {timedOut, "true", false, "", "Socket timed out on send/recv operation; no job " + name + " was found in the queue afterwards, and if it still appears, it ends at once", lookups},
		"begun, by its own record": {timedOut, "true", true, "9", "", lookups},
	} {
		t.Run(title, func(t *testing.T) {
			bin, dir := t.TempDir(), rundir.Probe(t.TempDir())
			looks := filepath.Join(bin, "looks")
			for command, text := range map[string]string{"sbatch": c.sbatch, "squeue": "echo >>" + looks + "; looks=$(wc -l <" + looks + "); " + c.squeue} {
				if err := os.WriteFile(filepath.Join(bin, command), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if c.claimed {
				if err := errors.Join(os.Mkdir(dir.Begun(), 0o700), os.WriteFile(filepath.Join(dir.Begun(), "job_id"), []byte("9\n"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			check := Cluster{Examination: Examination{Note: t.Logf}, Client: &slurm.Client{Env: []string{"PATH=" + bin + ":" + os.Getenv("PATH")}}}
			j := &job{dir: dir, script: slurm.Script{JobName: name}}
			synctest.Test(t, func(t *testing.T) {
				id, err := check.submitted(context.Background(), j)
				if id != c.id || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("job %q, %v; want %q, %q", id, err, c.id, c.wrong)
				}
			})
			text, err := os.ReadFile(looks)
			if len(text) != c.looks {
				t.Errorf("looked %d times, want %d (%v)", len(text), c.looks, err)
			}
			if _, err := os.Stat(dir.Begun()); (err == nil) != (c.claimed || title == "nowhere") {
				t.Errorf("the claim: %v", err)
			}
		})
	}
}
