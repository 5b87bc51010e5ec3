package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/cost/tradeoff"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

type costOptions struct {
	selection
	mix                    bool
	site, currency, market string
	baseline               cli.StringSlice
	per, clock             string
	target                 float64 // 0: none
}

func costCommand(s *session) *cli.Command {
	var o costOptions
	return &cli.Command{
		Name:      "cost",
		Usage:     "print what runs took and what they cost, over a baseline's",
		ArgsUsage: "[STUDY]",
		Description: "STUDY is a study's name or the path of its file; without one it is about every\n" +
			"run that fits. Prices stand in the site file ([[prices]]). Medians over runs, with\n" +
			"their confidence interval in brackets where there are runs enough for one. In CSV\n" +
			"and JSON: seconds, and the currency that stands beside.",
		Flags: append(append([]cli.Flag{siteFlag(&o.site)}, o.flags()...),
			mixFlag(&o.mix),
			baselineFlag(&o.baseline),
			&cli.StringFlag{Name: "per", Destination: &o.per, Value: "run", Usage: "time and cost of a `WORK`: run or epoch"},
			&cli.Float64Flag{Name: "target", Destination: &o.target, DefaultText: "no target", Usage: "time and cost until `ACCURACY` is reached, in place of --per"},
			&cli.StringFlag{Name: "clock", Destination: &o.clock, Value: "train", Usage: "`CLOCK` of the time: train, from the first step on, or job, as the scheduler has it"},
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
	site, err := siteOf(o.study, o.site)
	if err != nil {
		return err
	}
	prices, err := sitePrices(site)
	if err != nil {
		return err
	}
	if len(prices) == 0 {
		return &usageError{err: errors.New("no prices are given"), hint: "Write [[prices]] into the site file and name it with --site FILE, or with study.site in the study's file."}
	}
	priceTable, err := cost.NewTable(prices, o.currency, o.market)
	if err != nil {
		return &usageError{err: fmt.Errorf("%s: %w", site.File, err)}
	}
	observations, warnings, err := s.observations(ctx, o.selection)
	if err != nil {
		return err
	}
	if o.clock == "train" && len(observations) > 0 {
		if err := noTraining(observations[0].Study, observations); err != nil {
			return &usageError{err: err, hint: "--clock job says what its jobs cost.\n" + hintFor(err)}
		}
	}
	priced, more, err := configurations(observations, o, priceTable, site)
	if err != nil {
		return err
	}
	rows, err := tradeoff.Compare(priced, compare)
	if err != nil {
		return &usageError{err: err}
	}
	print := costTable(rows, priceTable.Currency, compare)
	if s.format == table.FormatCSV || s.format == table.FormatJSON {
		print = costData(rows, priceTable.Currency, compare.Work)
	}
	if err := s.print(print); err != nil {
		return err
	}
	for _, w := range append(warnings, more...) {
		s.warn("%s", w)
	}
	for i, r := range rows {
		for _, w := range r.Warnings {
			if i == 0 || !slices.Contains(rows[0].Warnings, w) {
				s.warn("%s", w)
			}
		}
	}
	return nil
}

// compare is what the options ask of package tradeoff.
func (o *costOptions) compare() (tradeoff.Options, error) {
	var t tradeoff.Options
	switch {
	case o.per != "run" && o.per != "epoch":
		return t, usagef("--per %q is not known; valid: run, epoch", o.per)
	case o.clock != "train" && o.clock != "job":
		return t, usagef("--clock %q is not known; valid: train, job", o.clock)
	case !slices.Contains(cost.Markets, o.market):
		return t, usagef("--market %q is not known; valid: %s", o.market, strings.Join(cost.Markets, ", "))
	case !(o.target >= 0 && o.target <= 1):
		return t, usagef("--target %g is no accuracy; want a fraction, like 0.75", o.target)
	case o.target > 0 && o.per == "epoch":
		return t, usagef("--target and --per epoch exclude each other")
	case o.target > 0 && o.clock == "job":
		return t, usagef("--target is on the training clock; --clock job does not go with it")
	}
	t.Work.Epoch = o.per == "epoch"
	if o.target > 0 {
		t.Work.Target = &o.target
	}
	var err error
	t.Baseline, err = conditions(o.baseline)
	return t, err
}

// siteOf is the site file that is named, or the one that a study's file names.
func siteOf(studyArg, site string) (*study.Site, error) {
	if site == "" && filepath.Ext(studyArg) == ".toml" {
		st, err := study.Load(studyArg, framework.ForStudy())
		if err != nil {
			return nil, &usageError{err: err}
		}
		site = st.Site
	}
	if site == "" {
		return study.DefaultSite(), nil
	}
	loaded, err := study.LoadSite(site)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return loaded, nil
}

// configurations are the runs by series and worker count, each with its price.
// The warnings are on what the series are made of.
func configurations(observations []scaling.Observation, o costOptions, table *cost.Table, site *study.Site) ([]tradeoff.Configuration, []string, error) {
	curves, err := scaling.Analyse(observations, scaling.Options{Mix: o.mix})
	var noBase *scaling.NoBaseError
	if err != nil && !errors.As(err, &noBase) { // nothing is divided by workers here
		return nil, nil, err
	}
	byRun := map[string]*scaling.Observation{}
	for i := range observations {
		byRun[observations[i].Run] = &observations[i]
	}
	var list []tradeoff.Configuration
	var warnings []string
	for _, c := range curves {
		for _, w := range c.FingerprintWarnings {
			warnings = append(warnings, c.Series+": "+w)
		}
		for _, p := range c.Points {
			labels := maps.Clone(c.Parameters)
			labels["framework"] = c.Framework
			config := tradeoff.Configuration{Series: c.Series, Workers: p.Workers, Parameters: labels}
			for _, r := range p.Runs {
				config.Runs = append(config.Runs, pricedRun(byRun[r.ID], o.clock, table, site))
			}
			list = append(list, config)
		}
	}
	return list, warnings, nil
}

// pricedRun is one run with its rate. Labels are its parameters, what the
// scheduler says of it, and what it ran on.
func pricedRun(v *scaling.Observation, clock string, table *cost.Table, site *study.Site) tradeoff.Run {
	labels := maps.Clone(v.Parameters)
	for field, value := range v.Fingerprint {
		if _, taken := labels[field]; !taken && value != "" {
			labels[field] = value
		}
	}
	for key, value := range map[string]string{"cluster": v.Cluster, "study": v.Study} {
		if value != "" {
			labels[key] = value
		}
	}
	if v.Partition != "" {
		sitePartition(labels, site, v.Partition)
	}
	run := tradeoff.Run{ID: v.Run, Targets: map[float64]float64{}}
	for _, target := range v.Targets() {
		run.Targets[target] = v.Values[measure.To(target).Name]
	}
	if v.Epochs != nil {
		run.Epochs = *v.Epochs
	}
	for _, e := range v.Evaluations { // all that some logs say of epochs
		run.Epochs = max(run.Epochs, e.Epoch)
	}
	if n, ok := labels["epochs"].(int64); ok && run.Epochs == 0 && n > 0 && n < 1<<31 { // an import says it
		run.Epochs = int(n)
	}
	seconds := v.Known(measure.TrainSeconds)
	if clock == "job" {
		seconds = v.JobSeconds
	}
	if seconds != nil {
		run.Seconds = *seconds
	}
	rate, err := table.Rate(useOf(v.Workers, v.Nodes, labels))
	if err != nil {
		run.WhyNoRate = err.Error()
		return run
	}
	run.Rate = &rate
	return run
}
