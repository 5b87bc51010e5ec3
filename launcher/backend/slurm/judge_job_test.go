package slurm

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/internal/launchtest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm"
)

// Each case is one piece of evidence with the verdict of a careful person.
func TestJudgeJob(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	job := func(state slurm.State) *slurm.Job { return &slurm.Job{State: state, Word: string(state), End: now} }
	later := func(e jobEvidence, d time.Duration) jobEvidence { e.Now = now.Add(d); return e }
	exit := func(code int, signal string) *launcher.Exit {
		return &launcher.Exit{ExitCode: code, Signal: signal, EndUnix: metrics.Unix(now)}
	}
	batch := jobEvidence{Evidence: launcher.Evidence{Ranks: 4, Now: now}, Created: now, Submitted: true, Asked: true}
	with := func(e jobEvidence, change func(*jobEvidence)) jobEvidence { change(&e); return e }
	seen := func(state slurm.State) jobEvidence { return with(batch, func(e *jobEvidence) { e.Job = job(state) }) }
	for name, c := range map[string]struct {
		e      jobEvidence
		want   metrics.Status
		detail string
	}{
		"pending": {with(seen(slurm.Pending), func(e *jobEvidence) { e.Job.Reason = "Resources" }), metrics.Pending, "Resources"},
		"held": {with(seen(slurm.Pending), func(e *jobEvidence) { e.Job.ID, e.Job.Reason = "7", "JobHeldUser" }),
			metrics.Pending, "JobHeldUser; `scontrol release 7` lets it start"},
		"held by an administrator": {with(seen(slurm.Pending), func(e *jobEvidence) { e.Job.Reason = "JobHeldAdmin" }),
			metrics.Pending, "JobHeldAdmin; an administrator has to release it"},
		"requeued and held": {with(seen(slurm.RequeueHold), func(e *jobEvidence) { e.Job.ID, e.Job.Reason = "7", "launch failed requeued held" }),
			metrics.Requeued, "launch failed requeued held; `scontrol release 7` lets it start"},
		"pending again":       {with(seen(slurm.Pending), func(e *jobEvidence) { e.Traces.Begun = true }), metrics.Requeued, ""},
		"running":             {seen(slurm.Running), metrics.Running, ""},
		"completing":          {seen(slurm.Completing), metrics.Running, ""},
		"done":                {with(seen(slurm.Completed), func(e *jobEvidence) { e.Traces.Done, e.Traces.Stopped = 4, 4 }), metrics.Done, ""},
		"events on their way": {with(seen(slurm.Completed), func(e *jobEvidence) { e.Traces.Done, e.Traces.Stopped = 3, 3 }), metrics.Running, "not appeared"},
		"events never came": {later(with(seen(slurm.Completed), func(e *jobEvidence) { e.Traces.Done, e.Traces.Stopped = 3, 3 }), 2*launcher.FileGrace),
			metrics.Incomplete, "1 of 4 ranks wrote no stop event"},
		// An srun that is ended while it starts its tasks exits with 0, although nothing ran.
		"cancelled as it began": {with(seen(slurm.Cancelled), func(e *jobEvidence) {
			e.Cancelled, e.Traces = true, launcher.Traces{Begun: true, Exit: exit(0, "TERM")}
		}), metrics.Cancelled, ""},
		"cancelled as it began, in a shared job": {with(seen(slurm.Running), func(e *jobEvidence) {
			e.Shared, e.Cancelled, e.Traces = true, true, launcher.Traces{Begun: true, Exit: exit(0, "")}
		}), metrics.Incomplete, "4 of 4 ranks"},
		"done in spite of a cancel": {with(seen(slurm.Completed), func(e *jobEvidence) {
			e.Cancelled, e.Traces = true, launcher.Traces{Begun: true, Exit: exit(0, ""), Done: 4, Stopped: 4}
		}), metrics.Done, ""},
		"ended with 0 by the node's failure": {later(with(seen(slurm.NodeFail), func(e *jobEvidence) { e.Traces.Exit, e.Traces.Stopped = exit(0, ""), 1 }), 2*launcher.FileGrace),
			metrics.NodeFailed, ""},
		"done, and then the node failed": {with(seen(slurm.NodeFail), func(e *jobEvidence) { e.Traces.Exit, e.Traces.Done, e.Traces.Stopped = exit(0, ""), 4, 4 }),
			metrics.Done, ""},
		"completed, interrupted": {with(seen(slurm.Completed), func(e *jobEvidence) { e.Traces.Done, e.Traces.Stopped, e.Traces.Cause = 3, 4, "signal USR1" }),
			metrics.Incomplete, "signal USR1"},
		"failed": {with(seen(slurm.Failed), func(e *jobEvidence) { e.Traces.Cause, e.Job.ExitCode = "data: gone", &slurm.ExitCode{Status: 3} }),
			metrics.Failed, "data: gone; exit code 3"},
		// Without a cgroup that enforces the memory limit, only Slurm's message reports it.
		"over its memory": {with(seen(slurm.Failed), func(e *jobEvidence) {
			e.Traces.Slurm, e.Job.ExitCode = "node1: StepId=10.0 exceeded memory limit (9 > 3), being killed", &slurm.ExitCode{Status: 137}
		}), metrics.OutOfMemory, "node1: StepId=10.0 exceeded memory limit"},
		"over a GPU's memory": {with(seen(slurm.Failed), func(e *jobEvidence) {
			e.Traces.Cause, e.Job.ExitCode = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (train.py:3)", &slurm.ExitCode{Status: 1}
		}), metrics.OutOfMemory, "CUDA out of memory. Tried to allocate 2.00 GiB (train.py:3); exit code 1"},
		"killed": {with(seen(slurm.Failed), func(e *jobEvidence) {
			e.Traces.Slurm, e.Job.ExitCode = "node2: task 3: Segmentation fault", &slurm.ExitCode{Signal: 11}
		}), metrics.Failed, "node2: task 3: Segmentation fault; exit code 0:11"},
		// It is irrelevant that Slurm ended the other ranks after one failed.
		"a rank failed, the step with it": {with(seen(slurm.Failed), func(e *jobEvidence) {
			e.Traces.Cause, e.Traces.Slurm = "KeyError: 'labels' (fit.py:27)", "STEP 19.0 ON node2 CANCELLED AT 2026-11-23T03:30:24"
			e.Job.ExitCode = &slurm.ExitCode{Status: 143}
		}), metrics.Failed, "KeyError: 'labels' (fit.py:27); exit code 143"},
		"before any rank": {with(seen(slurm.Failed), func(e *jobEvidence) {
			e.Traces.Script, e.Job.ExitCode = "setup failed: module load cuda", &slurm.ExitCode{Status: 1}
		}), metrics.Failed, "setup failed: module load cuda; exit code 1"},
		// All ranks were done, but the script failed afterwards: not a good run.
		"failed after all": {with(seen(slurm.Failed), func(e *jobEvidence) { e.Traces.Done, e.Traces.Stopped = 4, 4 }), metrics.Failed, ""},
		// A controller that forgot the job it had started starts or cancels it.
		"a second copy failed": {with(seen(slurm.Failed), func(e *jobEvidence) {
			e.Traces = launcher.Traces{Begun: true, Exit: exit(0, ""), Done: 4, Stopped: 4}
		}), metrics.Done, ""},
		"a second copy was cancelled": {with(seen(slurm.Cancelled), func(e *jobEvidence) {
			e.Traces = launcher.Traces{Begun: true, Exit: exit(0, ""), Done: 4, Stopped: 4}
		}), metrics.Done, ""},
		"a second copy waits": {with(seen(slurm.Pending), func(e *jobEvidence) {
			e.Traces = launcher.Traces{Begun: true, Exit: exit(0, ""), Done: 4, Stopped: 4}
		}), metrics.Requeued, ""},
		"timeout":       {seen(slurm.Timeout), metrics.TimedOut, "wall-time"},
		"ended in time": {with(seen(slurm.Failed), func(e *jobEvidence) { e.Traces.Exit = exit(1, "USR1") }), metrics.TimedOut, "shortly before the wall-time limit"},
		"out of memory": {seen(slurm.OutOfMemory), metrics.OutOfMemory, "memory"},
		"node failed":   {seen(slurm.NodeFail), metrics.NodeFailed, ""},
		"preempted":     {seen(slurm.Preempted), metrics.Preempted, ""},
		"cancelled":     {with(seen(slurm.Cancelled), func(e *jobEvidence) { e.Job.Word = "CANCELLED by 1000" }), metrics.Cancelled, "by 1000"},
		"unheard of":    {seen("LAUNCHED_TO_MARS"), metrics.Unknown, "LAUNCHED_TO_MARS"},

		"just submitted":         {with(batch, func(e *jobEvidence) { e.Now = now.Add(time.Second) }), metrics.Submitted, ""},
		"unknown to Slurm":       {later(batch, 2*jobGrace), metrics.Lost, "no longer knows"},
		"dropped from its array": {with(batch, func(e *jobEvidence) { e.Dropped = true }), metrics.Cancelled, "left the queue while other tasks of its array wait"},
		"dropped, but it began":  {later(with(batch, func(e *jobEvidence) { e.Dropped, e.Traces.Begun = true, true }), 2*jobGrace), metrics.Lost, "no longer knows"},
		"answer lost":            {later(with(batch, func(e *jobEvidence) { e.Submitted = false }), 2*jobGrace), metrics.Submitted, "never recorded"},
		// A limit on jobs refused it; a job that Slurm reports was accepted since.
		"refused by a limit": {later(with(batch, func(e *jobEvidence) {
			e.Submitted, e.Limit = false, "sbatch: error: QOSMaxSubmitJobPerUserLimit; sbatch: error: Batch job submission failed: Job violates accounting/QOS policy"
		}), 2*jobGrace), metrics.Planned, "(QOSMaxSubmitJobPerUserLimit); `submit` tries again"},
		"refused, accepted, answer lost": {with(seen(slurm.Running), func(e *jobEvidence) { e.Submitted, e.Limit = false, "QOSMaxSubmitJobPerUserLimit" }), metrics.Running, ""},
		"refused, Slurm does not answer": {with(batch, func(e *jobEvidence) { e.Submitted, e.Asked, e.Limit = false, false, "QOSMaxSubmitJobPerUserLimit" }), metrics.Planned, "QOSMaxSubmitJobPerUserLimit"},
		"refused, and cancelled":         {with(batch, func(e *jobEvidence) { e.Submitted, e.Withdrawn, e.Limit = false, true, "QOSMaxSubmitJobPerUserLimit" }), metrics.Cancelled, ""},
		"Slurm does not answer":          {later(with(batch, func(e *jobEvidence) { e.Asked = false }), 2*jobGrace), metrics.Submitted, "the scheduler does not answer"},
		"forgotten, own record":          {later(with(batch, func(e *jobEvidence) { e.Traces = launcher.Traces{Exit: exit(0, ""), Done: 4, Stopped: 4} }), time.Hour), metrics.Done, ""},
		"forgotten, own failure":         {with(batch, func(e *jobEvidence) { e.Traces = launcher.Traces{Exit: exit(2, "")} }), metrics.Failed, "exit code 2"},
		"forgotten, ended in time":       {with(batch, func(e *jobEvidence) { e.Traces = launcher.Traces{Exit: exit(1, "USR1")} }), metrics.TimedOut, "shortly before"},
		"no answer, but it is done": {with(batch, func(e *jobEvidence) {
			e.Asked, e.Traces = false, launcher.Traces{Begun: true, Exit: exit(0, ""), Done: 4, Stopped: 4}
		}),
			metrics.Done, ""},
		"no answer, and it failed": {with(batch, func(e *jobEvidence) { e.Asked, e.Traces = false, launcher.Traces{Begun: true, Exit: exit(143, "TERM")} }),
			metrics.Running, "the scheduler does not answer"},
		"no answer, but it began": {with(batch, func(e *jobEvidence) { e.Asked, e.Traces.Begun = false, true }), metrics.Running, "the scheduler does not answer"},
	} {
		got, detail := judgeJob(c.e)
		if got != c.want || !strings.Contains(detail, c.detail) {
			t.Errorf("%s: %s %q, want %s with %q", name, got, detail, c.want, c.detail)
		}
	}
}

