package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm"
)

// The cancellation is recorded before scancel runs, even if the scheduler does not answer. Attempts
// that have not started are withdrawn; others are not.
func TestCancelIsRecordedFirst(t *testing.T) {
	for name, squeue := range map[string]string{
		"asked":       "exit 0",
		"unreachable": "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
	} {
		b := packer(t, study.PackJob, "echo 41")
		bin, _, _ := strings.Cut(strings.TrimPrefix(b.Client.Env[0], "PATH="), ":")
		begun, err := launcher.Begin(t.Context(), b, []launcher.Todo{planned("a", 1, 1, 1)})
		if err != nil {
			t.Fatal(err)
		}
		a := begun[0]
		for command, text := range map[string]string{"squeue": squeue, "sacct": "exit 0"} {
			text = "#!/bin/bash\ntest -e " + a.Run.Cancel() + " || { echo asked too early; exit 0; }\n" + text + "\n"
			if err := os.WriteFile(filepath.Join(bin, command), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		_, err = launcher.Cancel(t.Context(), []launcher.State{{Attempt: a, Status: metrics.Pending}})
		if (err != nil) != (name == "unreachable") {
			t.Errorf("%s: %v", name, err)
		}
		read, err := launcher.Attempts(b.Folder)
		if err != nil || read[0].Cancelled == nil || !a.Run.Withdrawn() {
			t.Errorf("%s: not remembered (%v)", name, err)
		}
		if err := a.Run.TakeClaim(0, "41"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: a copy of the script can still claim it: %v", name, err)
		}
		if traces, err := launcher.ReadTraces(a.Run); err != nil || traces.Begun {
			t.Errorf("%s: withdrawn, it reads as begun: %+v %v", name, traces, err)
		}
	}
}

// If an array is cancelled while it waits, squeue shows only the array's ID. Each run keeps the
// ID that submit printed, and gets the exit code.
func TestCancelledArrayKeepsItsIDs(t *testing.T) {
	b := packer(t, study.PackArray, "echo 32")
	bin, _, _ := strings.Cut(strings.TrimPrefix(b.Client.Env[0], "PATH="), ":")
	begun, err := launcher.Begin(t.Context(), b, []launcher.Todo{planned("a", 1, 1, 1), planned("a", 1, 2, 1)})
	if err != nil {
		t.Fatal(err)
	}
	row := strings.Join([]string{"32", begun[0].Record.JobName, "a", "CANCELLED", "BeginTime", "", "1795228241", "N/A", "N/A", ""}, "\x1f")
	for command, text := range map[string]string{
		"squeue": "case $* in *--Format=*) echo '32\x1f15\x1f';; *) echo '" + row + "';; esac",
		"sacct":  "true", "scancel": "echo unexpected >&2; exit 1",
	} {
		if err := os.WriteFile(filepath.Join(bin, command), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	var states []launcher.State
	for _, a := range begun {
		states = append(states, launcher.State{Attempt: a, Status: metrics.Pending})
	}
	endings, err := launcher.Cancel(t.Context(), states)
	if err != nil || len(endings) != 2 {
		t.Fatalf("%d endings: %v", len(endings), err)
	}
	for i, e := range endings {
		if want := fmt.Sprintf("job 32_%d has already ended", i); e.Asked || e.What != want {
			t.Errorf("asked %v, %q, want %q", e.Asked, e.What, want)
		}
	}
	if states, err = launcher.SurveyWith(t.Context(), b, begun); err != nil {
		t.Fatal(err)
	}
	for i, s := range states {
		if want := fmt.Sprintf("32_%d", i); s.Job == nil || s.Job.ID != want || s.Job.ExitCode != "0:15" {
			t.Errorf("%s: %+v, want job %s, exit code 0:15", s.Record.ID, s.Job, want)
		}
	}
}

func TestJudgeCancelled(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	job := func(state slurm.State) *slurm.Job { return &slurm.Job{State: state, Word: string(state), End: now} }
	for name, c := range map[string]struct {
		e    jobEvidence
		want metrics.Status
	}{
		// A task of an array that is cancelled while it waits leaves no trace.
		"forgotten":                   {jobEvidence{Asked: true, Withdrawn: true}, metrics.Cancelled},
		"Slurm does not answer":       {jobEvidence{Withdrawn: true}, metrics.Submitted},
		"still in the queue":          {jobEvidence{Asked: true, Withdrawn: true, Job: job(slurm.Pending)}, metrics.Pending},
		"out of it":                   {jobEvidence{Asked: true, Withdrawn: true, Job: job(slurm.Cancelled)}, metrics.Cancelled},
		"the job goes on with others": {jobEvidence{Asked: true, Withdrawn: true, Shared: true, Job: job(slurm.Running)}, metrics.Cancelled},
		"its turn had come":           {jobEvidence{Asked: true, Shared: true, Job: job(slurm.Running), Evidence: launcher.Evidence{Traces: launcher.Traces{Begun: true}}}, metrics.Running},
	} {
		c.e.Now, c.e.Created, c.e.Submitted = now, now, true
		if got, detail := judgeJob(c.e); got != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got, detail, c.want)
		}
	}
}
