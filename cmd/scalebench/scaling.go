package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

func scalingCommand(s *session) *cli.Command {
	var o curveOptions
	o.Prices = new(string)
	return &cli.Command{
		Name:      "scaling",
		Usage:     "print throughput, speedup, efficiency and time to accuracy",
		ArgsUsage: "STUDY",
		Description: "Figures are medians over runs; from 6 runs on, brackets give their confidence\n" +
			"interval. A study that is not a training shows its own measures. -m\n" +
			measure.CostPerMillion + " prints what a million answers of a service cost by the site\n" +
			"file's prices, -m " + measure.CostPerMillionSamples + " what a million samples cost.",
		Flags: append(o.flags(), o.axisFlag(), atFlag(&o.at), siteFlag(o.Prices),
			&cli.StringFlag{Name: "measure", Aliases: []string{"m"}, Destination: &o.Measure, Usage: "only the `MEASURE`, such as step_p95 or one that runs report"}),
		Action: func(c *cli.Context) error {
			o.Study = c.Args().First()
			return runScaling(c.Context, s, o)
		},
	}
}

func runScaling(ctx context.Context, s *session, o curveOptions) error {
	a, err := s.reader().Curves(ctx, o.question())
	if err != nil {
		return err
	}
	if instead := a.Instead(); o.Measure == "" && instead != "" && s.forPeople() {
		s.note("The runs state no throughput and no time to a target; this is their %s.", instead)
		o.Measure = instead
		return runScaling(ctx, s, o)
	}
	switch {
	case o.Measure != "":
		err = s.print(report.Measure(a.Curves, a.Observations, a.Measures[0], a.Warnings...))
	case !a.Kind.Trains && len(a.Measures) == 0:
		return a.Trainings()
	case !a.Kind.Trains:
		err = s.print(report.Measures(a.Curves, a.Measures, a.Warnings...))
	case a.BaseError != nil && a.NoBase.Silent(len(a.Curves)):
		s.warnOn(a, false)
		return a.BaseError
	case s.format == table.FormatJSON:
		err = s.printRows(scaling.Rows(a.Curves))
	case s.format == table.FormatCSV:
		err = s.print(report.ScalingData(scaling.Rows(a.Curves)))
	default:
		err = s.print(report.Scaling(a.Curves, a.Warnings...))
	}
	if err != nil {
		return err
	}
	if a.BaseError == nil || o.Measure != "" && !divides(a) {
		s.warnOn(a, s.forPeople())
		return nil
	}
	s.warnOn(a, s.forPeople(), a.NoBase.Remarks()...)
	s.note("%s", hintFor(a.BaseError))
	return nil
}

// divides reports whether the requested measure was measured and has a speedup, which needs a base.
func divides(a *query.Analysis) bool {
	m := a.Measures[0]
	return m.Speeds() && slices.ContainsFunc(a.Curves, func(c scaling.Curve) bool { return c.Measured(m.Name) })
}

// printRows prints the rows as a JSON list, one object per line.
func (s *session) printRows(rows []scaling.Row) error {
	text, err := report.ScalingJSON(rows)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(s.stdout, clean.JSON(text))
	return err
}
