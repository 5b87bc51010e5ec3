package query

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Report returns the contents of the report on a study: the answer, figures, tables and costs. If
// nothing was measured, the report is nil and the analysis contains only the plan.
func (r *Reader) Report(ctx context.Context, o Wish, title string) (*report.Report, *Analysis, error) {
	of, a, err := r.reported(ctx, o)
	if of == nil {
		return nil, a, err
	}
	db, err := r.Open()
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	page, err := of.Report(ctx, db, title)
	return page, a, workspace.StoreError(err)
}

// reported returns what a report needs; nil if nothing was measured.
func (r *Reader) reported(ctx context.Context, o Wish) (*report.ReportedStudy, *Analysis, error) {
	v, err := r.adviser(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	o.Picture = true
	a, err := r.Curves(ctx, o.Question)
	if err != nil || len(a.Observations) == 0 {
		return nil, a, err
	}
	of := &report.ReportedStudy{Name: a.Observations[0].Study, Observations: a.Observations, Curves: a.Curves, Warnings: a.Warnings, NoBase: a.NoBase, Kind: a.Kind,
		Program: "scalebench " + r.Version}
	if a.design != nil {
		of.Looks = len(a.design.Tests())
	}
	if of.Frames, err = r.frames(ctx, a, o.Question); err != nil {
		return nil, nil, err
	}
	if a.Kind.Advises != "" {
		advised := a
		if !a.Kind.Trains || a.Compared() != "" {
			asked := o.Question
			asked.Picture, asked.Measure = false, o.Measure
			if !a.Kind.Trains {
				asked.Measure = cmp.Or(o.Measure, a.Kind.Advises)
			}
			if advised, err = v.ask(ctx, asked); err != nil {
				return nil, nil, err
			}
		}
		of.Wish, of.Answered = v.wish, advised.Curves
		if of.Advised, err = v.advise(ctx, advised, o.Study); err != nil {
			return nil, nil, err
		}
	}
	if err := r.bill(ctx, of, a, o); err != nil {
		return nil, nil, err
	}
	if !a.Kind.Trains && o.Base == "" {
		of.NoBase = nil // NoBase is about the throughput, which this kind of workload is not judged by
	}
	return of, a, nil
}

// bill adds the study's costs to the report, computed as its kind of workload requires. Without
// prices it adds the reason instead; this is only an error if the user named a site file.
func (r *Reader) bill(ctx context.Context, of *report.ReportedStudy, a *Analysis, o Wish) error {
	switch {
	case a.Kind.Clock != "":
		if of.Bill, of.Unpriced = r.Priced(ctx, a, o.Question, o.Site, nil); o.Site != "" {
			return of.Unpriced
		}
	case a.Kind.Rate != "":
		return r.demand(ctx, of, o)
	case o.Site != "":
		return workspace.Errorf("--site: a report prices trainings and services only; `scalebench cost %s --clock job` says what these jobs cost", a.Study)
	}
	return nil
}

// demand adds the costs of a service against the demand to the report. It adds nothing unless there
// are prices, and runs that searched for the highest rate within the latency limit.
func (r *Reader) demand(ctx context.Context, of *report.ReportedStudy, o Wish) error {
	tariff, err := r.Prices(ctx, o.Study, o.Site)
	if errors.Is(err, workspace.ErrNoPrices) && o.Site == "" {
		return nil
	}
	if err != nil {
		return err
	}
	rates := o.Question
	rates.Measure, rates.Axis, rates.Picture, rates.Base = measure.RateWithinLimit, scaling.Workers, false, ""
	along, err := r.Curves(ctx, rates)
	if err != nil {
		return err
	}
	of.Demand, of.Currency = demands(along, tariff), tariff.Currency
	return nil
}

// frames returns the further sections of a report, each with measures along one axis: measures that
// the runs' programs report, and those of workloads other than trainings.
func (r *Reader) frames(ctx context.Context, a *Analysis, o Question) ([]report.ReportFrame, error) {
	measured := func(curves []scaling.Curve, list []measure.Measure) []measure.Measure {
		return slices.DeleteFunc(slices.Clone(list), func(m measure.Measure) bool {
			return !slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Measured(m.Name) })
		})
	}
	var list []report.ReportFrame
	add := func(id, title string, curves []scaling.Curve, of []measure.Measure) {
		if of = measured(curves, of); len(of) > 0 {
			list = append(list, report.ReportFrame{ID: id, Title: title, Curves: curves, Measures: of})
		}
	}
	if a.Kind.Trains {
		add("reported", "What the runs report", a.Curves, a.Reported())
		return list, nil
	}
	add("measures", "Measures", a.Curves, a.Measures)
	for _, frame := range measure.Frames() {
		if !a.Kind.Has(frame.Name) || slices.ContainsFunc(a.Measures, func(m measure.Measure) bool { return m.At == frame.At }) {
			continue
		}
		o.Measure, o.Base = frame.Name, ""
		along, err := r.Curves(ctx, o)
		if err != nil {
			return nil, err
		}
		add("along-"+Slug(along.Axis), "Along "+along.Axis, along.Curves, frame.Siblings())
	}
	return list, nil
}

// Slug converts a name to a form that is safe within a file name.
func Slug(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
}
