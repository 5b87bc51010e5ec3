package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/backend/local"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

type runOptions struct {
	workspace.Request
	oversubscribe bool
	local         bool
	again         bool
	unchecked     bool
	until         untilOptions
}

func runCommand(s *session) *cli.Command {
	var o runOptions
	var command workspace.Command
	return &cli.Command{
		Name:      "run",
		Usage:     "run a study on this machine, or on the nodes of a Slurm allocation",
		ArgsUsage: studyOrCommand,
		Description: "Runs all points that have no good result yet, one run at a time, and collects the\n" +
			"results. An interrupt ends the current run cleanly; repeat the command to continue.\n" +
			"\n" +
			"Within a Slurm allocation (salloc, or a script that sbatch runs) each run is a step on\n" +
			"its nodes, through srun.\n" +
			"\n" +
			overrideHelp + "\n" +
			"\n" +
			typedHelp,
		Flags: append([]cli.Flag{
			siteFlag(&o.Site), againFlag(&o.again), uncheckedFlag(&o.unchecked),
			&cli.BoolFlag{Name: "local", DisableDefaultText: true, Usage: "run processes on this machine, even within an allocation", Destination: &o.local},
			&cli.BoolFlag{Name: "oversubscribe", DisableDefaultText: true, Usage: "run points even if they have more workers than CPUs", Destination: &o.oversubscribe},
		}, append(o.until.flags(), commandFlags(&command)...)...),
		Action: func(c *cli.Context) error {
			var err error
			if o.Request, err = o.until.asked(c, &command, o.Site); err != nil {
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
	o.Nodes = nodes
	w, err := s.workspace().Load(ctx, o.Request)
	if err != nil {
		return err
	}
	until, err := o.until.of(w.Study)
	if err != nil {
		return err
	}
	s.noteStudy(o.Request, w)
	backend, err := w.Local(ctx, o.Study, nodes, o.oversubscribe)
	if err != nil {
		return err
	}
	s.noteRange(w)
	choice, err := w.Choice(ctx, o.again)
	if err != nil {
		return err
	}
	if !o.unchecked {
		if err := w.CheckFiles(choice); err != nil {
			return err
		}
	}
	choice.Cancelled = true // include cancelled jobs: this command shows its runs
	if until {
		return s.runUntilDecided(ctx, w, backend, choice, o.until)
	}
	if err := w.Begin(ctx); err != nil {
		return err
	}
	_ = w.Sender.Attend(ctx, 0) // else tell tries again
	defer w.Sender.Leave()
	watch, err := s.drive(ctx, w, backend, choice)
	if err == nil {
		err = w.NoteOutdated(ctx)
	}
	if err == nil && watch.total == 0 {
		w.NoteNothingToRun()
	}
	// Keep what was measured before an interrupt.
	if collected := s.collect(context.WithoutCancel(ctx), w.Folder); err == nil {
		err = collected
	}
	if err == nil {
		s.tell(ctx, w, &query.Ended)
	}
	if o.Typed && err == nil {
		if noted := s.timing(ctx, w); len(watch.failed) == 0 {
			err = noted
		}
	}
	return errors.Join(err, watch.verdictWith(err))
}

// drive runs the chosen runs one at a time.
func (s *session) drive(ctx context.Context, w *workspace.Work, backend *local.Backend, choice launcher.Choice) (*watch, error) {
	watch := newWatch(s, "runs", "The same command repeats what failed.")
	watch.tellFailure = func() { s.tell(ctx, w, nil) }
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
