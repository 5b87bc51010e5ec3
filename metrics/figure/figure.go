// Package figure draws scaling curves as PNG, SVG and PDF.
//
// A figure is first a list of marks in data coordinates (Marks), then a layout, then a
// drawing, so tests can compare it without pixels. This package draws the axes on
// gonum/plot's canvases instead of using its Plot type, because labels are next to the
// lines instead of in a legend, and the margins depend on them.
//
// The figures follow Hoefler & Belli (SC'15): every run is shown, a speedup names its base
// and the base's absolute throughput, and an interval states its kind. If there are too few
// runs for an interval, the caption says so. Spread is never written as ±.
package figure

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Options configure a figure. The zero value gives the defaults.
type Options struct {
	Title  string  // above the plot; "" for none
	Width  float64 // in inches; 0: 7.5
	Height float64 // in inches; 0: as the labels and the caption require
	// Over describes the baseline, if curves were divided by one (scaling.Options.Baseline). What
	// is drawn of a measure is then its ratio to the baseline.
	Over string
	// Against is the measure on the x axis. The zero value means the axis of the curves. If it is
	// set, points are connected in the order of the curves' axis.
	Against measure.Measure
	// By is the parameter whose values get a panel each; "": one plot, or automatic panels
	// if it would be too full.
	By string
	// Goal is the target that speedup and efficiency show next to throughput. nil: for
	// speedup, the program's own or else the hardest one reached; for efficiency, none.
	Goal *measure.Target
	// NoCaption leaves the caption to a page that prints it itself, as it must: without its
	// base and number of runs, a figure is misleading.
	NoCaption bool
}

// A Drawing is a figure after layout: one panel, or several that share their axes.
type Drawing struct {
	name    string // name of the figure for screen readers
	size    vg.Point
	panels  []panel
	frame   frame
	caption []string // sentences
}

// A panel is a chart and the position of its lower left corner.
type panel struct {
	chart  chart
	layout layout
	at     vg.Point
}

// Draw lays out a figure by name: a preset, a measure, or several measures, separated by
// commas, that share an axis. Throughput, speedup and efficiency need curves with a base.
func Draw(name string, d Data, o Options) (*Drawing, error) {
	if k, ok := Find(name); ok && k.Input != OfCurves {
		return k.Draw(d, o)
	}
	draw, err := builder(name, d.Curves, o)
	if err != nil {
		return nil, err
	}
	return drawBy(name, draw, d, o)
}

// DrawMeasure draws a measure along the curves, even if a preset has the same name.
func DrawMeasure(m measure.Measure, d Data, o Options) (*Drawing, error) {
	draw, name := along(m), m.Title
	if len(d.Curves) > 0 {
		name += " against " + shown(d.Curves[0].Axis)
		if k, ok := Find(m.Name); ok && k.draws(m, d.Curves[0]) {
			draw, name = k.draw, k.Title
		}
	}
	return drawBy(name, draw, d, o)
}

func drawOne(kind string, draw build, d Data, o Options) (*Drawing, error) {
	c, err := draw(d, o)
	if err != nil {
		return nil, fmt.Errorf("%s figure: %w", kind, err)
	}
	if lines := c[0].styles(); len(c) == 1 && len(d.Curves) > 1 && lines > c[0].mostLines() {
		perCurve := (lines + len(d.Curves) - 1) / len(d.Curves)
		return drawGroups(kind, draw, uncrowd(d.Curves, max(1, mostLines/perCurve)), d, o)
	}
	for i := range c {
		c[i].caption = append(c[i].caption, mixtures(d.Curves)...)
		c[i].caption = append(c[i].caption, doubts(d.Curves)...)
	}
	return compose(kind, c, o)
}

// builder returns the function that draws a plot of curves. It belongs to a preset, if the curves
// are over its axis. Otherwise it draws the measure of that name, or its ratio to a baseline.
func builder(kind string, curves []scaling.Curve, o Options) (build, error) {
	together := func() ([]measure.Measure, error) {
		return Together(kind, func(name string) (measure.Measure, error) { return scaling.Find(curves, name) })
	}
	if k, ok := Find(kind); ok && k.Over != "" && k.Over == o.Against.Name {
		return k.draw, nil
	}
	if o.Against.Name != "" {
		ms, err := together()
		return against(o.Against, ms), err
	}
	if o.Over != "" {
		m, err := scaling.Find(curves, kind)
		if err == nil && m.Better == measure.Neither {
			err = fmt.Errorf("%s figure: %s has no better direction, so no gain over a baseline; draw it without --baseline", kind, m.Title)
		}
		return gains(m, o.Over), err
	}
	k, ok := Find(kind)
	if o.Goal != nil && k.Target != ShowsGoal {
		return nil, fmt.Errorf("%s figure: it shows no single target; leave the target out", kind)
	}
	other := slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Axis != cmp.Or(k.axis, scaling.Workers) })
	if ok && !other {
		return k.draw, nil
	}
	if ms, err := together(); err == nil {
		return along(ms...), nil
	}
	if ok {
		return nil, fmt.Errorf("%s figure: %w", kind, errAxis)
	}
	return nil, fmt.Errorf("unknown figure %q; choose one of %s, or a measure", kind, strings.Join(Names(), ", "))
}

