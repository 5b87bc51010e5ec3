package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/backend/local"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

type runOptions struct {
	asked
	oversubscribe bool
	local         bool
	again         bool
	unchecked     bool
	until         untilOptions
}

func runCommand(s *session) *cli.Command {
	var o runOptions
	var command commandOptions
	return &cli.Command{
		Name:      "run",
		Usage:     "run a study on this machine, or on the nodes of a Slurm allocation",
		ArgsUsage: studyOrCommand,
		Description: "Runs all points that have no good result yet, one run at a time, as processes on\n" +
			"this machine, and collects the results. An interrupt ends the current run cleanly;\n" +
			"repeat the command to continue.\n" +
			"\n" +
			"Within a Slurm allocation (salloc, or a script that sbatch runs) each run is a step\n" +
			"on its nodes, through srun. Points that are larger than the allocation are refused.\n" +
			"\n" +
			overrideHelp + "\n" +
			"\n" +
			typedHelp,
		Flags: append([]cli.Flag{
			siteFlag(&o.site), againFlag(&o.again), uncheckedFlag(&o.unchecked),
			&cli.BoolFlag{Name: "local", DisableDefaultText: true, Usage: "run processes on this machine, even within an allocation", Destination: &o.local},
			&cli.BoolFlag{Name: "oversubscribe", DisableDefaultText: true, Usage: "run points even if they have more workers than CPUs", Destination: &o.oversubscribe},
		}, append(o.until.flags(), command.flags()...)...),
		Action: func(c *cli.Context) error {
			var err error
			if o.asked, err = o.until.asked(c, &command, o.site); err != nil {
				return err
			}
			return runRun(c.Context, s, o)
		},
	}
}

func runRun(ctx context.Context, s *session, o runOptions) error {
	var nodes *launcher.Allocation
	if !o.local {
		var err error
		if nodes, err = launcher.Enclosing(os.Getenv); err != nil {
			return &usageError{err: err}
		}
	}
	w, err := s.load(ctx, o.asked, nodes)
	if err != nil {
		return err
	}
	until, err := o.until.of(w.Study)
	if err != nil {
		return err
	}
	s.tellStudy(o.asked, w)
	backend, err := w.Local(ctx, o.study, nodes, o.oversubscribe)
	if err != nil {
		return err
	}
	choice, err := w.Choice(ctx, o.again)
	if err != nil {
		return err
	}
	if !o.unchecked {
		if err := w.CheckFiles(choice); err != nil {
			return err
		}
	}
	choice.Cancelled = true // also cancelled jobs: this command shows its runs
	if until {
		return s.runUntilDecided(ctx, w, backend, choice, o.until)
	}
	if err := w.Begin(ctx); err != nil {
		return err
	}
	watch, err := s.drive(ctx, w, backend, choice)
	if err == nil {
		err = w.NoteOutdated(ctx)
	}
	if err == nil && watch.total == 0 {
		s.tellNothingToRun(w)
	}
	// What was measured until an interrupt is kept as well.
	if collected := s.collect(context.WithoutCancel(ctx), w.Folder); err == nil {
		err = collected
	}
	if o.typed && err == nil {
		if noted := s.timing(ctx, w); len(watch.failed) == 0 {
			err = noted
		}
	}
	return errors.Join(err, watch.verdictBeside(err))
}

// tellNothingToRun says why the command made no run.
func (s *session) tellNothingToRun(w *workspace.Work) {
	elsewhere := ""
	attempts, _ := launcher.Attempts(w.Folder) // collecting them says what is wrong
	if slices.ContainsFunc(attempts, func(a *launcher.Attempt) bool { return a.Verdict == nil && a.Unreadable == nil }) {
		elsewhere = " or are under way elsewhere"
	}
	if slices.ContainsFunc(attempts, func(a *launcher.Attempt) bool { return a.Unreadable != nil }) {
		elsewhere += " or cannot be read"
	}
	result := "a good result"
	if slices.ContainsFunc(attempts, func(a *launcher.Attempt) bool {
		return a.Verdict != nil && a.Verdict.Status == metrics.OutOfMemory && a.Point.ExhaustionTells()
	}) {
		result += ", or its point ran out of memory, which is one"
	}
	s.note("every run of %s has %s%s; nothing to run", w.Study.Name, result, strings.Replace(elsewhere, "are", "is", 1))
}

