package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report/tables"
)

type historyOptions struct {
	selection
	metric  string
	changed bool
	limit   string // of --fail-if-worse; "" for none
}

func historyCommand(s *session) *cli.Command {
	var o historyOptions
	return &cli.Command{
		Name:      "history",
		Usage:     "print a measure over time, and where it changed",
		ArgsUsage: "[STUDY]",
		Description: "Each line is a period in which a point's good runs did not change: its first run,\n" +
			"the median and quartiles of its runs, and what changed before it. Changes are looked\n" +
			"for only among runs on the same hardware and software (p < 0.001, and larger than\n" +
			"the variation between changes). A line below the table raises an alarm if a point's\n" +
			"newest 2 to 10 runs are worse than the 12 or more before them. Equal points of\n" +
			"different studies count as one. In CSV and JSON: base units and fractions.",
		Flags: append(o.flags(),
			metricFlag(&o.metric),
			&cli.BoolFlag{Name: "changes", Destination: &o.changed, DisableDefaultText: true, Usage: "only points that changed or raise an alarm"},
			&cli.StringFlag{Name: "fail-if-worse", Destination: &o.limit, Usage: "end with exit code 3 if the newest runs of a point raise an alarm and are worse by `PERCENT` or more, such as 5%, or if no point has enough runs"}),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runHistory(c.Context, s, o)
		},
	}
}

func runHistory(ctx context.Context, s *session, o historyOptions) error {
	limit, err := parsePercent(o.limit)
	if err != nil {
		return &usageError{err: fmt.Errorf("--fail-if-worse %q: %w", o.limit, err)}
	}
	db, filter, err := s.openFor(&o)
	if err != nil {
		return err
	}
	defer db.Close()
	m, err := findMeasure(ctx, db, o.metric)
	if err != nil {
		return err
	}
	if o.limit != "" && m.Better == measure.Neither {
		return usagef("--fail-if-worse: %s has no better direction; set better = \"higher\" or \"lower\" where it is defined", m.Name)
	}
	points, prints, err := db.History(ctx, filter, m)
	if err != nil {
		return workspace.StoreError(err)
	}
	runs, judged := 0, 0
	var traces []tables.Trace
	var ids []int64
	for _, p := range points {
		runs += len(p.Samples)
		segments := compare.Trace(p.Samples, prints)
		alarm, enough := compare.Newest(segments, m.Worse())
		if enough {
			judged++
		}
		if o.changed && len(segments) < 2 && alarm == nil {
			continue
		}
		traces = append(traces, tables.Trace{Point: p.Point, Segments: segments, Alarm: alarm})
		if alarm != nil {
			ids = append(ids, alarm.Since.Run)
		}
		for _, segment := range segments {
			ids = append(ids, segment.Samples[0].Run)
			if segment.Before != nil {
				ids = append(ids, segment.Before.Run)
			}
		}
	}
	marks, err := db.Marks(ctx, ids)
	if err != nil {
		return workspace.StoreError(err)
	}
	if err := s.print(tables.History(traces, marks, m)); err != nil {
		return err
	}
	if runs == 0 {
		s.note("No good run in %s matches and has %s.", db.Path(), m.Name)
	} else {
		s.note("%s of %s.", number.Count(runs, "run"), number.Count(len(points), "point"))
	}
	if o.limit == "" {
		return nil
	}
	if judged == 0 {
		return &worseError{errors.New("--fail-if-worse: no point has enough runs; an alarm needs 14 on the same hardware and software since the last change")}
	}
	for _, trace := range traces {
		if a := trace.Alarm; a != nil && !(float64(m.Worse())*(a.Ratio-1) < limit) { // without a ratio too
			return &worseError{errors.New(tables.AlarmText(trace, marks, m))}
		}
	}
	return nil
}
