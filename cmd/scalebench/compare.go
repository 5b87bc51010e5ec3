package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report"
)

type compareOptions struct {
	query.Comparison
	at    cli.StringSlice // KEY=VALUE, a place within the runs
	limit string          // value of --fail-if-worse; "" if unset
	junit string          // file; "" for none
}

func compareCommand(s *session) *cli.Command {
	var o compareOptions
	return &cli.Command{
		Name:      "compare",
		Usage:     "compare two sets of runs, point by point",
		ArgsUsage: "A B",
		Description: "A and B are each one of: a study (its name or file; study:NAME if a name is\n" +
			"ambiguous), commit:HASH, files:DIGITS (first digits of the SHA-256 of your own file),\n" +
			"date:FROM..TO (without TO itself; either may be left out) or a single day, or\n" +
			"where:CONDITION. Options that select runs apply to both.\n" +
			"\n" +
			"Ratios are B over A, with their 95 % interval. The verdict is better or worse if p <=\n" +
			"0.05 over all points together. That needs 4 runs per side for one point, 5 for 2 to 6\n" +
			"points, 6 for up to 23. Runs of different programs are only compared with --mix. -m\n" +
			measure.CostPerMillion + " compares services at equal cost, by the site file's prices.",
		Flags: append(selectionFlags(&o.Selection), mixFlag(&o.Mix), atFlag(&o.at),
			metricFlag(&o.Metric), siteFlag(&o.Site),
			&cli.StringFlag{Name: "fail-if-worse", Destination: &o.limit, Usage: "exit with 3 if a point's verdict is worse by `PERCENT` or more, such as 5%, or if no point can be judged"},
			junitFlag(&o.junit)),
		Action: func(c *cli.Context) error {
			o.A, o.B = c.Args().Get(0), c.Args().Get(1)
			return runCompare(c.Context, s, o)
		},
	}
}

func runCompare(ctx context.Context, s *session, o compareOptions) error {
	limit, err := query.ParsePercent(o.limit)
	if err != nil {
		return &usageError{err: fmt.Errorf("--fail-if-worse %q: %w", o.limit, err)}
	}
	o.At, o.Judge = o.at.Value(), o.limit != ""
	c, err := s.reader().Compare(ctx, o.Comparison)
	if err != nil {
		return err
	}
	if err := s.print(report.Contrast(c.Comparison, c.Measure, o.A, o.B)); err != nil {
		return err
	}
	if err := s.saveChecks(o.junit, "compare "+o.A+" "+o.B, report.ContrastChecks(c.Comparison, c.Measure, limit)); err != nil {
		return err
	}
	if c.OtherDays != "" && !s.forPeople() {
		c.Warnings = append(c.Warnings, c.OtherDays)
	}
	s.warnStudySorted(o.A+" "+o.B, c.Warnings...)
	if len(c.Lines) > 0 {
		s.note("To measure every point of both %s more times, alternating, and compare only the new runs:\n  %s", number.Exact(query.MoreRepeats), strings.Join(c.Lines, "\n  "))
	}
	if len(c.OnlyA) > 0 {
		s.note("Only in %s: %s.", o.A, strings.Join(c.OnlyA, "; "))
	}
	if len(c.OnlyB) > 0 {
		s.note("Only in %s: %s.", o.B, strings.Join(c.OnlyB, "; "))
	}
	if o.limit == "" {
		return nil
	}
	if err := c.FailAt(limit); err != nil {
		return &worseError{err}
	}
	return nil
}
