package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/spelling"
	"github.com/scalebench/scalebench/metrics/cost/tradeoff"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/content"
	"github.com/scalebench/scalebench/metrics/scaling"
)

type plotOptions struct {
	curveOptions
	kind, output, title, site string
	by                        string // parameter of panels; "" for one plot
	target                    float64
}

func plotCommand(s *session) *cli.Command {
	var o plotOptions
	return &cli.Command{
		Name:      "plot",
		Usage:     "draw " + strings.Join(figure.Names(), ", ") + ", or any measure",
		ArgsUsage: "FIGURE STUDY",
		Description: "STUDY is a study's name or the path of its file. FIGURE is one of\n" +
			figureHelp() +
			"or any measure, such as step_p95, to_0.75 or one that runs report: against\n" +
			"workers, or -x KEY. Numbers give lines, words columns; with --baseline, how many\n" +
			"times better.\n" +
			"Every run is a dot; medians have an interval where there are runs enough for one.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Destination: &o.output,
				Usage: "write `FILE`, whose extension says the format: " + strings.Join(figure.Formats(), ", ")},
			siteFlag(&o.site), o.axisFlag(),
			&cli.StringFlag{Name: "by", Usage: "a panel for each value of the parameter `KEY`, such as framework, all with the same axes", Destination: &o.by},
			&cli.Float64Flag{Name: "target", Usage: "the time to accuracy `T`, a fraction, and its cost; FIGURE is tta, cost or normalised", Destination: &o.target},
			baselineFlag(&o.baseline),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` above the plot", Destination: &o.title},
		}, o.flags()...),
		Action: func(c *cli.Context) error {
			o.kind, o.study = c.Args().Get(0), c.Args().Get(1)
			return runPlot(c.Context, s, o)
		},
	}
}

// figureHelp is a line a figure.
func figureHelp() string {
	var b strings.Builder
	for _, k := range figure.Kinds() {
		fmt.Fprintf(&b, "  %-11s %s\n", k.Name, k.About)
	}
	return b.String()
}

func runPlot(ctx context.Context, s *session, o plotOptions) error {
	// All that can be refused is, before the database is read.
	money := o.kind == "cost" || o.kind == "normalised"
	switch {
	case o.target != 0 && !(o.target > 0 && o.target <= 1):
		return usagef("--target %g is no accuracy; want a fraction, like 0.75", o.target)
	case o.kind == "tta" && o.target > 0:
		o.kind = measure.To(o.target).Name
	case o.target > 0 && !money:
		return usagef("--target is for the figures tta, cost and normalised")
	case o.kind == "busbw" && len(o.baseline.Value()) > 0:
		return usagef("--baseline is for measures, cost and normalised")
	case o.axis != "" && money:
		return usagef("--axis is for measures; %s has an axis of its own, and --by KEY gives each value a panel", o.kind)
	}
	if _, err := figure.Format(o.output); err != nil {
		return &usageError{err: err}
	}
	if o.kind == "busbw" {
		return s.plotBusBW(ctx, o)
	}
	a, err := s.analyse(ctx, o.curveOptions)
	if err != nil {
		return err
	}
	if err := a.drawable(o.kind); err != nil {
		return err
	}
	if _, named := figure.Find(o.kind); named && a.nothing != nil {
		return a.nothing
	}
	f, err := s.draw(ctx, o, a)
	if err != nil {
		a.warn(s)
		if k, _ := figure.Find(o.kind); a.noBase != nil && k.OfCurves() {
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

// drawable refuses a name that is neither a figure nor a measure.
func (a *analysis) drawable(kind string) error {
	_, err := scaling.Find(a.curves, kind)
	switch {
	case err != nil && a.baseline != nil && kind != "cost" && kind != "normalised" && slices.Contains(figure.Names(), kind):
		return usagef("--baseline is for measures, cost and normalised; %s has its base on the axis: --base", kind)
	case err == nil || slices.Contains(figure.Names(), kind):
		return nil
	}
	measures := a.measures()
	return &usageError{err: fmt.Errorf("unknown figure %q; choose one of %s, or a measure: %s", kind, strings.Join(figure.Names(), ", "), strings.Join(measures, ", ")),
		hint: spelling.Hint(kind, slices.Compact(slices.Sorted(slices.Values(append(figure.Names(), measures...)))))}
}

func (s *session) draw(ctx context.Context, o plotOptions, a *analysis) (*figure.Figure, error) {
	options := figure.Options{Title: o.title}
	if a.baseline != nil {
		options.Over = tradeoff.Options{Baseline: a.baseline}.BaselineText()
	}
	by := ""
	if o.by != "" {
		var err error
		if by, err = axisKey("--by", o.by, a.observations, nil); err != nil {
			return nil, err
		}
	}
	switch {
	case o.kind == "ranks":
		db, err := s.openStore()
		if err != nil {
			return nil, err
		}
		defer db.Close()
		runs, err := content.RankSteps(ctx, db, a.curves)
		if err != nil {
			return nil, err
		}
		return figure.DrawRanks(runs, options)
	case o.kind == "cost" || o.kind == "normalised":
		bill, err := priced(a, o.curveOptions, o.site, o.target)
		if err != nil {
			return nil, err
		}
		if o.kind == "cost" {
			return figure.DrawCost(*bill, by, options)
		}
		return figure.DrawNormalised(*bill, by, options)
	case by != "":
		return figure.DrawBy(by, o.kind, a.curves, a.observations, options)
	}
	return figure.Draw(o.kind, a.curves, a.observations, options)
}
