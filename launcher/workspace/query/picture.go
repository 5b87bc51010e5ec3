package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/report"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
)

// A Figure is a request to draw a figure (a plot).
type Figure struct {
	Question
	Kind, Title, Site string
	By                string          // parameter whose values get a panel each; "" for a single panel
	Target            *measure.Target // nil for the figure's default
}

// Picture returns the data of a figure. Even with an error, the result may be non-nil: its warnings
// still apply.
func (r *Reader) Picture(ctx context.Context, input figure.Input, o Figure) (*Picture, error) {
	return inputs[input](r, ctx, o)
}

// A Picture is the data that a figure is drawn from.
type Picture struct {
	Data     figure.Data
	Options  figure.Options
	Name     string    // name of the study or run, with which the name of the image file begins
	Analysis *Analysis // the curves; nil if the figure shows something else
	Warnings []string
}

// inputs has, for each kind of figure data, the function that reads it.
var inputs = map[figure.Input]func(*Reader, context.Context, Figure) (*Picture, error){
	figure.OfCurves:      (*Reader).pictureCurves,
	figure.OfRanks:       (*Reader).pictureRanks,
	figure.OfPrices:      (*Reader).picturePrices,
	figure.OfPredictions: (*Reader).picturePredictions,
	figure.OfResources:   (*Reader).pictureResources,
	figure.OfRun:         (*Reader).pictureRun,
	figure.OfLooks:       (*Reader).pictureLooks,
}

// pictureCurves reads the curves for a figure. The figure is named by a preset, such as speedup, or
// by one or more measures.
func (r *Reader) pictureCurves(ctx context.Context, o Figure) (*Picture, error) {
	k, named := figure.Find(o.Kind)
	if named && o.Axis == "" && len(o.Baseline) == 0 {
		o.Measure, o.Shown, o.Axis = k.Measure, k.Shown, k.Over
	} else {
		o.Measure = o.Kind // a preset's name also means the measure with that name if another axis or a baseline is given
		if _, err := measure.Find(o.Kind); named && err != nil {
			o.Measure = ""
		}
	}
	several := strings.Contains(o.Kind, ",")
	if several {
		if len(o.Baseline) > 0 {
			return nil, workspace.Errorf("--baseline is for one measure")
		}
		o.Measure, _, _ = strings.Cut(o.Kind, ",")
	}
	o.Picture, o.Prices = true, &o.Site
	a, err := r.Curves(ctx, o.Question)
	if err == nil && several {
		_, err = figure.Together(o.Kind, func(name string) (measure.Measure, error) { return scaling.FindMeasure(a.Observations, name) })
		if unknown := (*scaling.UnknownMeasure)(nil); err != nil && !errors.As(err, &unknown) {
			return nil, &workspace.Error{Err: err}
		}
	}
	if unknown := (*scaling.UnknownMeasure)(nil); errors.As(err, &unknown) {
		return nil, undrawable(unknown)
	}
	if err != nil {
		return nil, err
	}
	p := &Picture{Data: figure.Data{Curves: a.Curves, Observations: a.Observations}, Name: a.Study, Analysis: a}
	if k.Demand && a.Kind.Rate != "" {
		return p, nil // the caller sets the options
	}
	if named {
		if err := a.drawable(k, o.Measure); err != nil {
			return nil, err
		}
	}
	p.Options, err = a.options(k, o)
	return p, err
}

// drawable returns an error if the figure cannot be drawn from these runs or with these options.
func (a *Analysis) drawable(k figure.Preset, asked string) error {
	switch {
	case asked == "" && a.Baseline != nil && k.Input != figure.OfPrices:
		priced := figure.NamesOf(func(k figure.Preset) bool { return k.Input == figure.OfPrices })
		return workspace.Errorf("--baseline is for measures, %s; use --base N for %s", number.List(priced, "and"), k.Name)
	case asked != "" && a.Measures[0].At != "", k.Input == figure.OfPrices && a.Kind.Clock != "":
		return nil
	}
	return a.Trainings()
}

// options returns the options with which a figure of curves is drawn.
func (a *Analysis) options(k figure.Preset, o Figure) (figure.Options, error) {
	options := figure.Options{Title: o.Title}
	if k.Target == figure.ShowsGoal {
		options.Goal = o.Target
	}
	if a.Against != nil {
		options.Against = *a.Against
	}
	if a.Baseline != nil {
		options.Over = cost.Options{Baseline: a.Baseline}.BaselineText()
	}
	if o.By == "" {
		return options, nil
	}
	of := measure.Measure{}
	if len(a.Measures) == 1 {
		of = a.Measures[0]
	}
	var err error
	if options.By, err = scaling.KeyNamed(o.By, a.Observations, nil, of); err != nil {
		return options, fmt.Errorf("--by %w", err)
	}
	return options, nil
}

