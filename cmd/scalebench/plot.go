package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report/content"
	"github.com/scalebench/scalebench/metrics/report/tables"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/inquiry"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
)

type plotOptions struct {
	curveOptions
	kind, output, title, site string
	by                        string // parameter of panels; "" for one plot
	target                    targetFlag
}

func plotCommand(s *session) *cli.Command {
	var o plotOptions
	return &cli.Command{
		Name:      "plot",
		Usage:     "draw " + strings.Join(figure.Names(), ", ") + ", or any measure",
		ArgsUsage: "FIGURE STUDY",
		Description: "STUDY is a study's name or the path of its file; of utilisation, a run as for show.\n" +
			"FIGURE is one of\n" +
			figureHelp() +
			"or any measure, such as step_p95, to_0.75 or one that runs report: over workers, or\n" +
			"over -x KEY; a measure with many values in a run, such as busbw, over its own axis.\n" +
			"Several that share an axis have commas between: latency_p50,latency_p95. KEY may be\n" +
			"another measure: latency_p95 over requests_per_second, a line a series.\n" +
			"Numbers on the axis give lines, words give columns. --baseline shows how many times\n" +
			"better each is. Every run is a dot; medians have an interval if there are enough\n" +
			"runs.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.output, DefaultText: "STUDY-FIGURE.svg",
				Usage: "write `FILE`; its extension gives the format: " + strings.Join(figure.Formats(), ", ")},
			siteFlag(&o.site), o.axisFlag(), atFlag(&o.at),
			&cli.StringFlag{Name: "along", Usage: "over another measure: join points along the parameter `KEY`", DefaultText: "the load that has most values", Destination: &o.along},
			&cli.StringFlag{Name: "by", Usage: "a panel for each value of the parameter `KEY`, such as framework, all with the same axes", Destination: &o.by},
			&cli.GenericFlag{Name: "target", Value: &o.target, DefaultText: "of speedup the program's own or the hardest, of tta all, else whole runs", Usage: "for speedup, efficiency, tta, cost and normalised: time to `TARGET`, an accuracy such as 0.75 or loss=2"},
			baselineFlag(&o.baseline),
			&cli.StringFlag{Name: "title", Usage: "`TEXT` above the plot", Destination: &o.title},
		}, o.flags()...),
		Action: func(c *cli.Context) error {
			o.kind, o.study = c.Args().Get(0), c.Args().Get(1)
			return runPlot(c.Context, s, o)
		},
	}
}

// figureHelp is a line a figure.
func figureHelp() string {
	var b strings.Builder
	for _, k := range figure.Presets() {
		fmt.Fprintf(&b, "  %-18s %s\n", k.Name, k.About)
	}
	return b.String()
}

