package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics/figure"
)

type plotOptions struct {
	kind, study, output, title string
	base                       int
	mix                        bool
}

func plotCommand(s *session) *cli.Command {
	var o plotOptions
	return &cli.Command{
		Name:      "plot",
		Usage:     "draw " + strings.Join(figure.Kinds(), ", "),
		ArgsUsage: "KIND STUDY",
		Description: "KIND is one of " + strings.Join(figure.Kinds(), ", ") + ".\n" +
			"STUDY is a study's name or the path of its file. Every run is a dot; medians have\n" +
			"an interval where there are runs enough for one.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Destination: &o.output,
				Usage: "write `FILE`, whose extension says the format: " + strings.Join(figure.Formats(), ", ")},
			baseFlag(&o.base), mixFlag(&o.mix),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` above the plot", Destination: &o.title},
		},
		Action: func(c *cli.Context) error {
			o.kind, o.study = c.Args().Get(0), c.Args().Get(1)
			return runPlot(c.Context, s, o)
		},
	}
}

func runPlot(ctx context.Context, s *session, o plotOptions) error {
	// All that can be refused is, before the database is read.
	if !slices.Contains(figure.Kinds(), o.kind) {
		hint := ""
		if close := nearest(o.kind, figure.Kinds()); len(close) > 0 {
			hint = "Did you mean " + strings.Join(close, " or ") + "?"
		}
		return &usageError{err: fmt.Errorf("there is no figure %q; valid: %s", o.kind, strings.Join(figure.Kinds(), ", ")), hint: hint}
	}
	if _, err := figure.Format(o.output); err != nil {
		return &usageError{err: err}
	}
	a, err := s.analyse(ctx, o.study, o.base, o.mix)
	if err != nil {
		return err
	}
	f, err := figure.Draw(o.kind, a.curves, a.observations, figure.Options{Title: o.title})
	if err != nil {
		a.warn(s)
		if a.noBase != nil {
			return a.noBase // it says what to run
		}
		return &usageError{err: err}
	}
	if err := f.Save(o.output); err != nil {
		return err
	}
	s.note("%s: %s", o.output, f.Caption())
	a.warn(s)
	return nil
}
