package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/spelling"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

func scalingCommand(s *session) *cli.Command {
	var o curveOptions
	var metric string
	return &cli.Command{
		Name:      "scaling",
		Usage:     "print throughput, speedup, efficiency and time to accuracy",
		ArgsUsage: "STUDY",
		Description: "STUDY is a study's name or the path of its file. Medians over runs, with their\n" +
			"confidence interval in brackets where there are runs enough for one. In CSV and\n" +
			"JSON: samples/s, seconds, fractions.",
		Flags: append(o.flags(), o.axisFlag(),
			&cli.StringFlag{Name: "metric", Aliases: []string{"m"}, Destination: &metric, Usage: "of the `MEASURE` alone, such as step_p95 or one that runs report"}),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runScaling(c.Context, s, o, metric)
		},
	}
}

func runScaling(ctx context.Context, s *session, o curveOptions, metric string) error {
	a, err := s.analyse(ctx, o)
	if err != nil {
		return err
	}
	if metric != "" {
		m, err := a.measure(metric)
		if err != nil {
			return err
		}
		if err := s.print(tables.Measure(a.curves, m)); err != nil {
			return err
		}
		a.warn(s)
		return nil
	}
	var nothing *noTrainingError
	if errors.As(a.nothing, &nothing) && nothing.kind == collectiveKind {
		return s.printCollectives(ctx, o.study, nothing)
	}
	if a.nothing != nil {
		return a.nothing
	}
	if a.noBase != nil {
		a.warn(s)
		return a.noBase
	}
	if s.format == table.FormatJSON {
		err = s.printRows(scaling.Rows(a.curves))
	} else if s.format == table.FormatCSV {
		err = s.print(tables.ScalingData(scaling.Rows(a.curves)))
	} else {
		err = s.print(tables.Scaling(a.curves))
	}
	if err != nil {
		return err
	}
	a.warn(s)
	return nil
}

// measure finds a measure of the study's runs by its name.
func (a *analysis) measure(name string) (measure.Measure, error) {
	m, err := scaling.Find(a.curves, name)
	if err == nil {
		return m, nil
	}
	known := a.measures()
	return m, &usageError{err: fmt.Errorf("unknown measure %q; choose one of %s, or the time to a target: to_0.75", name, strings.Join(known, ", ")), hint: spelling.Hint(name, known)}
}

// measures are the names of those that are declared, and then of those that the
// runs report.
func (a *analysis) measures() []string {
	names := measure.Names()
	for _, o := range a.observations {
		for _, m := range o.Reported {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// warn prints the doubts.
func (a *analysis) warn(s *session) {
	for _, doubt := range append(slices.Clone(a.warnings), scaling.Doubts(a.curves)...) {
		s.warn("%s", doubt)
	}
}

// printRows writes the rows as a JSON list, one object a line.
func (s *session) printRows(rows []scaling.Row) error {
	text, err := tables.ScalingJSON(rows)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(s.stdout, clean.JSON(text))
	return err
}
