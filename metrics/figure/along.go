package figure

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// along draws any measure over the axis of the curves: a line a series where it
// is of numbers, columns side by side where it is of words.
func along(m measure.Measure) build {
	return func(curves []scaling.Curve, _ []scaling.Observation) ([]chart, error) {
		list := measured(curves, m)
		if list == nil {
			return nil, fmt.Errorf("nothing to draw: no run has %s", m.Title)
		}
		var longest, least float64
		words := false
		for _, t := range list {
			for i := range t.curve.Points {
				p := &t.curve.Points[i]
				words = words || !p.At.Numeric()
				for _, x := range t.at(p).Values {
					if longest == 0 || x > longest {
						longest = x
					}
					if least == 0 || x < least {
						least = x
					}
				}
			}
		}
		c := chart{y: measureAxis(m, longest)}
		// A range of more than a decade is read on a log scale; columns rise from 0.
		c.y.log = !words && least > 0 && longest/least > 10
		c.y.zero = !c.y.log
		if words {
			c.columns(list)
		} else {
			c.x = numberAxis(list)
			for i, t := range list {
				c.addTrend(i, t, func(_ *scaling.Point, x float64) float64 { return x }, func(s *scaling.Summary) *scaling.Estimate { return s.Median })
			}
		}
		c.caption = []string{"Dots: runs; markers: medians."}
		if words {
			c.caption[0] = "Dots: runs; columns: medians."
		}
		c.caption = append(c.caption, runsOf(curves, list))
		c.caption = append(c.caption, bars(estimates(list, func(s *scaling.Summary) *scaling.Estimate { return s.Median }), "exact binomial interval of the median")...)
		return []chart{c}, c.fit()
	}
}

// measured are the series that have the measure, whether they have a base or
// not.
func measured(curves []scaling.Curve, m measure.Measure) []trend {
	var list []trend
	for _, cv := range curves {
		if cv.Measured(m.Name) {
			list = append(list, trend{curve: cv, measure: m, name: shown(cv.Series)})
		}
	}
	return list
}

// runsOf is runsPerPoint of the curves that are drawn.
func runsOf(curves []scaling.Curve, list []trend) string {
	drawn := make([]scaling.Curve, len(list))
	for i, t := range list {
		drawn[i] = t.curve
	}
	return runsPerPoint(drawn, list)
}

// measureAxis is the scale of a measure's values, in its unit.
func measureAxis(m measure.Measure, longest float64) axis {
	switch {
	case m.Show == measure.Seconds:
		return shortTimeAxis(m.Title, longest)
	case m.Show == measure.Percent:
		a := newAxis(m.Title + " (%)")
		a.unit = 0.01
		return a
	case m.Unit != "":
		return newAxis(m.Title + " (" + m.Unit + ")")
	}
	return newAxis(m.Title)
}

// numberAxis is the axis of the curves: counts on a log scale with a tick at
// each, as of workers, where they are whole and spread; else linear.
func numberAxis(list []trend) axis {
	title := shown(list[0].curve.Axis)
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
	a.log = least > 0 && most/least >= 4
	if a.log && whole {
		a.at = []int{}
	}
	return a
}

// columns draws the trends over words: a group of columns for each word, one a
// series.
func (c *chart) columns(list []trend) {
	var words []scaling.Value
	for _, t := range list {
		for _, p := range t.curve.Points {
			if !slices.Contains(words, p.At) {
				words = append(words, p.At)
			}
		}
	}
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = shown(w.String())
	}
	c.x = namesAxis(shown(list[0].curve.Axis), names)
	const group = 0.76 // of the room that a word has
	width := group / float64(len(list))
	for style, t := range list {
		var last *XY
		for i := range t.curve.Points {
			p := &t.curve.Points[i]
			s := t.at(p)
			if s.Median == nil {
				continue
			}
			left := float64(slices.Index(words, p.At)) - group/2 + float64(style)*width
			middle := left + width/2
			c.add(Mark{Kind: Block, Series: t.name, Points: []XY{{left + width*0.05, 0}, {left + width*0.95, s.Median.Value}}, style: style, strong: 0.55})
			for _, x := range s.Values {
				c.add(Mark{Kind: Dot, Series: t.name, Points: []XY{{middle, x}}, style: style, alone: len(s.Values) == 1})
			}
			if in := s.Median.Interval; in != nil {
				c.add(Mark{Kind: Bar, Series: t.name, Points: []XY{{middle, in.Low}, {middle, in.High}}, style: style})
			}
			last = &XY{left + width, s.Median.Value}
		}
		if last != nil && len(list) > 1 {
			c.add(Mark{Kind: Label, Series: t.name, Points: []XY{*last}, Text: t.name, style: style, strong: 0.55})
		}
	}
}

// errAxis is for figures that are about numbers of workers and nothing else.
var errAxis = errors.New("this figure is over workers; draw a measure by its name over another axis (-x)")
