package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
)

func statusCommand(s *session) *cli.Command {
	var where string
	return &cli.Command{
		Name:      "status",
		Usage:     "show the state and progress of runs",
		ArgsUsage: "[STUDY]",
		Description: "State and reason come from the scheduler, progress from the runs' own events. The\n" +
			"throughput so far is rank 0's rate times the number of workers: use it for watching\n" +
			"only.\n" +
			"\n" +
			"Similar runs of a point share a row; --verbose lists each. The time left is estimated\n" +
			"from finished runs.",
		Flags: []cli.Flag{whereFlag(&where)},
		Action: func(c *cli.Context) error {
			return runStatus(c.Context, s, c.Args().First(), where)
		},
	}
}

func runStatus(ctx context.Context, s *session, arg, where string) error {
	folders, err := s.workspace().Folders(ctx, arg)
	if err != nil {
		return err
	}
	chosen, partial, err := s.workspace().Status(ctx, folders, where)
	if err != nil {
		return err
	}
	t := query.Status(chosen.States, chosen.Planned)
	if s.forPeople() && len(t.Rows) > 0 {
		if !s.verbose {
			t = query.Folded(chosen.States, chosen.Planned)
		}
		t.Lead = query.Progress(query.BriefsOf(chosen.States, chosen.Planned), float64(time.Now().UnixMilli())/1000)
	}
	if err := s.print(t); err != nil {
		return err
	}
	return partial
}
