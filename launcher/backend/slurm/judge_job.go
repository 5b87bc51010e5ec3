package slurm

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm"
)

// jobEvidence is everything known about an attempt under Slurm at one moment.
type jobEvidence struct {
	launcher.Evidence
	Created   time.Time
	Submitted bool       // sbatch's answer is recorded
	Limit     string     // Slurm's words if it refused the job because of a limit on jobs and has not accepted it since
	Asked     bool       // the scheduler could be asked
	Requeue   bool       // Slurm may requeue the job
	Shared    bool       // the job serves other attempts too, one after the other
	Withdrawn bool       // no copy of the script runs it any more, nor has one
	Job       *slurm.Job // Slurm's report; nil if it does not know the job
	Dropped   bool       // Slurm does not list it, but lists waiting tasks of the same array
}

// How much the scheduler's view may lag.
const (
	// jobGrace is the time after submission during which a job may be unknown to the scheduler before it counts
	// as lost.
	jobGrace = 5 * time.Minute
	// requeueGrace is the time after a node failure or a preemption during which a requeueable job may still
	// show as ended.
	requeueGrace = 2 * time.Minute
)

// judgeJob returns the status of an attempt under Slurm. It is a pure function of the evidence, and the only
// place that decides. detail is a text for users; it may be "".
func judgeJob(e jobEvidence) (status metrics.Status, detail string) {
	switch {
	case e.Withdrawn && (e.Job == nil && e.Asked || e.Job != nil && (e.Shared || e.Job.State.Terminal())):
		// If the attempt has a separate job that is still queued, wait until it leaves the queue.
		return metrics.Cancelled, ""
	case e.Job != nil && e.Shared:
		return judgeTurn(e)
	case e.Job != nil:
		return judgeKnown(e)
	case !e.Asked && e.Traces.Exit != nil && e.Traces.Exit.ExitCode != 0:
		return metrics.Running, fmt.Sprintf("ended with exit code %d; the scheduler does not answer", e.Traces.Exit.ExitCode)
	case e.Limit != "" && !e.Submitted && !e.Traces.Begun:
		limit, _, _ := strings.Cut(e.Limit, "; ") // the other lines are the same for all limits
		return metrics.Planned, "Slurm accepts no more jobs for now (" + strings.TrimPrefix(limit, "sbatch: error: ") + "); `submit` tries again"
	case e.Traces.Exit != nil: // the scheduler has forgotten it, the script's own record has not
		return e.Exited()
	case !e.Asked && e.Traces.Begun:
		return metrics.Running, "the scheduler does not answer; judged by its events"
	case !e.Asked:
		return metrics.Submitted, "the scheduler does not answer"
	case e.Dropped && !e.Traces.Begun:
		// Slurm keeps no record of a task that is cancelled before the array's tasks
		// part, neither in the queue nor in the accounts.
		return metrics.Cancelled, "it left the queue while other tasks of its array wait; nothing was run"
	case e.Now.Sub(e.Created) < jobGrace:
		return metrics.Submitted, ""
	case !e.Submitted:
		return metrics.Submitted, "sbatch's answer was never recorded and the scheduler knows no such job; submit again"
	}
	return metrics.Lost, "the scheduler no longer knows the job and it left no record of its end"
}

// judgeTurn judges one of the attempts that share a job. An attempt has ended if its exit record says so,
// unless it was cut short in a job that continues or is requeued and will repeat it. The state of the job
// applies to the attempt that is running.
func judgeTurn(e jobEvidence) (metrics.Status, string) {
	exit := e.Traces.Exit
	switch {
	case exit != nil && (exit.Signal == "" || exit.Signal == "USR1" && e.Job.State.Terminal()):
		return e.Exited()
	case e.Traces.Begun:
		return judgeKnown(e)
	case e.Job.State.Terminal() && e.Now.Sub(e.Job.End) < launcher.FileGrace:
		return metrics.Running, "its job has ended; its last files may not have appeared yet"
	case e.Job.State.Terminal():
		return metrics.Cancelled, fmt.Sprintf("its job ended (%s) before its turn came; nothing was run", e.Job.Word)
	}
	status, detail := judgeKnown(e)
	if status == metrics.Running {
		return metrics.Pending, "its turn in the job has not come"
	}
	return status, detail
}

