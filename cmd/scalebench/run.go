package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
)

type runOptions struct {
	study, site   string
	oversubscribe bool
}

func runCommand(s *session) *cli.Command {
	var o runOptions
	return &cli.Command{
		Name:      "run",
		Usage:     "run a study on this machine",
		ArgsUsage: "STUDY",
		Description: "Runs what has no good result yet, one run at a time, each as worker processes\n" +
			"of this machine, and collects the results. An interrupt ends the run under way\n" +
			"in order; the same command goes on later.",
		Flags: []cli.Flag{
			siteFlag(&o.site),
			&cli.BoolFlag{Name: "oversubscribe", Usage: "run points with more workers than there are CPUs for them all the same", Destination: &o.oversubscribe},
		},
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runRun(c.Context, s, o)
		},
	}
}

func runRun(ctx context.Context, s *session, o runOptions) error {
	w, err := s.load(o.study, o.site)
	if err != nil {
		return err
	}
	creator, err := w.creator()
	if err != nil {
		return err
	}
	creator.Backend = launcher.Local
	backend := &launcher.LocalBackend{Creator: creator, Environment: w.site.Environment, Oversubscribe: o.oversubscribe}
	for _, p := range w.plan.Points {
		if err := backend.Fits(p.Point); err != nil {
			return &usageError{err: fmt.Errorf("%s: %w", o.study, err)}
		}
	}
	todo, err := s.outstanding(ctx, w)
	if err != nil {
		return err
	}
	if err := launcher.Freeze(w.folder, w.plan, w.study.File, w.site.File); err != nil {
		return err
	}
	if len(todo) == 0 {
		s.note("all %d runs of %s have a good result; nothing to run", len(w.plan.Points), w.study.Name)
		return collectFolder(ctx, s, w.folder)
	}
	watch := newWatch(s, todo)
	underway, err := launcher.Drive(ctx, launcher.Driving{Backend: backend, Client: s.slurm(), InFlight: 1,
		Interval: 500 * time.Millisecond, Observe: watch.observe}, todo)
	watch.bar.stop()
	if len(underway) > 0 {
		s.note("ending the run under way")
		if err := backend.Cancel(ctx, underway); err != nil {
			return err
		}
	}
	backend.Wait()
	// What was measured until an interrupt is kept as well.
	if collected := collectFolder(context.WithoutCancel(ctx), s, w.folder); err == nil {
		err = collected
	}
	if err != nil {
		return err
	}
	return watch.verdict(len(todo))
}

// outstanding is what of the plan has no good result and nothing under way.
func (s *session) outstanding(ctx context.Context, w *work) ([]launcher.Todo, error) {
	done, err := s.stored(ctx, w.study.Name)
	if err != nil {
		return nil, err
	}
	states, err := launcher.Survey(ctx, s.slurm(), s.attempts(w.folder))
	if err != nil {
		// Without the scheduler's word a run under way could be begun twice.
		return nil, explainScheduler(err)
	}
	return launcher.Outstanding(w.plan, states, done), nil
}

// watch shows runs on their way: the bar, and a line for each that has ended.
type watch struct {
	s      *session
	bar    *progress
	failed int
}

func newWatch(s *session, todo []launcher.Todo) *watch {
	return &watch{s: s, bar: s.startProgress("runs", len(todo))}
}

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
		text := fmt.Sprintf("%s, %s", last.Run.Name(), count(last.Point.Workers, "worker"))
		if t.Throughput > 0 {
			text += fmt.Sprintf(": epoch %d, step %d, about %s samples/s", t.Epoch, t.Step, significant(t.Throughput))
		}
		w.bar.describe(text)
	case running > 1:
		w.bar.describe(fmt.Sprintf("%d runs, about %s samples/s together", running, significant(rate)))
	}
}

// ended tells of a run that has ended.
func (w *watch) ended(state launcher.State) {
	w.bar.advance(1)
	line := fmt.Sprintf("%s: %s", state.Record.ID, state.Status)
	if state.Detail != "" {
		line += ": " + state.Detail
	}
	if !state.Status.Good() {
		w.failed++
		line += "\n  " + state.Run.Path()
	}
	w.bar.finished("%s", line)
}

// verdict is the error of a command whose runs did not all end well.
func (w *watch) verdict(total int) error {
	if w.failed == 0 {
		return nil
	}
	return &runsFailedError{failed: w.failed, total: total,
		hint: "The run folders above hold each rank's output (rank-*.log) and the job's (job.log). The same command runs again what failed."}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