// Judge and Slurm agree on which states end a job.
func TestJudgeAgreesWithSlurmOnWhatIsOver(t *testing.T) {
	for _, state := range []slurm.State{slurm.BootFail, slurm.Cancelled, slurm.Completed, slurm.Completing, slurm.Configuring, slurm.Deadline,
		slurm.Failed, slurm.NodeFail, slurm.OutOfMemory, slurm.Pending, slurm.Preempted, slurm.Requeued, slurm.RequeueFed, slurm.RequeueHold,
		slurm.Resizing, slurm.Revoked, slurm.Running, slurm.Signaling, slurm.SpecialExit, slurm.StageOut, slurm.Stopped, slurm.Suspended, slurm.Timeout} {
		status, _ := judgeJob(jobEvidence{Evidence: launcher.Evidence{Ranks: 1, Now: time.Now(), Traces: launcher.Traces{Done: 1, Stopped: 1}},
			Asked: true, Submitted: true, Job: &slurm.Job{State: state}})
		if status.Terminal() != state.Terminal() || status == metrics.Unknown {
			t.Errorf("%s is %s: over for Slurm %v, for us %v", state, status, state.Terminal(), status.Terminal())
		}
	}
}

// If several jobs have an attempt's name, the one that claimed the run counts, and its last
// incarnation.
func TestPick(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	jobs := []slurm.Job{
		{ID: "7", Name: "x", State: slurm.NodeFail, Submit: at(1)},
		{ID: "7", Name: "x", State: slurm.Running, Submit: at(5)},
		{ID: "8", Name: "x", State: slurm.Pending, Submit: at(9)},
		{ID: "9", Name: "y", State: slurm.Running, Submit: at(1)},
		{ID: "9", Name: "z", State: slurm.Failed, Submit: at(1)}, // the ID was reused
	}
	claimed := &launcher.Attempt{Run: "", Record: launcher.Record{JobName: "x"}}
	dir := t.TempDir()
	claimed.Run = runIn(t, dir, "7")
	got := pick([]*launcher.Attempt{claimed, {Run: "z", Record: launcher.Record{JobName: "z"}}, {Run: "w", Record: launcher.Record{JobName: "w"}}}, jobs)
	if j := got[claimed.Run]; j == nil || j.ID != "7" || j.State != slurm.Running {
		t.Errorf("x is %+v", j)
	}
	if j := got["z"]; j == nil || j.State != slurm.Failed {
		t.Errorf("z is %+v", j)
	}
	if len(got) != 2 {
		t.Errorf("%d jobs picked", len(got))
	}
}

// runIn creates a run folder that a job has claimed.
func runIn(t *testing.T, dir, job string) rundir.Folder {
	t.Helper()
	run := rundir.Folder(dir)
	launchtest.Claim(t, run, 0)
	if err := os.WriteFile(run.Claim(0)+"/job_id", []byte(job+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return run
}

// A job that Slurm may start again has not ended with its node.
func TestJudgeRequeue(t *testing.T) {
	now := time.Now()
	e := jobEvidence{Evidence: launcher.Evidence{Ranks: 1, Now: now}, Submitted: true, Asked: true, Requeue: true}
	for _, state := range []slurm.State{slurm.NodeFail, slurm.Preempted} {
		e.Job = &slurm.Job{State: state, End: now.Add(-time.Second)}
		if status, _ := judgeJob(e); status != metrics.Requeued {
			t.Errorf("%s a second ago is %s", state, status)
		}
		e.Job.End = now.Add(-time.Hour)
		if status, _ := judgeJob(e); !status.Terminal() || status == metrics.Requeued {
			t.Errorf("%s an hour ago is %s", state, status)
		}
	}
}
