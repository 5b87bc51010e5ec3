package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
)

func cancelCommand(s *session) *cli.Command {
	var all bool
	var where string
	return &cli.Command{
		Name:      "cancel",
		Usage:     "cancel waiting or running runs: one, a study's, or all",
		ArgsUsage: "[STUDY|RUN]",
		Description: "RUN is a run as `status` lists it; STUDY/POINT means all runs of a point; a unique\n" +
			"prefix is enough. Measurements so far are kept.\n" +
			"\n" +
			"`submit` leaves cancelled runs alone; `retry` starts them again. A `submit --wait`\n" +
			"that is running elsewhere keeps submitting: stop it first.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "all", DisableDefaultText: true, Usage: "cancel every run of every study in the run folders", Destination: &all}, whereFlag(&where)},
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
	ended, wrong := s.workspace().Cancel(ctx, arg, where)
	if wrong != nil && len(ended) == 0 {
		return wrong // do not print an empty table before the error
	}
	if err := s.printDone(query.Cancelled(ended)); err != nil {
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
