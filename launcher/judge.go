package launcher

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// evidence is what is known at one moment of any attempt. What a backend knows
// beside it is in a type of its own; the function that judges by it is pure,
// and the only one that says how far the backend's attempts came.
type evidence struct {
	Ranks  int           // that the plan asks for
	Limit  time.Duration // of the run's time
	Traces Traces
	Now    time.Time

	Cancelled bool // a person asked for its end
}

// evidence is the attempt's, with the present by the clock that wrote down the
// end of its run.
func (a *Attempt) evidence(t Traces) evidence {
	e := evidence{Ranks: a.Point.Ranks(), Limit: time.Duration(a.Point.Resources.Time), Traces: t, Now: time.Now(), Cancelled: a.Cancelled != nil}
	if t.Exit != nil {
		e.Now = a.since(a.Run.Exit(t.Restart), t.Exit.EndUnix)
	}
	return e
}

// fileGrace is how long after a run's end its last events may take to appear on
// this host: shared file systems cache folders for up to a minute.
const fileGrace = 90 * time.Second

// exited judges by the record of its end that the batch script left, or the
// command that drove the attempt.
func (e evidence) exited() (metrics.Status, string) {
	exit := e.Traces.Exit
	switch {
	case exit.ExitCode != 0 && exit.Signal == "USR1":
		return metrics.TimedOut, because(e.Traces.Cause, endedInTime)
	case exit.ExitCode != 0 && e.Limit > 0 && exit.EndUnix-exit.StartUnix >= e.Limit.Seconds():
		return metrics.TimedOut, and("the wall-time limit", first(e.Traces.Slurm, e.Traces.Cause))
	}
	if exit.ExitCode != 0 && exit.Killed > 0 {
		return metrics.OutOfMemory, and("the memory limit, resources.memory", e.Traces.Cause)
	}
	if code := exit.ExitCode; code != 0 {
		return e.failed(fmt.Sprintf("exit code %d", code))
	}
	return e.completed(metrics.Time(e.Traces.Exit.EndUnix))
}

// failed judges an attempt whose program or script ended badly. ended is how, in
// the scheduler's terms. A memory limit that is not enforced by the kernel shows
// in Slurm's words alone.
func (e evidence) failed(ended string) (metrics.Status, string) {
	t := e.Traces
	if worker.IsOutOfMemory(t.Slurm) {
		return metrics.OutOfMemory, and(t.Slurm, t.Cause)
	}
	if worker.IsOutOfDeviceMemory(t.Cause) {
		return metrics.OutOfMemory, and(t.Cause, ended)
	}
	why, said := first(t.Cause, t.Script), t.Slurm
	if why != "" && worker.IsConsequence(said) {
		said = "" // Slurm ended the step since the program had failed
	}
	if code, _, _ := strings.Cut(why, ";"); code == ended {
		ended = "" // the supervisor has said so
	}
	return metrics.Failed, and(why, said, ended)
}

// endedInTime says of a run that the early warning ended it.
const endedInTime = "ended in order shortly before the wall-time limit"

// completed judges an attempt that the scheduler calls completed: it counts
// only if every rank says so too.
func (e evidence) completed(end time.Time) (metrics.Status, string) {
	switch {
	case e.Traces.Done >= e.Ranks:
		return metrics.Done, ""
	case e.Traces.Stopped >= e.Ranks:
		return metrics.Incomplete, because(e.Traces.Cause, "ended before its full length")
	case !e.Cancelled && e.Now.Sub(end) < fileGrace:
		// srun that is told to end while it starts its tasks exits with 0 too: of a
		// run that was cancelled nothing more is awaited.
		return metrics.Running, "ended; its last events have not appeared yet"
	}
	return metrics.Incomplete, because(e.Traces.Cause, fmt.Sprintf("%d of %s wrote no stop event", e.Ranks-e.Traces.Stopped, number.Count(e.Ranks, "rank")))
}

// because joins a cause that the run reported with what the scheduler said.
func because(why, said string) string {
	if why == "" || said == "" {
		return why + said
	}
	return why + " (" + said + ")"
}

// and joins what is known of a run's end, "KeyError: 'labels' (train.py:31); exit
// code 1"; any part may be missing.
func and(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}
