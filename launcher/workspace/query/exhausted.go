package query

import (
	"context"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
	"github.com/scalebench/scalebench/metrics/store"
)

// exhausted returns the points of a study at which a run failed because memory ran out.
func (r *Reader) exhausted(ctx context.Context, o Question) ([]scaling.Planned, error) {
	in, err := r.resources(ctx, o)
	return in.unfit, err
}

// exhaustedPoints returns the points at which at least one run failed because memory ran
// out.
func exhaustedPoints(ctx context.Context, db *store.Store, filter store.Filter) (list []scaling.Planned, err error) {
	filter.Statuses = []metrics.Status{metrics.OutOfMemory}
	rows, err := db.Runs(ctx, filter)
	if err == nil {
		err = db.Describe(ctx, rows)
	}
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	known := map[string]bool{}
	for _, r := range rows {
		if !known[r.Point] {
			known[r.Point] = true
			list = append(list, scaling.Planned{Point: r.Point, Framework: r.Framework, Workers: r.Workers, Parameters: r.Parameters})
		}
	}
	return list, nil
}

// unfitPoints returns the points at which a run failed because memory ran out and no run
// (in obs) has a good result.
func unfitPoints(ctx context.Context, db *store.Store, filter store.Filter, obs []scaling.Observation) ([]scaling.Planned, error) {
	list, err := exhaustedPoints(ctx, db, filter)
	return slices.DeleteFunc(list, func(p scaling.Planned) bool {
		return slices.ContainsFunc(obs, func(o scaling.Observation) bool { return o.Point == p.Point })
	}), err
}

// doNotFit returns a sentence that names the points without results because memory ran
// out.
func doNotFit(unfit []scaling.Planned) string {
	var list []string
	for _, p := range unfit {
		layout := map[string]any{}
		for _, key := range predict.Keys() {
			if v := predict.Parameter(p.Parameters, key); v != nil {
				layout[key] = v
			}
		}
		words := []string{p.Framework, predict.Text(layout), "on " + number.Count(p.Workers, "worker")}
		list = append(list, strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " "))
	}
	slices.Sort(list)
	return "out of memory, hence without figures: " + strings.Join(slices.Compact(list), ", ")
}