func runPlot(ctx context.Context, s *session, o plotOptions) error {
	// All that can be refused is, before the database is read.
	money := o.kind == "cost" || o.kind == "normalised"
	toTarget := o.target.Target != nil && (o.kind == "speedup" || o.kind == "efficiency")
	switch {
	case o.kind == "tta" && o.target.Target != nil:
		o.kind = o.target.Time().Name
	case o.target.Target != nil && !money && !toTarget:
		return usagef("--target is for the figures speedup, efficiency, tta, cost and normalised")
	case toTarget && (o.axis != "" || len(o.baseline.Value()) > 0):
		return usagef("--target with %s is over workers and divides by the smallest count: leave out --axis and --baseline", o.kind)
	case o.axis != "" && money:
		return usagef("--axis is for measures, and %s has its own axis; --by KEY draws a panel for each value", o.kind)
	case o.along != "" && o.axis == "":
		return usagef("--along is for a measure over another one, such as -x requests_per_second")
	}
	if o.output != "" {
		if _, err := figure.Format(o.output); err != nil {
			return &usageError{err: err}
		}
	}
	switch o.kind {
	case figure.Utilisation:
		return plotUtilisation(ctx, s, o)
	case figure.Needs:
		return plotNeeds(ctx, s, o)
	}
	if o.kind == figure.Prediction {
		return plotPrediction(ctx, s, o)
	}
	preset, named := figure.Find(o.kind)
	if named && o.axis == "" && len(o.baseline.Value()) == 0 {
		o.measure, o.shown = preset.Measure, preset.Shown
	} else {
		o.measure = o.kind // also of a preset's name, along another axis or over a baseline
		if _, err := measure.Find(o.kind); named && err != nil {
			o.measure = ""
		}
	}
	several := strings.Contains(o.kind, ",")
	if several {
		if len(o.baseline.Value()) > 0 {
			return usagef("--baseline is for one measure")
		}
		o.measure, _, _ = strings.Cut(o.kind, ",")
	}
	o.picture, o.prices = true, &o.site
	a, err := s.analyse(ctx, o.curveOptions)
	var unknown *inquiry.UnknownMeasure
	if errors.As(err, &unknown) {
		return undrawable(unknown)
	}
	if err != nil {
		return err
	}
	if several {
		_, err := figure.Together(o.kind, func(name string) (measure.Measure, error) { return inquiry.Find(a.Observations, name) })
		if errors.As(err, &unknown) {
			return undrawable(unknown)
		}
		if err != nil {
			return &usageError{err: err}
		}
	}
	demand := o.kind == "cost" && a.Kind == "serve"
	if demand { // of a service, over the demand
		if a, err = s.rates(ctx, o); err != nil {
			return err
		}
	}
	if named && !demand {
		if err := a.drawable(preset, o.measure); err != nil {
			return err
		}
	}
	f, err := s.draw(ctx, o, a)
	if err != nil {
		a.warn(s)
		if k, _ := figure.Find(o.kind); a.noBase != nil && k.OfCurves() {
			return a.noBase // it says what to run
		}
		return &usageError{err: err}
	}
	return s.saveFigure(f, o, a)
}

// saveFigure writes a figure and says what it shows.
func (s *session) saveFigure(f *figure.Drawing, o plotOptions, a *analysis) error {
	if o.output == "" {
		o.output = a.study + "-" + slug(o.kind) + ".svg"
	}
	if err := f.Save(o.output, s.put); err != nil {
		return err
	}
	s.note("%s: %s", o.output, f.Caption())
	a.answered = strings.Contains(f.Caption(), scaling.DecisiveNote(a.Curves))
	a.warn(s)
	return nil
}

// rates are the largest rates within the limit along the replicas of a service.
func (s *session) rates(ctx context.Context, o plotOptions) (*analysis, error) {
	switch {
	case o.by != "":
		return nil, usagef("--by: the cost of a service is one plot over the demand; --series or --where choose what is in it")
	case o.target.Target != nil:
		return nil, usagef("--target is for trainings, and %q is a service", o.study)
	case len(o.baseline.Value()) > 0:
		return nil, usagef("--baseline: the cost of a service is drawn over the demand, where the break-even says it; `%s cost %s --baseline KEY=VALUE` divides", appName, o.study)
	}
	o.measure, o.axis, o.picture = measure.RateWithinLimit, scaling.Workers, false
	return s.analyse(ctx, o.curveOptions)
}

// plotNeeds draws what less of each resource keeps.
func plotNeeds(ctx context.Context, s *session, o plotOptions) error {
	if o.axis != "" || o.by != "" || len(o.baseline.Value()) > 0 {
		return usagef("%s has a panel for each resource: it takes no --axis, --by or --baseline; --series and --where choose what is in it", o.kind)
	}
	list, _, warnings, err := s.needs(ctx, o.curveOptions, sensitivity.Usual, nil)
	if err != nil {
		return err
	}
	f, err := figure.DrawNeeds(list, tables.Amount, figure.Options{Title: o.title})
	if err != nil {
		return &usageError{err: err}
	}
	if o.output == "" {
		name, err := studyName(o.study)
		if err != nil {
			return err
		}
		o.output = name + "-" + o.kind + ".svg"
	}
	if err := f.Save(o.output, s.put); err != nil {
		return err
	}
	s.note("%s: %s", o.output, f.Caption())
	s.doubtAll(o.study, warnings...)
	return nil
}

