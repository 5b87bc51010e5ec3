package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/figure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/inquiry"
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
		Usage:     "draw a figure, such as speedup or cost, or any measure",
		ArgsUsage: "FIGURE STUDY",
		Description: "STUDY is a study's name or the path of its file; for utilisation, a run as for show.\n" +
			"FIGURE is one of\n" +
			figureHelp() +
			"or any measure, such as step_p95, to_0.75 or one that runs report: along workers, or\n" +
			"along -x KEY. A measure with many values in a run, such as busbw, has its own axis.\n" +
			"Measures of one unit may share a figure: latency_p50,latency_p95. KEY may be another\n" +
			"measure: plot latency_p95 STUDY -x requests_per_second draws a line for each series.\n" +
			"Numbers on the axis give lines, words give columns. --baseline shows how many times\n" +
			"better each configuration is. Each run is a dot; medians have an interval from 6\n" +
			"runs on.",
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.output, DefaultText: "STUDY-FIGURE.svg",
				Usage: "write `FILE`; its extension gives the format: " + strings.Join(figure.Formats(), ", ")},
			siteFlag(&o.site), o.axisFlag(), atFlag(&o.at),
			&cli.StringFlag{Name: "along", Usage: "with a measure as -x: join points along the parameter `KEY`", DefaultText: "the load that has most values", Destination: &o.along},
			&cli.StringFlag{Name: "by", Usage: "a panel for each value of the parameter `KEY`, such as framework, all with the same axes", Destination: &o.by},
			&cli.GenericFlag{Name: "target", Value: &o.target, DefaultText: "of speedup the program's own or the hardest, of tta all, else whole runs", Usage: "for " + listed(targetFigures()) + ": time to `TARGET`, an accuracy such as 0.75 or loss=2"},
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

// listed joins words for a sentence: "a, b and c".
func listed(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// targetFigures are the figures that are drawn of one target.
func targetFigures() []string {
	return figure.NamesOf(func(k figure.Preset) bool { return k.Target != figure.NoTarget })
}

func runPlot(ctx context.Context, s *session, o plotOptions) error {
	preset, _ := figure.Find(o.kind)
	if preset.Target == figure.TimeToGoal && o.target.Target != nil {
		o.kind = o.target.Time().Name
		preset = figure.Preset{}
	} else if err := o.refused(preset); err != nil {
		return err
	}
	if o.output != "" {
		if _, err := figure.Format(o.output); err != nil {
			return &usageError{err: err}
		}
	}
	p, err := inputs[preset.Input](ctx, s, o)
	if p == nil {
		return err
	}
	var f *figure.Drawing
	if err == nil {
		f, err = figure.Draw(o.kind, p.data, p.options)
	}
	if err == nil {
		return s.saveFigure(f, o, p)
	}
	if p.analysis != nil {
		p.analysis.warn(s)
		if p.analysis.noBase != nil && preset.OfCurves() {
			return p.analysis.noBase // it says what to run
		}
	}
	return &usageError{err: err}
}

// refused says which options the figure does not take, before the database is read.
func (o *plotOptions) refused(k figure.Preset) error {
	switch {
	case o.target.Target != nil && k.Target == figure.NoTarget:
		return usagef("--target is for the figures %s", listed(targetFigures()))
	case o.target.Target != nil && k.Target == figure.ShowsGoal && (o.axis != "" || len(o.baseline.Value()) > 0):
		return usagef("--target with %s is over workers and divides by the smallest count: leave out --axis and --baseline", o.kind)
	case o.axis != "" && k.Input == figure.OfPrices:
		return usagef("--axis is for measures, and %s has its own axis; --by KEY draws a panel for each value", o.kind)
	case o.along != "" && o.axis == "":
		return usagef("--along is for a measure over another one, such as -x requests_per_second")
	case k.Whole != "" && (o.axis != "" || o.by != "" || len(o.baseline.Value()) > 0):
		return usagef("%s %s", o.kind, k.Whole)
	}
	return nil
}

// saveFigure writes a figure and says what it shows.
func (s *session) saveFigure(f *figure.Drawing, o plotOptions, p *pictured) error {
	if o.output == "" {
		o.output = p.name + "-" + slug(o.kind) + ".svg"
	}
	if err := f.Save(o.output, s.put); err != nil {
		return err
	}
	s.note("%s: %s", o.output, f.Caption())
	if a := p.analysis; a != nil {
		a.answered = strings.Contains(f.Caption(), scaling.DecisiveNote(a.Curves))
		a.warn(s)
	}
	s.doubtAll(o.study, p.warnings...)
	return nil
}

// undrawable is the error of a name that is neither a figure nor a measure.
func undrawable(e *inquiry.UnknownMeasure) error {
	return &usageError{err: fmt.Errorf("unknown figure %q; choose one of %s, or a measure: %s", e.Name, strings.Join(figure.Names(), ", "), strings.Join(e.Known, ", ")),
		hint: study.SpellingHint(e.Name, slices.Compact(slices.Sorted(slices.Values(append(figure.Names(), e.Known...)))))}
}
