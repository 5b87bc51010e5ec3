package launcher

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// Evidence has the facts about an attempt at one moment that all backends know. A backend embeds it
// in a type with its own facts, and judges its attempts by one pure function of that type.
type Evidence struct {
	Ranks  int           // number of ranks in the plan
	Limit  time.Duration // the run's time limit
	Traces Traces
	Now    time.Time

	Cancelled bool // the user cancelled it
}

// Evidence returns the attempt's evidence. Its present is by the clock that recorded the
// end of the run.
func (a *Attempt) Evidence(t Traces) Evidence {
	e := Evidence{Ranks: a.Point.Ranks(), Limit: time.Duration(a.Point.Resources.Time), Traces: t, Now: time.Now(), Cancelled: a.Cancelled != nil}
	if t.Exit != nil {
		e.Now = a.Since(a.Run.Exit(t.Restart), t.Exit.EndUnix)
	}
	return e
}

// FileGrace is the maximum delay with which a run's last events appear on this host after its end:
// shared file systems cache folders for up to a minute.
const FileGrace = 90 * time.Second

// Exited judges an attempt by the record of its end that the batch script, or the command
// that drove it, left.
func (e Evidence) Exited() (metrics.Status, string) {
	exit := e.Traces.Exit
	switch {
	case exit.ExitCode != 0 && exit.Signal == "USR1":
		return metrics.TimedOut, WithReason(e.Traces.Cause, EndedInTime)
	case exit.ExitCode != 0 && e.Limit > 0 && exit.EndUnix-exit.StartUnix >= e.Limit.Seconds():
		return metrics.TimedOut, JoinCauses("the wall-time limit", cmp.Or(e.Traces.Slurm, e.Traces.Cause))
	}
	if exit.ExitCode != 0 && exit.Killed > 0 {
		return metrics.OutOfMemory, JoinCauses("the memory limit, resources.memory", e.Traces.Cause)
	}
	if code := exit.ExitCode; code != 0 {
		return e.Failed(fmt.Sprintf("exit code %d", code))
	}
	return e.Completed(metrics.Time(e.Traces.Exit.EndUnix))
}

// Failed judges an attempt whose program or script failed; ended describes how, in the scheduler's terms. If
// the kernel does not enforce a memory limit, only Slurm's message shows that it was exceeded.
func (e Evidence) Failed(ended string) (metrics.Status, string) {
	t := e.Traces
	if worker.IsOutOfMemory(t.Slurm) {
		return metrics.OutOfMemory, JoinCauses(t.Slurm, t.Cause)
	}
	if worker.IsOutOfDeviceMemory(t.Cause) {
		return metrics.OutOfMemory, JoinCauses(t.Cause, ended)
	}
	why, said := cmp.Or(t.Cause, t.Script), t.Slurm
	if why != "" && worker.IsConsequence(said) {
		said = "" // Slurm ended the step since the program had failed
	}
	if code, _, _ := strings.Cut(why, ";"); code == ended {
		ended = "" // the supervisor has reported it
	}
	return metrics.Failed, JoinCauses(why, said, ended)
}

// EndedInTime is the detail of a run that ended because of the early warning.
const EndedInTime = "ended in order shortly before the wall-time limit"

// Completed judges an attempt that the scheduler calls completed. It only counts as done if every rank says so
// too.
func (e Evidence) Completed(end time.Time) (metrics.Status, string) {
	switch {
	case e.Traces.Done >= e.Ranks:
		return metrics.Done, ""
	case e.Traces.Stopped >= e.Ranks:
		return metrics.Incomplete, WithReason(e.Traces.Cause, "ended before its full length")
	case !e.Cancelled && e.Now.Sub(end) < FileGrace:
		// An srun that is cancelled while it starts its tasks also exits with 0, so a cancelled run
		// does not wait for more events.
		return metrics.Running, "ended; its last events have not appeared yet"
	}
	return metrics.Incomplete, WithReason(e.Traces.Cause, fmt.Sprintf("%d of %s wrote no stop event", e.Ranks-e.Traces.Stopped, number.Count(e.Ranks, "rank")))
}

// WithReason joins a cause that the run reported with the scheduler's message.
func WithReason(why, said string) string {
	if why == "" || said == "" {
		return why + said
	}
	return why + " (" + said + ")"
}

// JoinCauses joins the causes of a run's end, "KeyError: 'labels' (train.py:31); exit code 1"; empty parts are
// left out.
func JoinCauses(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}
