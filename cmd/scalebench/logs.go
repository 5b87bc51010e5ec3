package main

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/clean"
)

func logsCommand(s *session) *cli.Command {
	var o workspace.LogOptions
	return &cli.Command{
		Name:      "logs",
		Usage:     "print the output of a run's program, or follow it",
		ArgsUsage: "RUN",
		Description: "RUN is a run as `status` lists it, or a unique prefix of it. Without --rank it prints\n" +
			"the log of the rank that failed first, else of rank 0, else of the job (job.log). -f\n" +
			"waits for a run that has not started, and ends with the run. Secrets that the program\n" +
			"has printed are shown.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "keep printing what is added, until the run has ended", Destination: &o.Follow, DisableDefaultText: true},
			&cli.IntFlag{Name: "rank", Usage: "print the log of rank `N`", Value: -1, Destination: &o.Rank, DefaultText: "the one that failed first, else 0"},
			whereFlag(&o.Where),
		},
		Action: func(c *cli.Context) error {
			if c.IsSet("rank") && o.Rank < 0 {
				return usagef("invalid --rank %d; ranks count from 0", o.Rank)
			}
			return runLogs(c.Context, s, c.Args().First(), o)
		},
	}
}

func runLogs(ctx context.Context, s *session, name string, o workspace.LogOptions) error {
	log, err := s.workspace().OpenLog(ctx, name, o)
	if err != nil {
		return err
	}
	s.note("%s: %s (%s)", log.Name(), log.Path, log.Status())
	out := io.Writer(s.stdout)
	if onTerminal(s.stdout) {
		w := clean.NewWriter(s.stdout)
		defer w.Flush()
		out = w
	}
	if err := log.Copy(ctx, out); err != nil {
		return err
	}
	if o.Follow {
		s.note("%s: %s", log.State.Record.ID, log.Status())
	}
	return log.Unreachable
}
