package figure

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
)

// along draws one or more measures, which share the y axis, over the axis of the curves. Over
// numbers, it draws a line per series and measure; over words, columns side by side.
func along(ms ...measure.Measure) build {
	return func(in Data, _ Options) ([]chart, error) {
		curves := in.Curves
		list := measured(curves, ms...)
		if list == nil {
			return nil, fmt.Errorf("nothing to draw: no run has %s", titles(ms))
		}
		of := func(s *scaling.Summary) *scaling.Estimate { return s.Median }
		d := drawing{list: list, words: overWords(list), of: of, scale: func(_ *scaling.Summary, x float64) float64 { return x }}
		least, most := d.spread()
		c := chart{y: measuresAxis(ms, most)}
		// A range of more than a decade needs a log scale; columns start at 0.
		c.y.log = !d.words && least > 0 && most/least > 10
		c.y.zero = !c.y.log
		d.columns = d.words
		d.draw(&c)
		c.caption = []string{"Dots: runs; markers: medians."}
		if d.columns {
			c.caption[0] = "Dots: runs; columns: medians."
		}
		c.cross(list)
		c.caption = append(c.caption, runsOfEach(list)...)
		c.caption = append(c.caption, c.limits(list)...)
		c.caption = append(c.caption, bars(estimates(list, of), "exact binomial interval of the median")...)
		if !d.words {
			c.ideals(list)
			c.bends(list)
		}
		return []chart{c}, c.fit()
	}
}

// bends marks saturation points by rings. On a latency, they come from the throughput that was
// measured with it. The caption says where they are, or why none exist.
func (c *chart) bends(list []trend) {
	var curves []scaling.Curve // without repetition
	knees := map[string]*capacity.Saturation{}
	rings, unit := false, ""
	for i, t := range list {
		k, known := knees[t.curve.Series]
		if !known {
			k, unit = capacity.FindSaturationWithUnit(t.curve, t.measure)
			knees[t.curve.Series], curves = k, append(curves, t.curve)
		}
		if k == nil || k.At == 0 {
			continue
		}
		m := Mark{Kind: Bend, Series: t.name, style: i}
		for j := range t.curve.Points {
			p := &t.curve.Points[j]
			if x := p.At.Number; (x == k.At || x == k.AtLeast) && t.at(p).Median != nil {
				m.Points = append(m.Points, XY{x, t.at(p).Median.Value})
			}
		}
		if m.Points != nil {
			rings = true
			c.add(m)
		}
	}
	if !slices.ContainsFunc(curves, func(c scaling.Curve) bool { return knees[c.Series] != nil }) {
		return
	}
	text := perSeries("knee: ", curves, func(c scaling.Curve) string {
		switch k := knees[c.Series]; {
		case k == nil:
			return "none along this axis"
		case k.At == 0:
			return "none, " + k.Why
		default:
			return k.Range()
		}
	})
	if rings {
		most := "the most"
		if list[0].measure.Better == measure.Lower {
			most += " " + unit
		}
		c.caption = append(c.caption, fmt.Sprintf("Rings: knees, the smallest %s shown to give 95 %% of %s; thin rings: may be enough.", shown(list[0].curve.Axis), most))
	}
	c.caption = append(c.caption, text)
}

// ideals draws lines for rates that rise from their base in proportion to the resources.
func (c *chart) ideals(list []trend) {
	drawn := false
	for _, t := range list {
		base := t.curve.Base
		if base == nil || t.measure.Better != measure.Higher {
			continue
		}
		y, last := t.base().Median, 0.0
		for i := range t.curve.Points {
			if p := &t.curve.Points[i]; t.at(p).Efficiency() != nil {
				last = max(last, p.At.Number)
			}
		}
		if from := base.At.Number; y != nil && last > from {
			c.add(Mark{Kind: Ideal, Points: []XY{{from, y.Value}, {last, y.Value * (last / from)}}, style: -1})
			drawn = true
		}
	}
	if drawn {
		c.y.log = c.x.log // otherwise the line would not be straight
		c.y.zero = !c.y.log
		c.labelIdeal()
	}
}

