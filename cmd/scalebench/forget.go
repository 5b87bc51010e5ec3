package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

type forgetOptions struct {
	arg, where    string
	restore, list bool
}

func forgetCommand(s *session) *cli.Command {
	var o forgetOptions
	return &cli.Command{
		Name:      "forget",
		Usage:     "take runs out of every table, figure and advice; --restore brings them back",
		ArgsUsage: "STUDY|RUN",
		Description: "RUN is a run as `status` lists it; STUDY/POINT means all runs of a point; a unique\n" +
			"prefix is enough. Nothing is deleted: run folders move to the folder trash next to\n" +
			"them. Colleagues who collect from the same folder no longer see them either.\n" +
			"\n" +
			"`run` and `submit` then measure these points again, and say so. To leave a point out,\n" +
			"remove it from the study file too.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "where", Destination: &o.where, Usage: "only collected runs that match the SQL `CONDITION`: \"workers > 8 AND throughput < 100\""},
			&cli.BoolFlag{Name: "restore", Destination: &o.restore, DisableDefaultText: true, Usage: "bring forgotten runs back"},
			&cli.BoolFlag{Name: "list", Destination: &o.list, DisableDefaultText: true, Usage: "list the study's forgotten runs"},
		},
		Action: func(c *cli.Context) error {
			o.arg = c.Args().First()
			return runForget(c.Context, s, o)
		},
	}
}

func runForget(ctx context.Context, s *session, o forgetOptions) error {
	switch {
	case o.restore && o.list:
		return usagef("--restore and --list cannot be combined")
	case o.where != "" && (o.restore || o.list):
		return usagef("--where cannot be combined with --restore or --list; name a RUN or a STUDY, as --list prints them")
	}
	runs, err := s.workspace().Select(ctx, o.arg)
	if err != nil {
		return err
	}
	var names []string
	switch {
	case o.list:
		names, err = runs.Forgotten()
	case o.restore:
		names, err = runs.Restore(ctx)
	default:
		names, err = runs.Forget(ctx, o.where)
	}
	if err != nil {
		return err
	}
	t := &table.Table{Columns: []table.Column{{Key: "run"}, {Key: "folder"}}}
	for _, id := range names {
		t.Add(id, table.NonZero(runs.Path(id)))
	}
	if err := s.print(t); err != nil {
		return err
	}
	switch n := len(names); {
	case o.list && n == 0:
		s.note("no run of %s is forgotten", runs.Study)
	case o.list:
	case o.restore:
		s.note("restored %s of %s", number.Count(n, "run"), runs.Study)
	default:
		s.note("forgot %s of %s; `scalebench forget --restore %s` brings %s back. `run` and `submit` measure %s again.",
			number.Count(n, "run"), runs.Study, runs.Study, number.Them(n), number.Them(n))
	}
	return nil
}
