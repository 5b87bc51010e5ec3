package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// shownRuns is the default for the maximum number of runs in a printed list.
const shownRuns = 50

type runsOptions struct {
	query.Selection
	metrics, states cli.StringSlice
}

func runsCommand(s *session) *cli.Command {
	var o runsOptions
	return &cli.Command{
		Name:  "runs",
		Usage: "list runs, newest first",
		Description: "Keys that differ among the runs of a study have a column each. CSV and JSON have more\n" +
			"columns, in base units.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "study", Usage: "only runs of `STUDY`, a study's name or file", Destination: &o.Study},
			&cli.StringFlag{Name: "framework", Usage: "only runs with framework `NAME`", Destination: &o.Framework},
			&cli.IntFlag{Name: "workers", DefaultText: "any", Usage: "only runs with `N` workers", Destination: &o.Workers},
			sinceFlag(&o.Since),
			&cli.StringSliceFlag{Name: "state", Usage: "only runs in `STATE`; may be repeated", Destination: &o.states},
			whereFlag(&o.Where),
			&cli.StringSliceFlag{Name: "measure", Aliases: []string{"m"}, Usage: "show the `MEASURE`, such as step_p95 or one that runs report; may be repeated", Destination: &o.metrics},
			&cli.IntFlag{Name: "limit", Usage: "only the newest `N` runs; 0 for all", Destination: &o.Limit, DefaultText: fmt.Sprintf("%d for people, all in CSV and JSON", shownRuns)},
		},
		Action: func(c *cli.Context) error {
			if !c.IsSet("limit") && (s.format == table.FormatTable || s.format == table.FormatMarkdown) {
				o.Limit = shownRuns
			}
			return runRuns(c.Context, s, o)
		},
	}
}

// runMeasures returns the usual measures of runs and the named ones.
func runMeasures(ctx context.Context, db *store.Store, names []string) ([]measure.Measure, error) {
	list := slices.Clone(report.RunMeasures)
	for _, name := range names {
		m, err := query.FindMeasure(ctx, db, name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(known measure.Measure) bool { return known.Name == m.Name }) {
			list = append(list, m)
		}
	}
	return list, nil
}

func runRuns(ctx context.Context, s *session, o runsOptions) error {
	o.States = o.states.Value()
	db, filter, err := s.reader().OpenFor(o.Selection)
	if err != nil {
		return err
	}
	defer db.Close()
	if filter.Limit > 0 {
		filter.Limit++ // detect whether there are more
	}
	list, err := runMeasures(ctx, db, o.metrics.Value())
	if err != nil {
		return err
	}
	people := s.format == table.FormatTable || s.format == table.FormatMarkdown
	timed := people && len(list) == len(report.RunMeasures)
	if timed {
		m, err := measure.Find(measure.RunSeconds)
		if err != nil {
			return err
		}
		list = append(list, m)
	}
	rows, err := db.Runs(ctx, filter, list...)
	if err != nil {
		return workspace.StoreError(err)
	}
	if len(rows) == 0 && filter.Study != "" {
		if _, _, err := db.Observations(ctx, filter.Study); errors.Is(err, store.ErrNotFound) {
			return s.reader().Missing(ctx, filter.Study, err)
		}
	}
	has := func(i int) bool {
		return slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Values[i] != nil })
	}
	if timed && (has(0) || !has(len(list)-1)) {
		list = list[:len(report.RunMeasures)]
		for i := range rows {
			rows[i].Values = rows[i].Values[:len(list)]
		}
	}
	more := o.Limit > 0 && len(rows) > o.Limit
	if more {
		rows = rows[:o.Limit]
	}
	if people {
		if err := db.Describe(ctx, rows); err != nil {
			return workspace.StoreError(err)
		}
		rows = report.InOrder(rows)
	}
	if err := s.print(report.Runs(rows, list)); err != nil {
		return err
	}
	switch {
	case more:
		s.note("These are the newest %d; --limit 0 shows all.", o.Limit)
	case len(rows) == 0:
		s.note("No run in %s matches.", db.Path())
	}
	return nil
}