// gains draws how many times better a measure is than at the baseline.
func gains(m measure.Measure, over string) build {
	return func(in Data, _ Options) ([]chart, error) {
		curves := in.Curves
		list, missing := gained(measured(curves, m))
		if list == nil {
			return nil, fmt.Errorf("nothing to draw: no baseline has %s", m.Title)
		}
		d := drawing{list: list, words: overWords(list), of: (*scaling.Summary).Gain, scale: func(s *scaling.Summary, x float64) float64 {
			if s.Base() == nil || s.Base().Median == nil {
				return math.NaN()
			}
			return m.Gain(x, s.Base().Median.Value)
		}}
		c := chart{y: newAxis("gain in " + m.Title)}
		least, most := d.spread()
		c.y.log = least > 0 && most/least > 10
		c.y.zero = !c.y.log
		d.draw(&c)
		ends := []XY{{math.Inf(1), 1}, {math.Inf(-1), 1}}
		for _, mark := range c.marks {
			for _, p := range mark.Points {
				ends[0].X, ends[1].X = min(ends[0].X, p.X), max(ends[1].X, p.X)
			}
		}
		c.marks = append([]Mark{{Kind: Target, Points: ends, style: -1}}, c.marks...)
		c.add(Mark{Kind: Label, Points: ends[1:], Text: "baseline", style: -1})
		c.caption = []string{fmt.Sprintf("Gain: how many times better than the baseline (%s), by the medians.", shown(over)), "Dots: runs; markers: medians.", runsOf(list)}
		if missing > 0 {
			c.caption = append(c.caption, fmt.Sprintf("%s without a baseline: not drawn.", number.Count(missing, "point")))
		}
		c.caption = append(c.caption, bars(estimates(list, d.of), "interval of a ratio of medians")...)
		return []chart{c}, c.fit()
	}
}

// gained returns the trends that have a gain at some point; missing is the number of points
// without one.
func gained(all []trend) (list []trend, missing int) {
	for _, t := range all {
		any := false
		for i := range t.curve.Points {
			s := t.at(&t.curve.Points[i])
			switch {
			case s.Gain() != nil:
				any = true
			case s.Median != nil:
				missing++
			}
		}
		if any {
			list = append(list, t)
		}
	}
	return list, missing
}

// drawing holds trends and how to draw them.
type drawing struct {
	list    []trend
	words   bool // the axis has words
	columns bool // columns from 0; words otherwise have markers
	of      func(*scaling.Summary) *scaling.Estimate
	scale   func(*scaling.Summary, float64) float64 // scales a run's value
}

// overWords reports whether a position on the axis is a word.
func overWords(list []trend) bool {
	return slices.ContainsFunc(list, func(t trend) bool {
		return slices.ContainsFunc(t.curve.Points, func(p scaling.Point) bool { return !p.At.Numeric() })
	})
}

// spread returns the smallest and the largest drawn value, 0 without values.
func (d *drawing) spread() (least, most float64) {
	for _, t := range d.list {
		for i := range t.curve.Points {
			s := t.at(&t.curve.Points[i])
			for _, x := range s.Values {
				if x = d.scale(s, x); math.IsNaN(x) {
					continue
				}
				if most == 0 || x > most {
					most = x
				}
				if least == 0 || x < least {
					least = x
				}
			}
		}
	}
	return least, most
}

func (d *drawing) draw(c *chart) {
	if d.words {
		d.groups(c)
		return
	}
	c.x = numberAxis(d.list)
	for i, t := range d.list {
		c.addTrend(i, t, func(p *scaling.Point, x float64) float64 { return d.scale(t.at(p), x) }, d.of)
	}
}

// measured returns a trend for each series and measure with values, whether or not the series has
// a base.
func measured(curves []scaling.Curve, ms ...measure.Measure) []trend {
	var list []trend
	for _, cv := range curves {
		for _, m := range ms {
			if !cv.Measured(m.Name) {
				continue
			}
			name := shown(cv.Series)
			switch {
			case len(ms) == 1:
			case len(curves) == 1:
				name = m.Title
			default:
				name += ", " + m.Title
			}
			list = append(list, trend{curve: cv, measure: m, name: name})
		}
	}
	return list
}

// runsOf is like runsPerPoint for the curves of the trends.
func runsOf(list []trend) string {
	drawn := make([]scaling.Curve, len(list))
	for i, t := range list {
		drawn[i] = t.curve
	}
	return runsPerPoint(drawn, list)
}

