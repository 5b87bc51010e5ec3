package main

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/table"
)

type reportOptions struct {
	adviseOptions
	output, title, purpose string
}

func reportCommand(s *session) *cli.Command {
	var o reportOptions
	return &cli.Command{
		Name:      "report",
		Usage:     "write a page: the answer, figures, tables, method, provenance, data",
		ArgsUsage: "STUDY",
		Description: "A page (.html) is one file that needs no network. Markdown (.md) has its figures and\n" +
			"data in files next to it.\n" +
			"\n" +
			"--for proposal writes a folder for an application for computing time: tables of strong\n" +
			"and weak scaling, figures, method, hardware and software, as LaTeX and as Markdown.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.output, DefaultText: "STUDY.html",
				Usage: "write `FILE`; its extension gives the format: " + strings.Join(report.Formats(), ", ")},
			&cli.StringFlag{Name: "for", Destination: &o.purpose, DefaultText: "a page", Usage: "write for a `PURPOSE`: proposal; --output then names a folder, by default STUDY-proposal"},
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
	switch o.purpose {
	case "":
	case "proposal":
		return runProposal(ctx, s, o)
	default:
		return usagef("--for %q is not known; valid: proposal", o.purpose)
	}
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
	extension := ".html"
	if s.format == table.FormatMarkdown {
		extension = ".md"
	}
	files, err := page.Save(cmp.Or(o.output, a.Study+extension), s.put)
	if err != nil {
		return err
	}
	s.note("%s: %s", strings.Join(files, ", "), page.Answer.Lead)
	s.warnOn(a, false)
	return nil
}

func runProposal(ctx context.Context, s *session, o reportOptions) error {
	if _, err := report.Format(o.output); err == nil {
		return usagef("--output %s: a proposal is a folder of several files; give a name without an extension", o.output)
	}
	p, a, err := s.reader().Proposal(ctx, o.asked(), o.title)
	if err != nil {
		return err
	}
	if p == nil { // planned, but nothing measured
		s.warnOn(a, false)
		return a.BaseError
	}
	dir := cmp.Or(o.output, a.Study+"-proposal")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	files, err := p.Save(dir, s.put)
	if err != nil {
		return err
	}
	s.note("%s", strings.Join(files, ", "))
	s.warnOn(a, false)
	return nil
}
