package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/report"
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
			siteFlag(&o.wish.Site),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` as the heading", DefaultText: "the study's name", Destination: &o.title},
		}, append(o.flags(), o.wishFlags()...)...),
		Action: func(c *cli.Context) error {
			o.Study, o.wish.Market = c.Args().First(), cost.OnDemand
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
	page, a, err := s.reader().Report(ctx, o.asked(), o.title)
	if err != nil {
		return err
	}
	if page == nil { // planned, but nothing measured
		s.warnOn(a, false)
		return a.BaseError
	}
	files, err := page.Save(cmp.Or(o.output, a.Study+".html"), s.put)
	if err != nil {
		return err
	}
	s.note("%s: %s", strings.Join(files, ", "), page.Answer.Lead)
	s.warnOn(a, false)
	return nil
}