// measureAxis returns the axis for a measure's values, in its unit.
func measureAxis(m measure.Measure, longest float64) axis {
	switch {
	case m.Show == measure.Seconds:
		return shortTimeAxis(m.Title, longest)
	case m.Show == measure.Percent:
		a := newAxis(m.Title + " (%)")
		a.unit = 0.01
		return a
	case m.Show == measure.Size:
		return sizeAxis(m.Title, longest)
	case m.Unit != "":
		return newAxis(m.Title + " (" + m.Unit + ")")
	}
	return newAxis(m.Title)
}

// sizeAxis returns a linear axis in bytes.
func sizeAxis(what string, largest float64) axis {
	a := newAxis(what + " (B)")
	for _, u := range []struct {
		unit float64
		name string
	}{{1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1 << 40, "TiB"}} {
		if largest >= u.unit {
			a.unit, a.title = u.unit, what+" ("+u.name+")"
		}
	}
	return a
}

// numberAxis returns the axis of the curves. It is logarithmic, with a tick at each number, if
// the numbers are integers and widely spread, as for workers. Otherwise it is linear.
func numberAxis(list []trend) axis {
	title := axisName(list[0].curve)
	if title == measure.Bytes {
		a := logAxis("size of the whole array")
		a.binary, a.bytes = true, true
		return a
	}
	if title == measure.Rate && list[0].measure.At.Has(title) {
		title += " (requests/s)"
	}
	var least, most float64
	whole := true
	for i, t := range list {
		for k, p := range t.curve.Points {
			x := p.At.Number
			if i == 0 && k == 0 {
				least, most = x, x
			}
			least, most = min(least, x), max(most, x)
			whole = whole && x == math.Trunc(x) && math.Abs(x) < 1<<40
		}
	}
	a := newAxis(title)
	a.log, a.whole = least > 0 && most/least >= 4, whole
	if a.log && whole {
		a.at = []int{}
	}
	return a
}

// groups draws the trends over words; each word has a column per series.
func (d *drawing) groups(c *chart) {
	var words []scaling.Value
	for _, t := range d.list {
		for _, p := range t.curve.Points {
			if !slices.Contains(words, p.At) {
				words = append(words, p.At)
			}
		}
	}
	slices.SortFunc(words, scaling.Value.Compare)
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = shown(w.String())
	}
	c.x = namesAxis(axisName(d.list[0].curve), names)
	for style := range d.list {
		d.group(c, style, words)
	}
}

// group draws one trend over words.
func (d *drawing) group(c *chart, style int, words []scaling.Value) {
	const group = 0.76 // share of a word's space for its lines
	t, width := d.list[style], group/float64(len(d.list))
	strong := 0.0
	if d.columns {
		strong = 0.55
	}
	var last *XY
	for i := range t.curve.Points {
		p := &t.curve.Points[i]
		s := t.at(p)
		e := d.of(s)
		if e == nil {
			continue
		}
		left := float64(slices.Index(words, p.At)) - group/2 + float64(style)*width
		middle := left + width/2
		if d.columns {
			c.add(Mark{Kind: Block, Series: t.name, Points: []XY{{left + width*0.05, 0}, {left + width*0.95, e.Value}}, style: style, strong: strong})
		}
		for _, x := range s.Values {
			c.add(Mark{Kind: Dot, Series: t.name, Points: []XY{{middle, d.scale(s, x)}}, style: style, alone: len(s.Values) == 1})
		}
		if in := e.Interval; in != nil {
			c.add(Mark{Kind: Bar, Series: t.name, Points: []XY{{middle, in.Low}, {middle, in.High}}, style: style})
		}
		last = &XY{left + width, e.Value}
		if !d.columns {
			c.add(Mark{Kind: Median, Series: t.name, Points: []XY{{middle, e.Value}}, style: style})
			last.X = middle
		}
	}
	if last != nil && len(d.list) > 1 {
		c.add(Mark{Kind: Label, Series: t.name, Points: []XY{*last}, Text: t.name, style: style, strong: strong})
	}
}

// errAxis is returned for figures that only support an axis of workers.
var errAxis = errors.New("this figure is over workers; draw a measure by its name over another axis (-x)")
