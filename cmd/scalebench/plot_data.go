package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/inquiry"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
)

// pictured is what a figure is drawn from, and what belongs to it.
type pictured struct {
	data     figure.Data
	options  figure.Options
	name     string    // of the study or run, at the start of the file's name
	analysis *analysis // nil for figures of something else
	warnings []string
}

// inputs reads what each input of a figure is. With an error it returns what was read
// until then, whose warnings are printed, or nil.
var inputs = map[figure.Input]func(context.Context, *session, plotOptions) (*pictured, error){
	figure.OfCurves:      pictureCurves,
	figure.OfRanks:       pictureRanks,
	figure.OfPrices:      picturePrices,
	figure.OfPredictions: picturePredictions,
	figure.OfResources:   pictureResources,
	figure.OfRun:         pictureRun,
}

// pictureCurves reads the curves of a preset, of a measure, or of several measures.
func pictureCurves(ctx context.Context, s *session, o plotOptions) (*pictured, error) {
	k, named := figure.Find(o.kind)
	if named && o.axis == "" && len(o.baseline.Value()) == 0 {
		o.measure, o.shown = k.Measure, k.Shown
	} else {
		o.measure = o.kind // also of a preset's name, along another axis or over a baseline
		if _, err := measure.Find(o.kind); named && err != nil {
			o.measure = ""
		}
	}
	several := strings.Contains(o.kind, ",")
	if several {
		if len(o.baseline.Value()) > 0 {
			return nil, usagef("--baseline is for one measure")
		}
		o.measure, _, _ = strings.Cut(o.kind, ",")
	}
	o.picture, o.prices = true, &o.site
	a, err := s.analyse(ctx, o.curveOptions)
	if err == nil && several {
		_, err = figure.Together(o.kind, func(name string) (measure.Measure, error) { return inquiry.Find(a.Observations, name) })
		if unknown := (*inquiry.UnknownMeasure)(nil); err != nil && !errors.As(err, &unknown) {
			return nil, &usageError{err: err}
		}
	}
	if unknown := (*inquiry.UnknownMeasure)(nil); errors.As(err, &unknown) {
		return nil, undrawable(unknown)
	}
	if err != nil {
		return nil, err
	}
	p := &pictured{data: figure.Data{Curves: a.Curves, Observations: a.Observations}, name: a.study, analysis: a}
	if k.Demand && a.Kind.Rate != "" {
		return p, nil // it has other options
	}
	if named {
		if err := a.drawable(k, o.measure); err != nil {
			return nil, err
		}
	}
	p.options, err = a.options(k, o)
	return p, err
}

// drawable refuses a figure that the runs, or the options, are not for.
func (a *analysis) drawable(k figure.Preset, asked string) error {
	switch {
	case asked == "" && a.Baseline != nil && k.Input != figure.OfPrices:
		priced := figure.NamesOf(func(k figure.Preset) bool { return k.Input == figure.OfPrices })
		return usagef("--baseline is for measures, %s; use --base N for %s", listed(priced), k.Name)
	case asked != "" && a.Measures[0].At != "", k.Input == figure.OfPrices && a.Kind.Clock != "":
		return nil
	}
	return a.nothing()
}

// options are those of a figure of the curves.
func (a *analysis) options(k figure.Preset, o plotOptions) (figure.Options, error) {
	options := figure.Options{Title: o.title}
	if k.Target == figure.ShowsGoal {
		options.Goal = o.target.Target
	}
	if a.Against != nil {
		options.Against = *a.Against
	}
	if a.Baseline != nil {
		options.Over = cost.Options{Baseline: a.Baseline}.BaselineText()
	}
	if o.by == "" {
		return options, nil
	}
	of := measure.Measure{}
	if len(a.Measures) == 1 {
		of = a.Measures[0]
	}
	var err error
	if options.By, err = inquiry.Key(o.by, a.Observations, nil, of); err != nil {
		return options, fmt.Errorf("--by %w", err)
	}
	return options, nil
}

// pictureRanks reads the step times of every rank of a run of each curve.
func pictureRanks(ctx context.Context, s *session, o plotOptions) (*pictured, error) {
	p, err := pictureCurves(ctx, s, o)
	if err != nil {
		return p, err
	}
	db, err := s.openStore()
	if err != nil {
		return p, err
	}
	defer db.Close()
	p.data.Ranks, err = tables.RankSteps(ctx, db, p.analysis.Curves)
	return p, err
}

// picturePrices prices trainings, or a service by the demand.
func picturePrices(ctx context.Context, s *session, o plotOptions) (*pictured, error) {
	p, err := pictureCurves(ctx, s, o)
	if err != nil {
		return p, err
	}
	if p.analysis.Kind.Rate != "" {
		return pictureDemand(ctx, s, o)
	}
	p.data.Bill, err = s.priced(ctx, p.analysis, o.curveOptions, o.site, o.target.Target)
	return p, err
}

// pictureDemand prices a service along its replicas, by the largest rates within the limit.
func pictureDemand(ctx context.Context, s *session, o plotOptions) (*pictured, error) {
	switch {
	case o.by != "":
		return nil, usagef("--by: the cost of a service is one plot over the demand; --series or --where choose what is in it")
	case o.target.Target != nil:
		return nil, usagef("--target is for trainings, and %q is a service", o.study)
	case len(o.baseline.Value()) > 0:
		return nil, usagef("--baseline: the cost of a service is drawn over the demand, where the break-even says it; `%s cost %s --baseline KEY=VALUE` divides", appName, o.study)
	}
	o.measure, o.axis = measure.RateWithinLimit, scaling.Workers
	a, err := s.analyse(ctx, o.curveOptions)
	if err != nil {
		return nil, err
	}
	p := &pictured{name: a.study, analysis: a, options: figure.Options{Title: o.title}}
	tariff, err := s.pricesFor(ctx, o.study, o.site)
	if err != nil {
		return p, err
	}
	p.data.Demand, p.data.Currency = demands(a, tariff), tariff.Currency
	return p, nil
}

// picturePredictions reads the step times that predictions are made of.
func picturePredictions(ctx context.Context, s *session, o plotOptions) (*pictured, error) {
	a, list, err := s.layouts(ctx, o.curveOptions, "")
	if err != nil {
		return nil, err
	}
	p := &pictured{options: figure.Options{Title: o.title}, name: a.study, analysis: a}
	for _, one := range list {
		if one.refusal == nil {
			p.data.Predictions = append(p.data.Predictions, one.Series)
		}
	}
	return p, nil
}

// pictureResources reads what less of each resource keeps.
func pictureResources(ctx context.Context, s *session, o plotOptions) (*pictured, error) {
	name, err := workspace.StudyName(o.study)
	if err != nil {
		return nil, err
	}
	list, _, warnings, err := s.needs(ctx, o.curveOptions, sensitivity.Usual, nil)
	if err != nil {
		return nil, err
	}
	return &pictured{data: figure.Data{Resources: list, Amount: tables.Amount}, options: figure.Options{Title: o.title}, name: name, warnings: warnings}, nil
}

// pictureRun reads what one run used.
func pictureRun(ctx context.Context, s *session, o plotOptions) (*pictured, error) {
	db, err := s.openStore()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	d, err := db.Show(ctx, o.study)
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	run := figure.Run{ID: d.Run.ID, Nodes: d.Telemetry, Clock: d.TrainingClock}
	return &pictured{data: figure.Data{Run: run}, options: figure.Options{Title: o.title}, name: slug(d.Run.ID)}, nil
}
