package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/pricing"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/inquiry"
)

type costOptions struct {
	selection
	mix                    bool
	site, currency, market string
	baseline               cli.StringSlice
	per, clock, measure    string
	target                 targetFlag
}

func costCommand(s *session) *cli.Command {
	var o costOptions
	return &cli.Command{
		Name:      "cost",
		Usage:     "print the time and cost of runs, relative to a baseline",
		ArgsUsage: "[STUDY]",
		Description: "Without STUDY it uses the runs of all studies. Prices come from the site file\n" +
			"([[prices]]). Time and cost are medians over runs; from 6 runs on, brackets give\n" +
			"their confidence interval. In CSV and JSON: seconds, and the currency in a separate\n" +
			"column.",
		Flags: append(append([]cli.Flag{siteFlag(&o.site)}, o.flags()...),
			mixFlag(&o.mix),
			baselineFlag(&o.baseline),
			&cli.StringFlag{Name: "metric", Aliases: []string{"m"}, Destination: &o.measure, DefaultText: "the time", Usage: "cost against the `MEASURE`, such as throughput or one that runs report, with the Pareto front; for a service, the rate that prices its answers: rate_within_limit or requests_per_second"},
			&cli.StringFlag{Name: "per", Destination: &o.per, Value: "run", Usage: "time and cost per `WORK`: run or epoch"},
			&cli.GenericFlag{Name: "target", Value: &o.target, DefaultText: "no target", Usage: "time and cost until `TARGET` is reached, instead of --per: an accuracy such as 0.75, or loss=2"},
			&cli.StringFlag{Name: "clock", Destination: &o.clock, Value: "train", Usage: "`CLOCK` of the time: train (from the start of training) or job (from the scheduler)"},
			&cli.StringFlag{Name: "currency", Destination: &o.currency, DefaultText: "the first price's", Usage: "prices in `CURRENCY` only"},
			&cli.StringFlag{Name: "market", Destination: &o.market, Value: cost.OnDemand, Usage: "prices on `MARKET` only: " + strings.Join(cost.Markets, ", ")},
		),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runCost(c.Context, s, o)
		},
	}
}

func runCost(ctx context.Context, s *session, o costOptions) error {
	compare, err := o.compare()
	if err != nil {
		return err
	}
	tariff, err := s.tariffOf(ctx, o.study, o.site, o.currency, o.market)
	if err != nil {
		return err
	}
	compare.Energy = tariff.Energy
	observations, warnings, err := s.observations(ctx, o.selection)
	if err != nil {
		return err
	}
	clock := pricing.Clock(o.clock)
	if o.clock == "train" && len(observations) > 0 {
		switch kind := inquiry.Kind(observations); {
		case kind.Clock != "":
		case kind.Rate != "":
			if compare, err = o.million(compare, observations); err != nil {
				return err
			}
			clock = pricing.Million
		default:
			err := noTraining(observations[0].Study, kind)
			return &usageError{err: err, hint: "--clock job says what its jobs cost.\n" + hintFor(err)}
		}
	}
	if o.measure != "" && !compare.Work.Million {
		if compare.Measure, err = inquiry.Find(observations, o.measure); err != nil {
			return unanswered(err)
		}
		if at := compare.Measure.At; at != "" {
			return &usageError{err: fmt.Errorf("--metric %s: each run has many values of it (%s) but one cost; choose a measure with one value per run", o.measure, strings.Join(at.Keys(), ", ")),
				hint: "`" + appName + " scaling STUDY -m " + o.measure + "` prints them."}
		}
	}
	priced, more, err := tariff.Configurations(observations, clock, compare.Measure, o.mix)
	if err != nil {
		return err
	}
	rows, err := cost.Compare(priced, compare)
	if err != nil {
		return &usageError{err: err}
	}
	if err := s.printEither(tables.Cost(rows, tariff.Currency, compare), tables.CostData(rows, tariff.Currency, compare)); err != nil {
		return err
	}
	warnings = append(warnings, more...)
	for i, r := range rows {
		for _, w := range r.Warnings {
			if i == 0 || !slices.Contains(rows[0].Warnings, w) {
				warnings = append(warnings, w)
			}
		}
	}
	s.doubtAll(observations[0].Study, warnings...)
	return nil
}

