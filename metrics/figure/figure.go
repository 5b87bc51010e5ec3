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

// panel is one chart and where its lower left corner stands.
type panel struct {
	chart  chart
	layout layout
	at     vg.Point
}

// build makes the charts of a kind of figure.
type build func([]scaling.Curve, []scaling.Observation) ([]chart, error)

// single is a kind that is one chart.
func single(one func([]scaling.Curve, []scaling.Observation) (chart, error)) build {
	return func(curves []scaling.Curve, obs []scaling.Observation) ([]chart, error) {
		c, err := one(curves, obs)
		return []chart{c}, err
	}
}

// Preset is a figure with a name and a form of its own. Any measure is drawn
// besides, by its name.
type Preset struct {
	Name  string // as commands and files call it: "tta"
	Title string // for people
	About string // in a line of help
	draw  build  // over curves; nil where it is drawn of something else
	axis  string // that the curves are to run along; "" is workers
	// Measure is the one that the curves are to be of; "" for those that a training is
	// about.
	Measure string
	// Shown tells of which measures it shows anything; nil: of all.
	Shown func(measure.Measure) bool
}

func goals(m measure.Measure) bool { return m.Missable }

// The figures of what evaluations find of a loss. Their names hold a hyphen, for a
// user's own measure may be called loss.
const (
	LossTime          = "loss-time"
	LossSamples       = "loss-samples"
	PerplexityTime    = "perplexity-time"
	PerplexitySamples = "perplexity-samples"
)

// OfLosses are those of them that show what targets of this kind are about.
func OfLosses(of string) []string {
	switch of {
	case measure.OfLoss:
		return []string{LossTime, LossSamples}
	case measure.OfPerplexity:
		return []string{PerplexityTime, PerplexitySamples}
	}
	return nil
}

func (k Preset) ofLosses() bool {
	return slices.Contains(append(OfLosses(measure.OfLoss), OfLosses(measure.OfPerplexity)...), k.Name)
}

// OfCurves reports whether curves of trainings over workers are all it needs, so that
// Draw draws it of any that are.
func (k Preset) OfCurves() bool {
	return k.draw != nil && k.axis == "" && k.Measure != measure.JoulesPerSample && !k.ofLosses()
}

// Utilisation is the name of the figure that is of one run.
const Utilisation = "utilisation"

// Presets are all there are, in the order of the question: does it scale, does
// that help, why not, what does it cost.
func Presets() []Preset {
	return []Preset{
		{"speedup", "Speedup against workers", "how many times faster than the base", single(ofWork{}.speedup), "", "", nil},
		{"efficiency", "Efficiency against workers", "speedup divided by the factor in workers", single(ofWork{}.efficiency), "", "", nil},
		{"throughput", "Throughput against workers", "samples a second, against ideal", single(throughput), "", measure.Throughput, nil},
		{"tta", "Time to accuracy against workers", "time to each target accuracy", single(timeToAccuracy), "", "", goals},
		{"accuracy", "Accuracy against time", "one line per run, against time", single(accuracies.againstTime), "", "", goals},
		{"samples", "Accuracy against samples", "one line per run, against samples trained on", single(accuracies.againstSamples), "", "", goals},
		{LossTime, "Loss against time", "loss of evaluations, one line per run, against time", single(losses.againstTime), "", "", goals},
		{LossSamples, "Loss against samples", "the same against samples, or tokens, trained on", single(losses.againstSamples), "", "", goals},
		{PerplexityTime, "Perplexity against time", "perplexity of evaluations against time", single(perplexities.againstTime), "", "", goals},
		{PerplexitySamples, "Perplexity against samples", "the same against samples, or tokens, trained on", single(perplexities.againstSamples), "", "", goals},
		{"breakdown", "Where the time goes", "where the time of a step goes", breakdown, "", "", nil},
		{"ranks", "Step times of each rank", "step times of each rank, at the most workers", nil, "", "", nil},
		{"cost", "Cost against time", "cost against time, of a service against demand, by the site file's [[prices]]", nil, "", "", goals},
		{"normalised", "Time and cost relative to the baseline", "time and cost over the baseline's", nil, "", "", goals},
		{"busbw", "Bus bandwidth against size", "bus bandwidth of collectives against their size", busBandwidth, measure.Bytes, measure.BusBW, nil},
		{"energy", "Energy per sample against workers", "joules for a sample, where energy was read", along(energyPerSample), "", measure.JoulesPerSample, nil},
		{Prediction, "Predicted rate of a worker", "rate of a worker, measured and predicted on up to 4 times as many", nil, "", "", nil},
		{Needs, "What less of each resource keeps", "what less of each resource costs, with what is enough: as advise --spec says", nil, "", "", nil},
		{Utilisation, "What a run used", "CPU time, memory, storage, power, GPUs of one run over time: utilisation RUN", nil, "", "", nil},
	}
}

