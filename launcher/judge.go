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

// Evidence is what is known of an attempt at one moment, on any backend. A backend
// embeds it in a type that adds what the backend itself knows, and judges its attempts
// by one pure function of that type.
type Evidence struct {
	Ranks  int           // that the plan asks for
	Limit  time.Duration // of the run's time
	Traces Traces
	Now    time.Time

	Cancelled bool // a person asked for its end
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

// FileGrace is how long after a run's end its last events may take to appear on
// this host: shared file systems cache folders for up to a minute.
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

// Failed judges an attempt whose program or script ended badly. ended is how, in
// the scheduler's terms. A memory limit that is not enforced by the kernel shows
// in Slurm's words alone.
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
		ended = "" // the supervisor has said so
	}
	return metrics.Failed, JoinCauses(why, said, ended)
}

// EndedInTime says of a run that the early warning ended it.
const EndedInTime = "ended in order shortly before the wall-time limit"

// Completed judges an attempt that the scheduler calls completed: it counts
// only if every rank says so too.
func (e Evidence) Completed(end time.Time) (metrics.Status, string) {
	switch {
	case e.Traces.Done >= e.Ranks:
		return metrics.Done, ""
	case e.Traces.Stopped >= e.Ranks:
		return metrics.Incomplete, WithReason(e.Traces.Cause, "ended before its full length")
	case !e.Cancelled && e.Now.Sub(end) < FileGrace:
		// srun that is told to end while it starts its tasks exits with 0 too: of a
		// run that was cancelled nothing more is awaited.
		return metrics.Running, "ended; its last events have not appeared yet"
	}
	return metrics.Incomplete, WithReason(e.Traces.Cause, fmt.Sprintf("%d of %s wrote no stop event", e.Ranks-e.Traces.Stopped, number.Count(e.Ranks, "rank")))
}

// WithReason joins a cause that the run reported with what the scheduler said.
func WithReason(why, said string) string {
	if why == "" || said == "" {
		return why + said
	}
	return why + " (" + said + ")"
}

// JoinCauses joins what is known of a run's end, "KeyError: 'labels' (train.py:31); exit
// code 1"; any part may be missing.
func JoinCauses(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}
