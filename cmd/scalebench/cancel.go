package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/listing"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

func cancelCommand(s *session) *cli.Command {
	var all bool
	var where string
	return &cli.Command{
		Name:      "cancel",
		Usage:     "cancel waiting or running runs: one, a study's, or all",
		ArgsUsage: "[STUDY|RUN]",
		Description: "RUN is a run as `status` lists it; STUDY/POINT means all runs of a point; a unique\n" +
			"prefix is enough. Slurm jobs are cancelled; a run on this machine is ended by the\n" +
			"command that started it. Measurements so far are kept, and `status` says when a run\n" +
			"has ended. A job that serves several runs (packing = \"allocation\") continues with\n" +
			"the others.\n" +
			"\n" +
			"`submit` leaves cancelled runs alone; `retry` starts them again. A `submit --wait`\n" +
			"that is running elsewhere keeps submitting runs that it has not started yet; stop it\n" +
			"first.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "all", DisableDefaultText: true, Usage: "every run of every study in the run folders", Destination: &all}, whereFlag(&where)},
		Action: func(c *cli.Context) error {
			return runCancel(c.Context, s, c.Args().First(), all, where)
		},
	}
}

func runCancel(ctx context.Context, s *session, arg string, all bool, where string) error {
	switch {
	case arg == "" && !all:
		return usagef("name what to cancel: a STUDY or a RUN, or give --all")
	case arg != "" && all:
		return usagef("--all and %q cannot be combined; leave one out", arg)
	}
	name, run := "", ""
	if !all {
		var err error
		if name, run, err = workspace.SplitRun(arg); err != nil {
			return err
		}
	}
	folders, err := s.workspace().Folders(ctx, name)
	if err != nil {
		return err
	}
	var ended []launcher.Ending
	var problems []error
	for _, folder := range folders {
		endings, err := cancelFolder(ctx, s, folder, run, where)
		ended, problems = append(ended, endings...), append(problems, err)
	}
	wrong := errors.Join(problems...)
	if wrong != nil && len(ended) == 0 {
		return wrong // no table without rows before what is wrong
	}
	if err := s.printDone(listing.Cancelled(ended)); err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	if len(ended) == 0 {
		s.note("nothing to cancel: no run is waiting or running")
	}
	return nil
}

// lease takes a study's lease, and says so where it has to wait for another command.
func (s *session) lease(ctx context.Context, folder rundir.Study) (*sharedfs.Lease, error) {
	l, err := sharedfs.TakeLease(ctx, folder.Lease(), 0)
	var held *sharedfs.LeaseHeldError
	if errors.As(err, &held) {
		s.note("%s is starting runs of %s; waiting for it", held.Holder, filepath.Base(folder.Path()))
		return sharedfs.TakeLease(ctx, folder.Lease(), sharedfs.LeasePatience)
	}
	return l, err
}

// cancelFolder cancels the runs of one study, or the one named, for which the
// condition holds.
func cancelFolder(ctx context.Context, s *session, folder rundir.Study, run, where string) ([]launcher.Ending, error) {
	// The folder says which jobs and processes to end.
	if err := launcher.Trusted(folder); err != nil {
		return nil, err
	}
	s.hold()
	// While another command submits there may be a job whose id nobody knows.
	l, err := s.lease(ctx, folder)
	var held *sharedfs.LeaseHeldError
	switch {
	case errors.As(err, &held):
		s.warn("%s is still starting runs of %s: what it submits from now on is not cancelled; repeat this command when it is done", held.Holder, filepath.Base(folder.Path()))
	case err != nil:
		return nil, err
	default:
		defer l.Release()
	}
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		return nil, err
	}
	if run != "" {
		names := make([]string, len(attempts))
		for i, a := range attempts {
			names[i] = a.Run.Name()
		}
		means, err := workspace.Matching(run, names)
		if err != nil {
			return nil, err
		}
		found := slices.DeleteFunc(slices.Clone(attempts), func(a *launcher.Attempt) bool { return !means(a.Run.Name()) })
		if len(found) == 0 {
			return nil, &usageError{err: fmt.Errorf("no run %q in %s", run, folder.Path()), hint: fmt.Sprintf("`scalebench status %s` lists its runs; --where chooses several, like --where 'workers = 2'.", filepath.Base(folder.Path()))}
		}
		attempts = found
	}
	states, unread, unreachable := s.workspace().Survey(ctx, attempts)
	chosen, err := workspace.Runs{States: states}.Where(ctx, where)
	if err != nil {
		return nil, err
	}
	endings, err := launcher.Cancel(ctx, chosen.States)
	if unreachable != nil {
		err = nil // it says the same
	}
	if run != "" && len(endings) == 0 {
		last := states[len(states)-1]
		s.note("%s has ended: %s", last.Record.ID, last.Status)
	}
	return endings, errors.Join(unreachable, err, workspace.Unread(unread))
}