// drive makes the runs of a choice, one at a time.
func (s *session) drive(ctx context.Context, w *workspace.Work, backend *local.Backend, choice launcher.Choice) (*watch, error) {
	watch := newWatch(s, "runs", "The same command repeats what failed.")
	left, err := launcher.Drive(ctx, launcher.Driving{Backend: backend, Folder: w.Folder, Choice: choice,
		Interval: 500 * time.Millisecond, Patience: sharedfs.LeasePatience, Watch: true,
		Found: watch.found, Observe: watch.observe, Warn: watch.warn})
	watch.bar.stop()
	if len(left.Underway) > 0 {
		s.note("stopping the current run")
		backend.End()
	}
	backend.Wait()
	return watch, explainDrive(err)
}

// watch shows runs on their way: the bar, and a line for each that has ended.
type watch struct {
	s      *session
	what   string
	bar    *progress
	total  int                       // to begin and under way
	failed map[string]metrics.Status // runs without a good result, and how they ended
	again  string                    // how to begin again what ended badly
}

func newWatch(s *session, what, again string) *watch {
	return &watch{s: s, what: what, bar: &progress{s: s}, failed: map[string]metrics.Status{}, again: again}
}

// found is told how much there is to do.
func (w *watch) found(todo, underway int) {
	if w.total = todo + underway; w.total > 0 {
		w.bar = w.s.startProgress(w.what, w.total)
	}
}

func (w *watch) warn(err error) { w.s.warn("%v", err) }

func (w *watch) observe(states []launcher.State) {
	running := 0
	var rate float64
	var last launcher.State
	for _, state := range states {
		switch {
		case state.Status.Terminal():
			w.ended(state)
		case state.Status == metrics.Running:
			running++
			rate += state.Traces.Throughput
			last = state
		}
	}
	switch {
	case running == 1:
		t := last.Traces
		text := fmt.Sprintf("%s, %s", last.Run.Name(), number.Count(last.Point.Workers, "worker"))
		if t.Throughput > 0 {
			text += fmt.Sprintf(": epoch %d, step %d, about %s %s", t.Epoch, t.Step, number.Significant(t.Throughput), measure.RateUnit(last.Point.Workload.Train.Sample))
		}
		w.bar.describe(text)
	case running > 1:
		w.bar.describe(fmt.Sprintf("%s, about %s %s together", number.Count(running, "run"), number.Significant(rate), measure.RateUnit(last.Point.Workload.Train.Sample)))
	}
}

// ended tells of a run that has ended.
func (w *watch) ended(state launcher.State) {
	line := fmt.Sprintf("%s: %s", state.Record.ID, state.Status)
	if state.Detail != "" {
		line += ": " + state.Detail
	}
	run := fmt.Sprintf("%s-r%d", state.Point.ID, state.Point.Repeat)
	switch {
	case state.Status.Good():
		delete(w.failed, run) // an earlier attempt did
	case state.Status == metrics.OutOfMemory && state.Point.Enforces(study.MemoryKey):
		line += fmt.Sprintf("\n  %v is too little for this point: that is its result, and its other repeats are not run", state.Point.Resources.Memory)
	case state.Status == metrics.OutOfMemory && state.Point.ExhaustionTells():
		line += "\n  this layout does not fit in memory: that is its result, and its other repeats are not run"
	default:
		w.failed[run] = state.Status
		if state.Status != metrics.Cancelled { // its log does not tell why
			line += "\n  " + cmp.Or(state.Log(), state.Run.Path())
		}
		if hint := worker.Hint(state.Status, state.Detail, state.Point.Lengths()); hint != "" {
			line += "\n  " + hint
		}
	}
	w.bar.advance(1)
	w.bar.finished("%s", line)
}

// verdict is the error of a command whose runs did not all end well.
func (w *watch) verdict() error {
	if len(w.failed) == 0 {
		return nil
	}
	e := &runsFailedError{cancelled: w.cancelled(), total: max(w.total, len(w.failed)), hint: w.again}
	if e.failed = len(w.failed) - e.cancelled; e.failed > 0 {
		e.hint = "`scalebench logs RUN` prints a run's log. " + w.again
	}
	return e
}

// cancelled is how many runs ended because somebody cancelled them.
func (w *watch) cancelled() int {
	n := 0
	for _, status := range w.failed {
		if status == metrics.Cancelled {
			n++
		}
	}
	return n
}

// verdictBeside is the verdict for a command that also fails with err: nothing
// more where err is why it could not do its work.
func (w *watch) verdictBeside(err error) error {
	var partial *workspace.PartialError
	if err != nil && !(errors.As(err, &partial) && partial.Runs > 0) {
		return nil
	}
	return w.verdict()
}
