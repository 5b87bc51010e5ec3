package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/cost/tradeoff"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// priced is a study's points with what they take and cost, for its figures.
type priced struct {
	rows     []tradeoff.Row
	options  tradeoff.Options
	currency string
}

// priced works out the cost of an analysis by the prices of a site file, of the
// work that says most: to the highest target that was reached, else an epoch,
// else a run; over the smallest worker count.
func (s *session) priced(a *analysis, study, siteFile string, mix bool) (*priced, error) {
	site, err := siteOf(study, siteFile)
	if err != nil {
		return nil, err
	}
	prices, err := sitePrices(site)
	if err != nil {
		return nil, err
	}
	if len(prices) == 0 {
		return nil, &usageError{err: errors.New("no prices are given; write [[prices]] into the site file and name it with --site FILE, or with study.site in the study's file")}
	}
	table, err := cost.NewTable(prices, "", cost.OnDemand)
	if err != nil {
		return nil, &usageError{err: fmt.Errorf("%s: %w", site.File, err)}
	}
	list, _, err := configurations(a.observations, costOptions{mix: mix, clock: "train"}, table, site)
	if err != nil {
		return nil, err
	}
	p := &priced{currency: table.Currency, options: tradeoff.Options{Work: usualWork(a)}}
	if len(list) > 0 {
		least := slices.MinFunc(list, func(a, b tradeoff.Configuration) int { return a.Workers - b.Workers }).Workers
		p.options.Baseline = []tradeoff.Condition{{Key: "workers", Value: fmt.Sprint(least)}}
	}
	if p.rows, err = tradeoff.Compare(list, p.options); err != nil {
		return nil, &usageError{err: err}
	}
	return p, nil
}

func usualWork(a *analysis) tradeoff.Work {
	var work tradeoff.Work
	for _, c := range a.curves {
		for _, p := range c.Points {
			for _, t := range p.Targets() {
				if target, _ := measure.Target(t.Name); t.Median != nil && (work.Target == nil || target > *work.Target) {
					work.Target = &target
				}
			}
		}
	}
	work.Epoch = work.Target == nil && !slices.ContainsFunc(a.observations, func(o scaling.Observation) bool { return o.Epochs == nil || *o.Epochs == 0 })
	return work
}

// against draws cost against time.
func (p *priced) against(o figure.Options) (*figure.Figure, error) {
	var list []figure.Priced
	for _, r := range p.rows {
		if r.Time != nil && r.Cost != nil {
			list = append(list, figure.Priced{Series: r.Series, Workers: r.Workers, Runs: r.Time.Runs, Seconds: r.Time.Value, Cost: r.Cost.Value,
				SecondsInterval: r.Time.Interval, CostInterval: r.Cost.Interval, Front: r.Front})
		}
	}
	return figure.DrawCost(list, p.options.Work.String(), p.currency, o)
}

// normalised draws time and cost over the baseline's.
func (p *priced) normalised(o figure.Options) (*figure.Figure, error) {
	series := map[string]bool{}
	for _, r := range p.rows {
		series[r.Series] = true
	}
	var list []figure.Relative
	for _, r := range p.rows {
		if r.TimeNormalised == nil && r.CostNormalised == nil {
			continue
		}
		one := figure.Relative{Name: workersText(r.Workers), Time: r.TimeNormalised, Cost: r.CostNormalised}
		if len(series) > 1 {
			one.Name = r.Series + ", " + one.Name
		}
		list = append(list, one)
	}
	base := p.options.Baseline[0].Key + "=" + p.options.Baseline[0].Value
	return figure.DrawNormalised(list, "the same with "+base+"; time and cost of "+p.options.Work.String(), o)
}
