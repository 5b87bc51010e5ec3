package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report"
)

type historyOptions struct {
	query.History
	limit string // value of --fail-if-worse; "" if unset
	junit string // file; "" for none
}

func historyCommand(s *session) *cli.Command {
	var o historyOptions
	return &cli.Command{
		Name:      "history",
		Usage:     "print a measure over time, and where it changed",
		ArgsUsage: "[STUDY]",
		Description: "Each line is a period in which a point's good runs did not change, with the change\n" +
			"before it. Only runs on the same hardware and software are compared. A\n" +
			"line below the table raises an alarm if a point's newest 2 to 10 runs are worse than\n" +
			"the 12 or more before them.",
		Flags: append(selectionFlags(&o.Selection),
			metricFlag(&o.Metric),
			&cli.BoolFlag{Name: "changes", Destination: &o.Changed, DisableDefaultText: true, Usage: "only points that changed or raise an alarm"},
			&cli.StringFlag{Name: "fail-if-worse", Destination: &o.limit, Usage: "exit with 3 if a point has an alarm and is worse by `PERCENT` or more, such as 5%, or if no point has enough runs"},
			junitFlag(&o.junit)),
		Action: func(c *cli.Context) error {
			o.Study = c.Args().First()
			return runHistory(c.Context, s, o)
		},
	}
}

func runHistory(ctx context.Context, s *session, o historyOptions) error {
	limit, err := query.ParsePercent(o.limit)
	if err != nil {
		return &usageError{err: fmt.Errorf("--fail-if-worse %q: %w", o.limit, err)}
	}
	o.Judge = o.limit != ""
	past, err := s.reader().History(ctx, o.History)
	if err != nil {
		return err
	}
	if err := s.print(report.History(past.Traces, past.Marks, past.Measure)); err != nil {
		return err
	}
	if err := s.saveChecks(o.junit, strings.TrimSpace("history "+o.Study), report.HistoryChecks(past.Traces, past.Marks, past.Measure, limit)); err != nil {
		return err
	}
	s.warnStudySorted(o.Study, past.Warnings...)
	if past.Runs == 0 {
		s.note("No good run in %s matches and has %s.", past.Database, past.Measure.Name)
	} else {
		s.note("%s of %s.", number.Count(past.Runs, "run"), number.Count(past.Points, "point"))
	}
	if o.limit == "" {
		return nil
	}
	if err := past.Alarm(limit); err != nil {
		return &worseError{err}
	}
	return nil
}
