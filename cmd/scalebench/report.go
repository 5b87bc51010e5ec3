package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher/pricing"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
)

type reportOptions struct {
	adviseOptions
	output, title string
}

func reportCommand(s *session) *cli.Command {
	var o reportOptions
	return &cli.Command{
		Name:      "report",
		Usage:     "write a page: the answer, figures, tables, method, provenance, data",
		ArgsUsage: "STUDY",
		Description: "A page (.html) is one file that needs no network. Markdown (.md) has its figures and\n" +
			"data in files next to it.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.output, DefaultText: "STUDY.html",
				Usage: "write `FILE`; its extension gives the format: " + strings.Join(report.Formats(), ", ")},
			siteFlag(&o.site),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` as the heading", DefaultText: "the study's name", Destination: &o.title},
		}, append(o.flags(), o.wishFlags()...)...),
		Action: func(c *cli.Context) error {
			o.study, o.market = c.Args().First(), cost.OnDemand
			if err := wished(c); err != nil {
				return err
			}
			return runReport(c.Context, s, o)
		},
	}
}

func runReport(ctx context.Context, s *session, o reportOptions) error {
	if o.output != "" {
		if _, err := report.Format(o.output); err != nil {
			return &usageError{err: err}
		}
	}
	adviser, err := o.adviser(ctx, s)
	if err != nil {
		return err
	}
	o.picture = true
	a, err := s.analyse(ctx, o.curveOptions)
	if err != nil {
		return err
	}
	if len(a.Observations) == 0 { // planned, and nothing measured
		a.warn(s)
		return a.noBase
	}
	db, err := s.openStore()
	if err != nil {
		return err
	}
	defer db.Close()
	of := tables.ReportedStudy{Name: a.Observations[0].Study, Observations: a.Observations, Curves: a.Curves, Warnings: a.Warnings, NoBase: a.NoBase, Kind: a.Kind,
		Program: appName + " " + version.String()}
	if of.Frames, err = s.frames(ctx, a, o.curveOptions); err != nil {
		return err
	}
	if a.Kind.Advises != "" {
		advised := a
		if !a.Kind.Trains {
			asked := o.curveOptions
			asked.picture, asked.measure = false, cmp.Or(o.measure, a.Kind.Advises)
			if advised, err = adviser.ask(ctx, s, asked); err != nil {
				return err
			}
		}
		of.Wish, of.Answered = adviser.wish, advised.Curves
		if of.Advised, err = adviser.advise(ctx, s, advised, o.study); err != nil {
			return err
		}
	}
	if err := s.billOf(ctx, &of, a, o); err != nil {
		return err
	}
	if !a.Kind.Trains && o.base == "" {
		of.NoBase = nil // what it says is of throughput
	}
	r, err := of.Report(ctx, db, o.title)
	if err != nil {
		return workspace.StoreError(err)
	}
	if o.output == "" {
		o.output = a.study + ".html"
	}
	files, err := r.Save(o.output, s.put)
	if err != nil {
		return err
	}
	s.note("%s: %s", strings.Join(files, ", "), r.Answer.Lead)
	a.warn(s)
	return nil
}

// billOf prices the study as its kind of workload is priced. Without prices it says why
// not, unless they were asked for.
func (s *session) billOf(ctx context.Context, of *tables.ReportedStudy, a *analysis, o reportOptions) error {
	switch {
	case a.Kind.Clock != "":
		if of.Bill, of.Unpriced = s.priced(ctx, a, o.curveOptions, o.site, nil); o.site != "" {
			return of.Unpriced
		}
	case a.Kind.Rate != "":
		return s.demandOf(ctx, of, o)
	case o.site != "":
		return usagef("--site: a report prices trainings and services only; `%s cost %s --clock job` says what these jobs cost", appName, a.study)
	}
	return nil
}

// demandOf prices a service over the demand, where there are prices and runs that found
// a largest rate within their limit.
func (s *session) demandOf(ctx context.Context, of *tables.ReportedStudy, o reportOptions) error {
	tariff, err := s.pricesFor(ctx, o.study, o.site)
	if errors.Is(err, pricing.ErrNone) && o.site == "" {
		return nil
	}
	if err != nil {
		return err
	}
	rates := o.curveOptions
	rates.measure, rates.axis, rates.picture, rates.base = measure.RateWithinLimit, scaling.Workers, false, ""
	along, err := s.analyse(ctx, rates)
	if err != nil {
		return err
	}
	of.Demand, of.Currency = demands(along, tariff), tariff.Currency
	return nil
}

// frames are the measures that a report has beside those of a training: what runs
// report, and for another kind of workload what it is about, along the axis of each.
func (s *session) frames(ctx context.Context, a *analysis, o curveOptions) ([]tables.ReportFrame, error) {
	measured := func(curves []scaling.Curve, list []measure.Measure) []measure.Measure {
		return slices.DeleteFunc(slices.Clone(list), func(m measure.Measure) bool {
			return !slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Measured(m.Name) })
		})
	}
	var list []tables.ReportFrame
	add := func(id, title string, curves []scaling.Curve, of []measure.Measure) {
		if of = measured(curves, of); len(of) > 0 {
			list = append(list, tables.ReportFrame{ID: id, Title: title, Curves: curves, Measures: of})
		}
	}
	if a.Kind.Trains {
		add("reported", "What the runs report", a.Curves, a.Reported())
		return list, nil
	}
	add("measures", "Measures", a.Curves, a.Measures)
	for _, frame := range measure.Frames() {
		if !a.Kind.Has(frame.Name) || slices.ContainsFunc(a.Measures, func(m measure.Measure) bool { return m.At == frame.At }) {
			continue
		}
		o.measure, o.base = frame.Name, ""
		along, err := s.analyse(ctx, o)
		if err != nil {
			return nil, err
		}
		add("along-"+slug(along.Axis), "Along "+along.Axis, along.Curves, frame.Beside())
	}
	return list, nil
}

// slug is a name as part of a file's.
func slug(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}
