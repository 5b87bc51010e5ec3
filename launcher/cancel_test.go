package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm"
)

// A scheduler may forget a job that was cancelled, and the policy begins what is
// lost again: not so what a person has ended.
func TestCancelIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 1)
		r.Watch, r.Choice.Policy.Retries = true, study.Retries{Lost: 5}
		r.ends = func(string) metrics.Status { return metrics.Lost }
		go func() {
			time.Sleep(10 * time.Second)
			cancelAll(t, r.Folder)
		}()
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1")
		if d := cmp.Diff([]string{"p-r1-a1 cancelled"}, r.ended); d != "" {
			t.Errorf("ended (-want +got):\n%s", d)
		}
		// Another command for the same study leaves it alone, and says so.
		next := command(r.scheduler, r.Folder, 1)
		o, err = next.drive(t)
		next.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1")
		if o.Cancelled != 1 {
			t.Errorf("%d runs left out as cancelled, want 1", o.Cancelled)
		}
		next.Choice.Cancelled = true // which is what retry asks for
		o, err = next.drive(t)
		next.check(t, o, err, 0, 1, "", 60*time.Second, "0s p-r1-a1, 1m0s p-r1-a2")
	})
}

// What ends well in spite of a cancel is done.
func TestCancelTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 1)
		r.Watch = true
		go func() {
			time.Sleep(10 * time.Second)
			cancelAll(t, r.Folder)
		}()
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1")
		if d := cmp.Diff([]string{"p-r1-a1 done"}, r.ended); d != "" || o.Cancelled != 0 {
			t.Errorf("ended, with %d cancelled (-want +got):\n%s", o.Cancelled, d)
		}
	})
}

func cancelAll(t *testing.T, folder rundir.Study) {
	attempts, err := Attempts(folder)
	if err != nil {
		t.Error(err)
		return
	}
	states, err := Survey(t.Context(), attempts)
	if err == nil {
		_, err = Cancel(t.Context(), states)
	}
	if err != nil {
		t.Error(err)
	}
}

// The record is there before the scheduler is asked, and also when it does not
// answer; what has not begun is withdrawn, what has is not.
func TestCancelIsWrittenDownFirst(t *testing.T) {
	for name, squeue := range map[string]string{
		"asked":       "exit 0",
		"unreachable": "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
	} {
		b := packer(t, study.PackJob, "echo 41")
		bin, _, _ := strings.Cut(strings.TrimPrefix(b.Client.Env[0], "PATH="), ":")
		begun, err := begin(t.Context(), b, []Todo{planned("a", 1, 1, 1)})
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
		_, err = Cancel(t.Context(), []State{{Attempt: a, Status: metrics.Pending}})
		if (err != nil) != (name == "unreachable") {
			t.Errorf("%s: %v", name, err)
		}
		read, err := Attempts(b.Folder)
		if err != nil || read[0].Cancelled == nil || !a.Run.Withdrawn() {
			t.Errorf("%s: not remembered (%v)", name, err)
		}
		if err := a.Run.TakeClaim(0, "41"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: a copy of the script can still claim it: %v", name, err)
		}
		if traces, err := ReadTraces(a.Run); err != nil || traces.Begun {
			t.Errorf("%s: withdrawn, it reads as begun: %+v %v", name, traces, err)
		}
	}
}

// Of an array that was cancelled while it waited squeue shows its number alone. Each
// run has the id that submit printed, and the exit code.
func TestCancelledArrayKeepsItsIDs(t *testing.T) {
	b := packer(t, study.PackArray, "echo 32")
	bin, _, _ := strings.Cut(strings.TrimPrefix(b.Client.Env[0], "PATH="), ":")
	begun, err := begin(t.Context(), b, []Todo{planned("a", 1, 1, 1), planned("a", 1, 2, 1)})
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
	var states []State
	for _, a := range begun {
		states = append(states, State{Attempt: a, Status: metrics.Pending})
	}
	endings, err := Cancel(t.Context(), states)
	if err != nil || len(endings) != 2 {
		t.Fatalf("%d endings: %v", len(endings), err)
	}
	for i, e := range endings {
		if want := fmt.Sprintf("job 32_%d has already ended", i); e.Asked || e.What != want {
			t.Errorf("asked %v, %q, want %q", e.Asked, e.What, want)
		}
	}
	if states, err = survey(t.Context(), beside(b), begun); err != nil {
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
		"its turn had come":           {jobEvidence{Asked: true, Shared: true, Job: job(slurm.Running), evidence: evidence{Traces: Traces{Begun: true}}}, metrics.Running},
	} {
		c.e.Now, c.e.Created, c.e.Submitted = now, now, true
		if got, detail := judgeJob(c.e); got != c.want {
			t.Errorf("%s: %s (%s), want %s", name, got, detail, c.want)
		}
	}
}

// What was forgotten is begun again, also by a command at work, and never under
// the name that it had.
func TestForgottenIsBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runs(t, 2)
		r.Watch = true
		o, err := r.drive(t)
		r.check(t, o, err, 0, 0, "", 60*time.Second, "0s p-r1-a1, 0s p-r2-a1")
		first := r.Folder.Run("p", 1, 1)
		if err := first.Forget(); err != nil {
			t.Fatal(err)
		}
		if gone, err := r.Folder.Trash().Attempts(); err != nil || len(gone) != 1 || gone[0].Number != 1 {
			t.Fatalf("trash: %+v, %v", gone, err)
		}
		next := command(r.scheduler, r.Folder, 2)
		next.Watch = true
		o, err = next.drive(t)
		next.check(t, o, err, 0, 0, "", 120*time.Second, "0s p-r1-a1, 0s p-r2-a1, 1m0s p-r1-a2")
		// Both are there after it was restored; nothing is begun again.
		if err := r.Folder.Trash().Run("p", 1, 1).Restore(); err != nil {
			t.Fatal(err)
		}
		o, err = next.drive(t)
		next.check(t, o, err, 0, 0, "", 120*time.Second, "0s p-r1-a1, 0s p-r2-a1, 1m0s p-r1-a2")
		// Nothing is moved onto what is there.
		if err := os.MkdirAll(filepath.Join(r.Folder.Trash().Path(), first.Name(), "x"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := first.Forget(); !errors.Is(err, fs.ErrExist) {
			t.Errorf("forgotten onto another: %v", err)
		}
		if _, err := os.Stat(first.Attempt()); err != nil {
			t.Error(err)
		}
	})
}
