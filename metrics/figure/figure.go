// Package figure draws scaling curves as PNG, SVG and PDF.
//
// A figure is first a list of marks in data coordinates (Marks), then a
// layout, then ink: what is drawn can be tested and compared without looking
// at a pixel. The axes are drawn here on gonum/plot's canvases rather than by
// its Plot type, because labels stand beside the lines instead of in a legend
// and need the margins laid out around them.
//
// The figures follow Hoefler & Belli (SC'15): every run is shown, a speedup
// names its base and the base's absolute throughput, an interval says what
// kind it is, and where there are too few runs for one the caption says so. A
// spread is never written as ±.
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

// Options say how a figure looks. The zero value is the usual choice.
type Options struct {
	Title  string  // above the plot; "" for none
	Width  float64 // inches; 0: 7.5
	Height float64 // inches; 0: as much as the labels and the caption need
	// Over is the baseline in words, where curves were divided by one
	// (scaling.Options.Baseline): a measure is then drawn as its gain over it.
	Over string
	// Against is the measure on the x axis; zero: the axis of the curves, along which
	// points are then joined.
	Against measure.Measure
	// By is the parameter of which each value has a panel; "": one plot, or panels where one
	// would be too full.
	By string
	// Goal is the target that speedup and efficiency show next to throughput; nil: of
	// speedup the program's own or else the hardest that was reached, of efficiency none.
	Goal *measure.Target
	// NoCaption leaves the caption to a page that writes it itself. It must: a
	// figure without its base and its number of runs says too much.
	NoCaption bool
}

// Drawing is a figure that has been laid out: one panel, or several that share
// their axes.
type Drawing struct {
	name    string // for those who hear a figure instead of seeing it
	size    vg.Point
	panels  []panel
	frame   frame
	caption []string // sentences
}

// A panel is one chart and the place of its lower left corner.
type panel struct {
	chart  chart
	layout layout
	at     vg.Point
}

// Draw lays out a figure by its name: one of Presets, a measure, or several measures with
// commas between that share an axis. Throughput, speedup and efficiency refuse curves
// without a base.
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

// DrawMeasure draws a measure along the curves, even if a preset has its name.
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
	if lines := c[0].styles(); len(c) == 1 && len(d.Curves) > 1 && lines > mostLines {
		perCurve := (lines + len(d.Curves) - 1) / len(d.Curves)
		return drawGroups(kind, draw, uncrowd(d.Curves, max(1, mostLines/perCurve)), d, o)
	}
	for i := range c {
		c[i].caption = append(c[i].caption, mixtures(d.Curves)...)
		c[i].caption = append(c[i].caption, doubts(d.Curves)...)
	}
	return compose(kind, c, o)
}

// builder finds what draws a figure of curves: one of Presets, along the axis that it is
// about, else the measure of that name along any axis, or its gain over a baseline.
func builder(kind string, curves []scaling.Curve, o Options) (build, error) {
	together := func() ([]measure.Measure, error) {
		return Together(kind, func(name string) (measure.Measure, error) { return scaling.Find(curves, name) })
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

// compose makes a figure of charts that have been fitted to their data.
func compose(kind string, charts []chart, o Options) (*Drawing, error) {
	for i := range charts {
		charts[i].thin()
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

// Caption is the text below the plot: the base, weak or strong, the runs
// behind each point, the kind of interval.
func (f *Drawing) Caption() string { return strings.Join(f.caption, " ") }

// Marks lists what is drawn, in the order of drawing.
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

// Name says what the figure shows, in a few words.
func (f *Drawing) Name() string { return f.name }

// errNothing is for curves without a single throughput.
var errNothing = errors.New("nothing to draw: no run has a throughput; runs that report no steps, are still running or are too short for a steady state have none")

// needBase refuses curves that have nothing to be divided by.
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

// baseless says which series are not drawn, since they have no base point.
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

// shown makes text from a user fit to be drawn: one line, nothing in it that
// steers a viewer, and no characters that XML cannot hold.
func shown(s string) string {
	s = clean.Line(strings.Join(strings.Fields(s), " "))
	return strings.Map(func(r rune) rune {
		if r == 0xfffe || r == 0xffff {
			return '\uFFFD'
		}
		return r
	}, s)
}

// clean makes all text of the chart so, whichever way it came in.
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