// judgeKnown judges an attempt by the job that Slurm reports.
func judgeKnown(e jobEvidence) (metrics.Status, string) {
	j := e.Job
	if exit := e.Traces.Exit; j.State.Terminal() && exit != nil && exit.ExitCode == 0 {
		// The script ended successfully, and so did the attempt. If Slurm reports another end, that is about a
		// copy that found the attempt claimed or never started: a controller that was killed forgets jobs that
		// it has started and starts them again, or cancels them because a node already runs them.
		// The exception is an attempt with missing ranks for which Slurm names an external cause: srun may exit
		// with 0 if it is ended with its job.
		status, detail := e.Completed(j.End)
		if status != metrics.Incomplete || j.State == slurm.Completed || j.State == slurm.Failed {
			return status, detail
		}
	}
	switch j.State {
	case slurm.Pending, slurm.Configuring:
		if e.Traces.Begun { // started by an earlier incarnation
			return metrics.Requeued, waits(j)
		}
		return metrics.Pending, waits(j)
	case slurm.Requeued, slurm.RequeueFed, slurm.RequeueHold, slurm.SpecialExit:
		return metrics.Requeued, waits(j)
	case slurm.Running, slurm.Completing, slurm.Resizing, slurm.Signaling, slurm.StageOut:
		return metrics.Running, ""
	case slurm.Suspended, slurm.Stopped:
		return metrics.Running, "suspended by the scheduler"
	case slurm.Completed:
		return e.Completed(j.End)
	case slurm.Failed, slurm.BootFail:
		if exit := e.Traces.Exit; exit != nil && exit.Signal == "USR1" {
			return metrics.TimedOut, launcher.WithReason(e.Traces.Cause, launcher.EndedInTime)
		}
		return e.Failed(e.exitCode())
	case slurm.Timeout, slurm.Deadline:
		return metrics.TimedOut, launcher.JoinCauses("the wall-time limit", cmp.Or(e.Traces.Slurm, e.Traces.Cause))
	case slurm.OutOfMemory:
		return metrics.OutOfMemory, launcher.JoinCauses(cmp.Or(e.Traces.Slurm, "the memory limit"), e.Traces.Cause)
	case slurm.NodeFail, slurm.Preempted:
		if e.Requeue && e.Now.Sub(j.End) < requeueGrace {
			return metrics.Requeued, launcher.WithReason("the scheduler may start it again", j.Reason)
		}
		if j.State == slurm.Preempted {
			return metrics.Preempted, j.Reason
		}
		return metrics.NodeFailed, launcher.WithReason("", j.Reason)
	case slurm.Cancelled, slurm.Revoked:
		return metrics.Cancelled, j.Word
	}
	return metrics.Unknown, fmt.Sprintf("unknown Slurm state %q, taken as not finished", j.Word)
}

// waits returns why a job waits: Slurm's reason, and for a held job, which never starts by itself, how to
// release it. Slurm holds a job, for example, that it requeued because a node failed to launch it.
func waits(j *slurm.Job) string {
	switch reason := strings.ToLower(strings.ReplaceAll(j.Reason, "_", " ")); {
	case reason == "jobheldadmin":
		return j.Reason + "; an administrator has to release it"
	case strings.HasPrefix(reason, "jobheld"), strings.HasSuffix(reason, "requeued held"):
		return fmt.Sprintf("%s; `scontrol release %s` lets it start", j.Reason, j.ID)
	}
	return j.Reason
}

// exitCode describes how the batch script ended, according to the scheduler or the exit record.
func (e jobEvidence) exitCode() string {
	switch {
	case e.Job.ExitCode != nil:
		if code := e.Job.ExitCode; code.Signal == 0 {
			return fmt.Sprintf("exit code %d", code.Status)
		}
		return "exit code " + e.Job.ExitCode.String()
	case e.Traces.Exit != nil:
		return fmt.Sprintf("exit code %d", e.Traces.Exit.ExitCode)
	}
	return e.Job.Reason
}