// pictureRanks reads, for each curve, the step times of every rank of one run.
func (r *Reader) pictureRanks(ctx context.Context, o Figure) (*Picture, error) {
	p, err := r.pictureCurves(ctx, o)
	if err != nil {
		return p, err
	}
	db, err := r.Open()
	if err != nil {
		return p, err
	}
	defer db.Close()
	p.Data.Ranks, err = report.RankSteps(ctx, db, p.Analysis.Curves)
	return p, err
}

// picturePrices reads the costs of trainings, or for a service its costs against the demand
// (requests/s).
func (r *Reader) picturePrices(ctx context.Context, o Figure) (*Picture, error) {
	p, err := r.pictureCurves(ctx, o)
	if err != nil {
		return p, err
	}
	if p.Analysis.Kind.Rate != "" {
		return r.pictureDemand(ctx, o)
	}
	p.Data.Bill, err = r.Priced(ctx, p.Analysis, o.Question, o.Site, o.Target)
	return p, err
}

// pictureDemand reads the costs of a service against the demand. They follow from the price of a
// replica and the highest rate within the latency limit at each number of replicas.
func (r *Reader) pictureDemand(ctx context.Context, o Figure) (*Picture, error) {
	switch {
	case o.By != "":
		return nil, workspace.Errorf("--by: the cost of a service is one plot over the demand; --series or --where choose what is in it")
	case o.Target != nil:
		return nil, workspace.Errorf("--target is for trainings, and %q is a service", o.Study)
	case len(o.Baseline) > 0:
		return nil, workspace.Errorf("--baseline: the cost of a service is drawn over the demand, with break-even points; `scalebench cost %s --baseline KEY=VALUE` prints ratios", o.Study)
	}
	o.Measure, o.Axis = measure.RateWithinLimit, scaling.Workers
	a, err := r.Curves(ctx, o.Question)
	if err != nil {
		return nil, err
	}
	p := &Picture{Name: a.Study, Analysis: a, Options: figure.Options{Title: o.Title}}
	tariff, err := r.Prices(ctx, o.Study, o.Site)
	if err != nil {
		return p, err
	}
	p.Data.Demand, p.Data.Currency = demands(a, tariff), tariff.Currency
	return p, nil
}

// picturePredictions reads the measured step times, and fits the model that predicts step times of
// other worker counts.
func (r *Reader) picturePredictions(ctx context.Context, o Figure) (*Picture, error) {
	a, list, err := r.layouts(ctx, o.Question, "")
	if err != nil {
		return nil, err
	}
	p := &Picture{Options: figure.Options{Title: o.Title}, Name: a.Study, Analysis: a}
	for _, one := range list {
		if one.refusal == nil {
			p.Data.Predictions = append(p.Data.Predictions, one.Series)
		}
	}
	return p, nil
}

// pictureResources reads, for each resource, which share of the measure remains with less of that
// resource.
func (r *Reader) pictureResources(ctx context.Context, o Figure) (*Picture, error) {
	name, err := workspace.StudyName(o.Study)
	if err != nil {
		return nil, err
	}
	n, err := r.Enough(ctx, Wish{Question: o.Question, Loss: sensitivity.Usual})
	if err != nil {
		return nil, err
	}
	return &Picture{Data: figure.Data{Resources: n.Answers, Amount: report.Amount}, Options: figure.Options{Title: o.Title}, Name: name, Warnings: n.Warnings}, nil
}

// pictureRun reads the telemetry of one run: what it used of each resource over time.
func (r *Reader) pictureRun(ctx context.Context, o Figure) (*Picture, error) {
	db, err := r.Open()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	d, err := db.Show(ctx, o.Study)
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	run := figure.Run{ID: d.Run.ID, Nodes: d.Telemetry, Clock: d.TrainingClock}
	return &Picture{Data: figure.Data{Run: run}, Options: figure.Options{Title: o.Title}, Name: Slug(d.Run.ID)}, nil
}

// pictureLooks reads the interim analyses of a study that is measured until its question is
// decided.
func (r *Reader) pictureLooks(ctx context.Context, o Figure) (*Picture, error) {
	name, db, err := r.openStudy(o.Study)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	looks, err := db.Looks(ctx, name)
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	if len(looks) == 0 {
		return nil, &workspace.Error{Err: fmt.Errorf("no looks at study %q are stored", name), Hint: "`scalebench run STUDY --until-decided` looks while it measures."}
	}
	return &Picture{Data: figure.Data{Looks: looks}, Options: figure.Options{Title: o.Title}, Name: name}, nil
}

// undrawable returns the error for a name that is neither a figure nor a measure.
func undrawable(e *scaling.UnknownMeasure) error {
	valid := strings.Join(figure.Names(), ", ")
	if n := len(e.Measured); n > 0 {
		valid += ", or a measure of these runs, such as " + strings.Join(e.Measured[:min(n, mostReported)], ", ")
	}
	return &workspace.Error{Err: fmt.Errorf("unknown figure %q; choose one of %s (`scalebench help measures` lists all)", e.Name, valid),
		Hint: nearest(e.Name, slices.Concat(figure.Names(), e.Measured), e.Known)}
}
