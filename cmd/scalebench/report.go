package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/report/content"
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
		Description: "STUDY is a study's name or the path of its file. A page (.html) is one file that\n" +
			"needs no network; Markdown (.md) has its figures and data as files beside it.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Required: true, Destination: &o.output,
				Usage: "write `FILE`, whose extension says the format: " + strings.Join(report.Formats(), ", ")},
			siteFlag(&o.site),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` on top", DefaultText: "the study's name", Destination: &o.title},
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
	if _, err := report.Format(o.output); err != nil {
		return &usageError{err: err}
	}
	adviser, err := o.adviser()
	if err != nil {
		return err
	}
	a, err := s.trainings(ctx, o.curveOptions)
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
	of := content.Study{Name: a.Observations[0].Study, Observations: a.Observations, Curves: a.Curves, Warnings: a.Warnings, NoBase: a.noBase,
		Program: appName + " " + version.String()}
	if of.Advised, err = adviser.advise(a); err != nil {
		return err
	}
	if of.Bill, of.Unpriced = priced(a, o.curveOptions, o.site, 0); of.Unpriced != nil && o.site != "" {
		return of.Unpriced // prices were asked for
	}
	r, err := of.Report(ctx, db, o.title)
	if err != nil {
		return storeError(err)
	}
	files, err := r.Save(o.output)
	if err != nil {
		return err
	}
	s.note("%s: %s", strings.Join(files, ", "), r.Answer.Lead)
	a.warn(s)
	return nil
}
