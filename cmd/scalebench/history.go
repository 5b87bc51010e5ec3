package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics/history"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report/tables"
)

type historyOptions struct {
	selection
	metric  string
	changed bool
}

func historyCommand(s *session) *cli.Command {
	var o historyOptions
	return &cli.Command{
		Name:      "history",
		Usage:     "print a figure over time, and where it changed",
		ArgsUsage: "[STUDY]",
		Description: "A line for each stretch of a point's good runs in which nothing changed: the first\n" +
			"run of it, the median and quartiles of its runs, and what changed before it.\n" +
			"Change points are looked for among runs that ran on the same alone (p < 0.001).\n" +
			"A point is the same in all studies. In CSV and JSON: base units and fractions.",
		Flags: append(o.flags(),
			metricFlag(&o.metric),
			&cli.BoolFlag{Name: "changes", Destination: &o.changed, DisableDefaultText: true, Usage: "only points in which something changed"}),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runHistory(c.Context, s, o)
		},
	}
}

func runHistory(ctx context.Context, s *session, o historyOptions) error {
	db, filter, err := s.openFor(&o)
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := findMeasure(ctx, db, o.metric)
	if err != nil {
		return err
	}
	points, prints, err := db.History(ctx, filter, m)
	if err != nil {
		return storeError(err)
	}
	runs := 0
	var traces []tables.Trace
	var ids []int64
	for _, p := range points {
		runs += len(p.Samples)
		segments := history.Trace(p.Samples, prints)
		if o.changed && len(segments) < 2 {
			continue
		}
		traces = append(traces, tables.Trace{Point: p.Point, Segments: segments})
		for _, segment := range segments {
			ids = append(ids, segment.Samples[0].Run)
			if segment.Before != nil {
				ids = append(ids, segment.Before.Run)
			}
		}
	}
	marks, err := db.Marks(ctx, ids)
	if err != nil {
		return storeError(err)
	}
	if err := s.print(tables.History(traces, marks, m)); err != nil {
		return err
	}
	if runs == 0 {
		s.note("No good run with this figure in %s fits.", db.Path())
	} else {
		s.note("%s of %s.", number.Count(runs, "run"), number.Count(len(points), "point"))
	}
	return nil
}