// compose lays out a figure from charts whose axes fit their data.
func compose(kind string, charts []chart, o Options) (*Drawing, error) {
	series := 0
	for i := range charts {
		series += charts[i].styles()
	}
	for i := range charts {
		charts[i].thin(dotsFor(series))
		charts[i].clean()
		if most := len(palette) * len(shapes); charts[i].styles() > most {
			return nil, fmt.Errorf("%s figure: %d lines, of which only %d can be told apart; draw fewer series", kind, charts[i].styles(), most)
		}
	}
	k, _ := Find(kind)
	f := &Drawing{name: shown(cmp.Or(o.Title, k.Title, kind))}
	if len(charts) > 1 {
		if err := f.multiples(charts, o); err != nil {
			return nil, fmt.Errorf("%s figure: %w", kind, err)
		}
		return f, nil
	}
	c := charts[0]
	c.title = shown(o.Title)
	l, err := layoutOf(&c, o)
	if err != nil {
		return nil, fmt.Errorf("%s figure: %w", kind, err)
	}
	f.size, f.panels, f.caption = l.size, []panel{{chart: c, layout: l}}, c.caption
	return f, nil
}

// Caption returns the text below the plot: the base, weak or strong scaling, the runs per
// point, the kind of interval.
func (f *Drawing) Caption() string { return strings.Join(f.caption, " ") }

// Marks returns everything drawn, in drawing order.
func (f *Drawing) Marks() []Mark {
	var list []Mark
	for _, p := range f.panels {
		list = append(list, p.chart.marks...)
	}
	for _, p := range f.frame.labels {
		list = append(list, p.mark)
	}
	return list
}

// Name describes the figure in a few words.
func (f *Drawing) Name() string { return f.name }

// errNothing is returned for curves without a throughput.
var errNothing = errors.New("nothing to draw: no run has a throughput; runs that report no steps, are still running or are too short for a steady state have none")

// needBase returns an error if no curve has a base.
func needBase(curves []scaling.Curve, with func(measure.Measure) bool) error {
	var without []string
	measured := false
	for i := range curves {
		c := &curves[i]
		if len(trends(curves[i:i+1], with)) == 0 {
			without = append(without, fmt.Sprintf("%q", c.Series))
		}
		for _, p := range c.Points {
			measured = measured || slices.ContainsFunc(p.Measures, func(s *scaling.Summary) bool { return with(s.Measure) && s.Median != nil })
		}
	}
	switch {
	case !measured:
		return errNothing
	case len(without) == len(curves):
		return fmt.Errorf("no base point for series %s: run the smallest worker count, or choose another base", strings.Join(without, ", "))
	}
	return nil
}

// baseless names the series that are left out because they have no base point.
func baseless(curves []scaling.Curve, with func(measure.Measure) bool) []string {
	var without []string
	for i := range curves {
		if len(trends(curves[i:i+1], with)) == 0 {
			without = append(without, shown(curves[i].Series))
		}
	}
	if without == nil {
		return nil
	}
	return []string{"Not drawn, for lack of a base point: " + strings.Join(without, ", ") + "."}
}

// shown sanitises user text for drawing: one line, without control characters and
// characters that XML does not allow.
func shown(s string) string {
	s = clean.Line(strings.Join(strings.Fields(s), " "))
	return strings.Map(func(r rune) rune {
		if r == 0xfffe || r == 0xffff {
			return '\uFFFD'
		}
		return r
	}, s)
}

// clean sanitises all text of the chart.
func (c *chart) clean() {
	for _, text := range []*string{&c.title, &c.x.title, &c.y.title} {
		*text = shown(*text)
	}
	for _, list := range [][]string{c.caption, c.x.names, c.y.names} {
		for i := range list {
			list[i] = shown(list[i])
		}
	}
	for i := range c.marks {
		c.marks[i].Text = shown(c.marks[i].Text)
	}
}
