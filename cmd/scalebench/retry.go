package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
)

func retryCommand(s *session) *cli.Command {
	var o submitOptions
	var where string
	return &cli.Command{
		Name:      "retry",
		Usage:     "submit a study's failed and cancelled runs again",
		ArgsUsage: "STUDY [RUN...]",
		Description: "Each run whose latest attempt failed, was lost or was cancelled gets a new attempt,\n" +
			"even beyond policy.retries. RUN, as `status` lists it, selects one run, and\n" +
			"STUDY/POINT the runs of a point; a unique prefix is enough. Runs that never started\n" +
			"are left to `submit`.",
		Flags: append(o.flags(), whereFlag(&where)),
		Action: func(c *cli.Context) error {
			o.Study = c.Args().First()
			return runRetry(c.Context, s, o, c.Args().Tail(), where)
		},
	}
}

func runRetry(ctx context.Context, s *session, o submitOptions, runs []string, where string) error {
	if err := checkInterval(o.interval); err != nil {
		return err
	}
	w, err := s.workspace().Load(ctx, o.Request)
	if err != nil {
		return err
	}
	choice, unread, err := w.Retry(ctx, runs, where)
	if err != nil {
		return err
	}
	if choice == nil {
		return workspace.Unread(unread)
	}
	return submit(ctx, s, w, *choice, o)
}