// plotUtilisation draws what one run used.
func plotUtilisation(ctx context.Context, s *session, o plotOptions) error {
	if o.axis != "" || o.by != "" || len(o.baseline.Value()) > 0 {
		return usagef("%s is of one run: it takes no --axis, --by or --baseline", o.kind)
	}
	db, err := s.openStore()
	if err != nil {
		return err
	}
	defer db.Close()
	d, err := db.Show(ctx, o.study)
	if err != nil {
		return storeError(err)
	}
	f, err := figure.DrawUtilisation(d.Run.ID, d.Telemetry, d.TrainingClock, figure.Options{Title: o.title})
	if err != nil {
		return &usageError{err: err}
	}
	if o.output == "" {
		o.output = slug(d.Run.ID) + "-" + o.kind + ".svg"
	}
	if err := f.Save(o.output, s.put); err != nil {
		return err
	}
	s.note("%s: %s", o.output, f.Caption())
	return nil
}

// plotPrediction draws what was measured and what follows from it for more workers.
func plotPrediction(ctx context.Context, s *session, o plotOptions) error {
	if o.axis != "" || o.by != "" || len(o.baseline.Value()) > 0 {
		return usagef("%s is of step times over workers: it takes no --axis, --by or --baseline", o.kind)
	}
	a, list, err := s.layouts(ctx, o.curveOptions, "")
	if err != nil {
		return err
	}
	var drawn []*predict.Series
	for _, one := range list {
		if one.refusal == nil {
			drawn = append(drawn, one.Series)
		}
	}
	f, err := figure.DrawPrediction(drawn, 4, 0.95, figure.Options{Title: o.title})
	if err != nil {
		a.warn(s)
		return &usageError{err: err}
	}
	return s.saveFigure(f, o, a)
}

// drawable refuses a figure that the runs, or the options, are not for.
func (a *analysis) drawable(k figure.Preset, asked string) error {
	switch {
	case asked == "" && a.Baseline != nil && k.Name != "cost" && k.Name != "normalised":
		return usagef("--baseline is for measures, cost and normalised; use --base N for %s", k.Name)
	case asked != "" && a.Measures[0].At != "":
		return nil
	}
	return a.nothing()
}

// undrawable is the error of a name that is neither a figure nor a measure.
func undrawable(e *inquiry.UnknownMeasure) error {
	return &usageError{err: fmt.Errorf("unknown figure %q; choose one of %s, or a measure: %s", e.Name, strings.Join(figure.Names(), ", "), strings.Join(e.Known, ", ")),
		hint: study.SpellingHint(e.Name, slices.Compact(slices.Sorted(slices.Values(append(figure.Names(), e.Known...)))))}
}

func (s *session) draw(ctx context.Context, o plotOptions, a *analysis) (*figure.Drawing, error) {
	options := figure.Options{Title: o.title}
	if o.kind == "speedup" || o.kind == "efficiency" {
		options.Goal = o.target.Target
	}
	if a.Against != nil {
		options.Against = *a.Against
	}
	if a.Baseline != nil {
		options.Over = cost.Options{Baseline: a.Baseline}.BaselineText()
	}
	by := ""
	if o.by != "" {
		var err error
		of := measure.Measure{}
		if len(a.Measures) == 1 {
			of = a.Measures[0]
		}
		if by, err = inquiry.Key(o.by, a.Observations, nil, of); err != nil {
			return nil, fmt.Errorf("--by %w", err)
		}
	}
	switch {
	case o.kind == "ranks":
		db, err := s.openStore()
		if err != nil {
			return nil, err
		}
		defer db.Close()
		runs, err := content.RankSteps(ctx, db, a.Curves)
		if err != nil {
			return nil, err
		}
		return figure.DrawRanks(runs, options)
	case o.kind == "cost" && a.Kind == "serve":
		tariff, err := s.pricesFor(ctx, o.study, o.site)
		if err != nil {
			return nil, err
		}
		return figure.DrawDemand(demands(a, tariff), tariff.Currency, options)
	case o.kind == "cost" || o.kind == "normalised":
		bill, err := s.priced(ctx, a, o.curveOptions, o.site, o.target.Target)
		if err != nil {
			return nil, err
		}
		if o.kind == "cost" {
			return figure.DrawCost(*bill, by, options)
		}
		return figure.DrawNormalised(*bill, by, options)
	case by != "":
		return figure.DrawBy(by, o.kind, a.Curves, a.Observations, options)
	}
	return figure.Draw(o.kind, a.Curves, a.Observations, options)
}
