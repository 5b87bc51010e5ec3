package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/report"
)

type costOptions struct {
	query.Costs
	baseline cli.StringSlice
	target   targetFlag
}

func costCommand(s *session) *cli.Command {
	var o costOptions
	return &cli.Command{
		Name:      "cost",
		Usage:     "print the time and cost of runs, relative to a baseline",
		ArgsUsage: "[STUDY]",
		Description: "Without STUDY it uses the runs of all studies. Prices come from the site file\n" +
			"([[prices]]).",
		Flags: append(append([]cli.Flag{siteFlag(&o.Site)}, selectionFlags(&o.Selection)...),
			mixFlag(&o.Mix),
			baselineFlag(&o.baseline),
			&cli.StringFlag{Name: "measure", Aliases: []string{"m"}, Destination: &o.Measure, DefaultText: "the time", Usage: "compare the cost with the `MEASURE` and show the Pareto front; services: the rate for the cost of an answer, rate_within_limit or requests_per_second"},
			&cli.StringFlag{Name: "per", Destination: &o.Per, Value: "run", Usage: "time and cost per `WORK`: run or epoch"},
			&cli.GenericFlag{Name: "target", Value: &o.target, DefaultText: "no target", Usage: "time and cost until `TARGET` is reached, instead of --per: an accuracy such as 0.75, or loss=2"},
			&cli.StringFlag{Name: "clock", Destination: &o.Clock, Value: "train", Usage: "`CLOCK` to use: train (from the start of training) or job (from the job's start to its end)"},
			&cli.StringFlag{Name: "currency", Destination: &o.Currency, DefaultText: "the first price's", Usage: "prices in `CURRENCY` only"},
			&cli.StringFlag{Name: "market", Destination: &o.Market, Value: cost.OnDemand, Usage: "prices on `MARKET` only: " + strings.Join(cost.Markets, ", ")},
		),
		Action: func(c *cli.Context) error {
			o.Study = c.Args().First()
			return runCost(c.Context, s, o)
		},
	}
}

func runCost(ctx context.Context, s *session, o costOptions) error {
	o.Baseline, o.Target = o.baseline.Value(), o.target.Target
	bill, err := s.reader().Cost(ctx, o.Costs)
	if err != nil {
		return err
	}
	if err := s.printEither(report.Cost(bill.Rows, bill.Currency, bill.Options), report.CostData(bill.Rows, bill.Currency, bill.Options)); err != nil {
		return err
	}
	s.warnStudySorted(bill.Study, bill.Warnings...)
	return nil
}
