package main

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/listing"
	"github.com/scalebench/scalebench/launcher/rundir"
)

func statusCommand(s *session) *cli.Command {
	var where string
	return &cli.Command{
		Name:      "status",
		Usage:     "show how far every run has got",
		ArgsUsage: "[STUDY]",
		Description: "State and reason come from the scheduler, progress from the runs' own events.\n" +
			"Throughput so far is rank 0's rate times the number of workers, over its last\n" +
			"steps: use it for watching only. Results come from all ranks, after collect.\n" +
			"\n" +
			"Runs of a point that are alike share a row; --verbose lists each. The time left\n" +
			"is that of runs that are done, as many at a time as run now.",
		Flags: []cli.Flag{whereFlag(&where)},
		Action: func(c *cli.Context) error {
			return runStatus(c.Context, s, c.Args().First(), where)
		},
	}
}

func runStatus(ctx context.Context, s *session, arg, where string) error {
	folders, err := s.folders(ctx, arg)
	if err != nil {
		return err
	}
	var all runsInFolders
	var problems []error
	for _, folder := range folders {
		problems = append(problems, all.read(ctx, s, folder))
	}
	chosen, err := inFolders(ctx, all, where)
	if err != nil {
		return err
	}
	t := listing.Status(chosen.states, chosen.planned)
	if s.forPeople() && len(t.Rows) > 0 {
		if !s.verbose {
			t = listing.Folded(chosen.states, chosen.planned)
		}
		t.Lead = listing.Progress(chosen.states, chosen.planned, float64(time.Now().UnixMilli())/1000)
	}
	if err := s.print(t); err != nil {
		return err
	}
	return errors.Join(problems...)
}

// read adds the attempts in a folder, and the planned runs that have none.
func (r *runsInFolders) read(ctx context.Context, s *session, folder rundir.Study) error {
	plan, unplanned := s.readPlan(folder)
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		s.warn("%v", err)
		return unreadable(1)
	}
	states, unread, unreachable := s.survey(ctx, attempts)
	r.states = append(r.states, states...)
	r.planned = append(r.planned, launcher.NotBegun(plan, folder, attempts)...)
	return errors.Join(unreachable, unreadable(unread), unplanned)
}