var energyPerSample = func() measure.Measure {
	m, err := measure.Find(measure.JoulesPerSample)
	if err != nil {
		panic(err) // it is ours
	}
	return m
}()

// Names lists the names of all kinds.
func Names() []string {
	var names []string
	for _, k := range Presets() {
		names = append(names, k.Name)
	}
	return names
}

// Find finds a kind by its name.
func Find(name string) (Preset, bool) {
	kinds := Presets()
	if i := slices.IndexFunc(kinds, func(k Preset) bool { return k.Name == name }); i >= 0 {
		return kinds[i], true
	}
	return Preset{}, false
}

// Draw lays out one kind of figure over the curves. The observations are those
// that the curves were made of; only what evaluations found and "breakdown" are of them. Throughput,
// speedup and efficiency refuse curves without a base.
func Draw(kind string, curves []scaling.Curve, obs []scaling.Observation, o Options) (*Drawing, error) {
	draw, err := builder(kind, curves, o)
	if err != nil {
		return nil, err
	}
	return drawOne(kind, draw, curves, obs, o)
}

// DrawMeasure draws a measure along the curves, whatever kinds of figure may be
// called like it, with a panel for each value of the parameter by as in DrawBy; ""
// for one plot.
func DrawMeasure(m measure.Measure, by string, curves []scaling.Curve, obs []scaling.Observation, o Options) (*Drawing, error) {
	draw, name := along(m), m.Title
	if len(curves) > 0 {
		name += " against " + shown(curves[0].Axis)
		if k, ok := Find(m.Name); ok && k.Measure == m.Name && k.draw != nil && cmp.Or(k.axis, scaling.Workers) == curves[0].Axis {
			draw, name = k.draw, k.Title
		}
	}
	if by != "" {
		return drawBy(by, name, draw, curves, obs, o)
	}
	return drawOne(name, draw, curves, obs, o)
}

func drawOne(kind string, draw build, curves []scaling.Curve, obs []scaling.Observation, o Options) (*Drawing, error) {
	c, err := draw(curves, obs)
	if err != nil {
		return nil, fmt.Errorf("%s figure: %w", kind, err)
	}
	if lines := c[0].styles(); len(c) == 1 && len(curves) > 1 && lines > mostLines {
		perCurve := (lines + len(curves) - 1) / len(curves)
		return drawGroups(kind, draw, uncrowd(curves, max(1, mostLines/perCurve)), obs, o)
	}
	for i := range c {
		c[i].caption = append(c[i].caption, mixtures(curves)...)
		c[i].caption = append(c[i].caption, doubts(curves)...)
	}
	return compose(kind, c, o)
}

// builder finds what draws a figure: one of Presets, over workers, else
// the measure of that name over any axis, or its gain over a baseline.
func builder(kind string, curves []scaling.Curve, o Options) (build, error) {
	together := func() ([]measure.Measure, error) {
		return Together(kind, func(name string) (measure.Measure, error) { return scaling.Find(curves, name) })
	}
	over := o.Over
	if o.Against.Name != "" {
		ms, err := together()
		return against(o.Against, ms), err
	}
	if over != "" {
		m, err := scaling.Find(curves, kind)
		if err == nil && m.Better == measure.Neither {
			err = fmt.Errorf("%s figure: %s has no better direction, so no gain over a baseline; draw it without --baseline", kind, m.Title)
		}
		return gains(m, over), err
	}
	k, ok := Find(kind)
	if o.Goal != nil {
		work := ofWork{o.Goal}
		switch kind {
		case "speedup":
			k.draw = single(work.speedup)
		case "efficiency":
			k.draw = single(work.efficiency)
		default:
			return nil, fmt.Errorf("%s figure: it shows no single target; leave the target out", kind)
		}
	}
	other := slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Axis != cmp.Or(k.axis, scaling.Workers) })
	if ok = ok && k.draw != nil; ok && !other {
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
