package query

import (
	"context"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
)

// Proposal returns what an application for computing time says about a study's scaling. If nothing was measured, the
// proposal is nil and the analysis contains only the plan.
func (r *Reader) Proposal(ctx context.Context, o Wish, title string) (*report.Proposal, *Analysis, error) {
	of, a, err := r.reported(ctx, o)
	if of == nil {
		return nil, a, err
	}
	if err := a.Trainings(); err != nil {
		return nil, nil, err
	}
	hours, err := r.hours(a, o.Question)
	if err != nil {
		return nil, nil, err
	}
	db, err := r.Open()
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	p, err := of.Proposal(ctx, db, title, hours)
	return p, a, workspace.StoreError(err)
}

// hours returns how long the runs of an analysis hold GPUs, CPUs and nodes: their cost at one unit of currency for an
// hour of each.
func (r *Reader) hours(a *Analysis, o Question) ([]report.Hours, error) {
	list := []report.Hours{{Resource: "GPUs", Unit: "GPU-h"}, {Resource: "CPUs", Unit: "CPU-h"}, {Resource: "nodes", Unit: "node-h"}}
	for i, per := range []string{cost.PerGPU, cost.PerVCPU, cost.PerNode} {
		h := &list[i]
		tariff, err := workspace.NewTariff(&study.Site{Prices: []study.Price{{Per: per, Hour: 1, Currency: h.Unit}}}, "", "")
		if err != nil {
			return nil, err
		}
		var options cost.Options
		if a.design != nil {
			options.Confidence = a.design.Confidence
		}
		if !onlyRunTimes(a.Observations) {
			if h.Bill, err = tariff.Compare(a.Curves, a.Observations, o.Mix, o.Series, options); err != nil {
				return nil, err
			}
			continue
		}
		priced, _, err := tariff.Configurations(a.Observations, workspace.RunClock, measure.Measure{}, o.Mix)
		if err != nil {
			return nil, err
		}
		rows, err := cost.Compare(priced, options)
		if err != nil {
			return nil, err
		}
		h.Bill = &cost.Comparison{Rows: rows, Currency: h.Unit}
	}
	return list, nil
}