// million is what a service costs: a million answers, at the largest rate within its
// limit where runs found one, else at the rates that were measured.
func (o *costOptions) million(compare cost.Options, runs []scaling.Observation) (cost.Options, error) {
	if o.per != "run" || o.target.Target != nil {
		return compare, usagef("--per and --target are for trainings; a service is priced per million answers")
	}
	has := func(name string) bool {
		return slices.ContainsFunc(runs, func(r scaling.Observation) bool {
			return slices.ContainsFunc(r.Places, func(p measure.Place) bool { _, ok := p.Values[name]; return ok })
		})
	}
	rates := []string{measure.RateWithinLimit, measure.RequestsPerSecond}
	name := o.measure
	for _, rate := range rates {
		if name == "" && has(rate) {
			name = rate
		}
	}
	switch {
	case name != "" && !slices.Contains(rates, name):
		return compare, usagef("--metric %s is not a rate of answers; a service is priced per million of them: %s", name, strings.Join(rates, ", "))
	case name == "" || !has(name):
		return compare, &usageError{err: fmt.Errorf("no run of study %q has %s; cost needs it to price a million answers", runs[0].Study, cmp.Or(name, "a rate of answers")),
			hint: fmt.Sprintf("`%s scaling %s` says why runs found none; a limit such as workload.limit = { p95 = \"50ms\" } makes them search the largest rate within it.", appName, runs[0].Study)}
	}
	compare.Work.Million = true
	var err error
	compare.Measure, err = measure.Find(name)
	return compare, err
}

// compare is what the options ask of package tradeoff.
func (o *costOptions) compare() (cost.Options, error) {
	var t cost.Options
	switch {
	case o.per != "run" && o.per != "epoch":
		return t, usagef("--per %q is not known; valid: run, epoch", o.per)
	case o.clock != string(pricing.Train) && o.clock != string(pricing.Job):
		return t, usagef("--clock %q is not known; valid: train, job", o.clock)
	case !slices.Contains(cost.Markets, o.market):
		return t, usagef("--market %q is not known; valid: %s", o.market, strings.Join(cost.Markets, ", "))
	case o.target.Target != nil && o.per == "epoch":
		return t, usagef("--target and --per epoch cannot be combined")
	case o.target.Target != nil && o.clock == "job":
		return t, usagef("--target uses the training clock and cannot be combined with --clock job")
	}
	t.Work.Epoch = o.per == "epoch"
	if o.target.Target != nil {
		t.Work.Target = o.target.Target
	}
	var err error
	t.Baseline, err = conditions("--baseline", o.baseline)
	return t, err
}

// tariffOf returns the prices of the site file that is named, or of the study's own.
func (s *session) tariffOf(ctx context.Context, studyArg, siteFile, currency, market string) (*pricing.Tariff, error) {
	site, err := s.siteOf(ctx, studyArg, siteFile)
	if err != nil {
		return nil, err
	}
	tariff, err := pricing.New(site, currency, market)
	switch {
	case errors.Is(err, pricing.ErrNone):
		where := "the site file and name it with --site FILE, or with study.site in the study's file"
		if site.File != "" {
			where = workspace.Near(site.File) + ", the study's site file"
		}
		return nil, &usageError{err: err, hint: "Write [[prices]] into " + where + "."}
	case err != nil:
		return nil, &usageError{err: err}
	}
	return tariff, nil
}

// pricesFor is tariffOf with an error of one sentence, for reports and figures.
func (s *session) pricesFor(ctx context.Context, studyArg, siteFile string) (*pricing.Tariff, error) {
	tariff, err := s.tariffOf(ctx, studyArg, siteFile, "", cost.OnDemand)
	if use := (*usageError)(nil); errors.Is(err, pricing.ErrNone) && errors.As(err, &use) {
		err = &usageError{err: fmt.Errorf("%w; w%s", pricing.ErrNone, strings.Trim(use.hint, "W."))}
	}
	return tariff, err
}

// priced sets the points of an analysis side by side by time and cost, to a target
// if that is above 0.
func (s *session) priced(ctx context.Context, a *analysis, o curveOptions, siteFile string, target *measure.Target) (*cost.Comparison, error) {
	tariff, err := s.pricesFor(ctx, o.study, siteFile)
	if err != nil {
		return nil, err
	}
	bill, err := tariff.Compare(a.Curves, a.Observations, pricing.Question{Mix: o.mix, Series: o.series.Value(), Target: target, Baseline: a.Baseline})
	if err != nil {
		return nil, &usageError{err: err}
	}
	return bill, nil
}
