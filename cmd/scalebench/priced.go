package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/cost/tradeoff"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// priced works out the cost of an analysis by the prices of a site file. The
// zero work is the one that says most: to the highest target that was reached,
// else an epoch, else a run; nil conditions take the smallest worker count.
func (s *session) priced(a *analysis, o curveOptions, siteFile string, target float64) (*tradeoff.Comparison, error) {
	site, err := siteOf(o.study, siteFile)
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
	list, _, err := configurations(a.observations, costOptions{mix: o.mix, clock: "train"}, table, site)
	if err != nil {
		return nil, err
	}
	if names := o.series.Value(); len(names) > 0 {
		list = slices.DeleteFunc(list, func(c tradeoff.Configuration) bool { return !slices.Contains(names, c.Series) })
	}
	p := &tradeoff.Comparison{Currency: table.Currency, Options: tradeoff.Options{Work: usualWork(a), Baseline: a.baseline}}
	if target > 0 {
		p.Options.Work = tradeoff.Work{Target: &target}
	}
	if a.baseline == nil && len(list) > 0 {
		least := slices.MinFunc(list, func(a, b tradeoff.Configuration) int { return a.Workers - b.Workers }).Workers
		p.Options.Baseline = []scaling.Condition{{Key: scaling.Workers, Value: fmt.Sprint(least)}}
	}
	if p.Rows, err = tradeoff.Compare(list, p.Options); err != nil {
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
