package figure

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// Priced is what one configuration takes and costs. Both are of the same work,
// or they cannot be compared.
type Priced struct {
	Series  string
	Workers int
	Runs    int
	Seconds float64 // median over runs
	Cost    float64 // in the caller's currency, median over runs
	// Nil where none can be had.
	SecondsInterval, CostInterval *scaling.Interval
	Front                         bool // nothing else takes less and costs no more, or the reverse
}

// DrawCost draws cost against time, with the Pareto front: whatever stands
// above and to the right of it is never worth it. What says of which work
// ("one epoch", "accuracy 0.75"), currency what the cost is in.
func DrawCost(list []Priced, what, currency string, o Options) (*Figure, error) {
	var series []string
	longest, shortest := 0.0, math.Inf(1)
	dearest, cheapest := 0.0, math.Inf(1)
	list = slices.DeleteFunc(slices.Clone(list), func(p Priced) bool {
		return !(p.Seconds > 0) || !(p.Cost >= 0) || math.IsInf(p.Seconds, 1) || math.IsInf(p.Cost, 1)
	})
	for _, p := range list {
		if !slices.Contains(series, p.Series) {
			series = append(series, p.Series)
		}
		longest, shortest = max(longest, p.Seconds), min(shortest, p.Seconds)
		dearest, cheapest = max(dearest, p.Cost), min(cheapest, p.Cost)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("cost figure: %w", errors.New("nothing to draw: no configuration has both a time and a cost"))
	}
	what, currency = shown(what), shown(currency)
	c := chart{x: timeAxis("time to "+what, longest), y: newAxis(fmt.Sprintf("cost (%s)", currency)), scattered: true}
	// Decades on one page need a log axis; else both begin at 0, so that twice
	// as dear looks twice as far.
	c.x.log, c.y.log = longest > 10*shortest, cheapest > 0 && dearest > 10*cheapest
	c.x.zero, c.y.zero = !c.x.log, !c.y.log
	var front []Priced
	var labels []Mark
	fewest, most, bare := math.MaxInt, 0, false
	for _, p := range list {
		style := slices.Index(series, p.Series)
		name := shown(p.Series)
		at := XY{p.Seconds, p.Cost}
		if in := p.SecondsInterval; drawable(in) {
			c.add(Mark{Kind: Bar, Series: name, Points: []XY{{in.Low, at.Y}, {in.High, at.Y}}, style: style, alone: true})
		}
		if in := p.CostInterval; drawable(in) {
			c.add(Mark{Kind: Bar, Series: name, Points: []XY{{at.X, in.Low}, {at.X, in.High}}, style: style, alone: true})
		}
		bare = bare || !drawable(p.SecondsInterval) || !drawable(p.CostInterval)
		c.add(Mark{Kind: Median, Series: name, Points: []XY{at}, style: style})
		text := workers(p.Workers)
		if len(series) > 1 {
			text = name + ", " + text
		}
		labels = append(labels, Mark{Kind: Label, Series: name, Points: []XY{at}, Text: text, style: style})
		fewest, most = min(fewest, p.Runs), max(most, p.Runs)
		if p.Front {
			front = append(front, p)
		}
	}
	slices.SortFunc(front, func(a, b Priced) int {
		switch {
		case a.Seconds < b.Seconds:
			return -1
		case a.Seconds > b.Seconds:
			return 1
		}
		return 0
	})
	if len(front) > 1 {
		var stairs []XY
		for i, p := range front {
			if i > 0 { // until the next one is there, the last one is the cheapest
				stairs = append(stairs, XY{p.Seconds, front[i-1].Cost})
			}
			stairs = append(stairs, XY{p.Seconds, p.Cost})
		}
		c.marks = append([]Mark{{Kind: Front, Points: stairs, style: -1}}, c.marks...)
		c.caption = append(c.caption, "Grey stairs: the Pareto front; above and right of it, another choice is faster and no dearer, or cheaper and no slower.")
	}
	c.marks = append(c.marks, labels...)
	runs := fmt.Sprint(most)
	if fewest < most {
		runs = fmt.Sprintf("%d to %d", fewest, most)
	}
	c.caption = append(c.caption, "Markers: medians. Runs per point: "+runs+".")
	if bare {
		c.caption = append(c.caption, "Bars: intervals of the medians; a point without them has insufficient runs for an interval.")
	} else {
		c.caption = append(c.caption, "Bars: intervals of the medians.")
	}
	if err := c.fit(); err != nil {
		return nil, fmt.Errorf("cost figure: %w", err)
	}
	return compose("cost", []chart{c}, o)
}

// drawable reports whether there is an interval with two ends that have a place
// on an axis. Where runs miss a target there may be none.
func drawable(in *scaling.Interval) bool {
	return in != nil && in.Low > 0 && in.High >= in.Low && !math.IsInf(in.High, 1)
}

// Relative is one configuration's time and cost over the baseline's: ratios of
// medians, with the interval over all ratios of runs; nil where there is none.
type Relative struct {
	Name       string
	Time, Cost *scaling.Estimate
}

// DrawNormalised draws time and cost as multiples of the baseline's, with a
// dashed line at 1: what ends left of it is better than the baseline.
func DrawNormalised(list []Relative, baseline string, o Options) (*Figure, error) {
	parts := []struct {
		name  string
		of    func(Relative) *scaling.Estimate
		style int
	}{
		{"time", func(r Relative) *scaling.Estimate { return r.Time }, 0},
		{"cost", func(r Relative) *scaling.Estimate { return r.Cost }, 1},
	}
	c := chart{x: newAxis("times the baseline's")}
	c.x.zero = true
	names := make([]string, len(list))
	drawn := map[string]float64{} // by part: the place of its first bar's end
	var marks, labels []Mark
	var ratios []*scaling.Interval // of all that have an error
	for i, r := range list {
		row := float64(len(list) - 1 - i) // the first on top
		names[len(list)-1-i] = shown(r.Name)
		for k, part := range parts {
			e := part.of(r)
			if e == nil || !(e.Value >= 0) || math.IsInf(e.Value, 1) {
				c.caption = append(c.caption, fmt.Sprintf("%s: no %s.", shown(r.Name), part.name))
				continue
			}
			foot := row + 0.04
			if k > 0 {
				foot = row - 0.36
			}
			marks = append(marks, Mark{Kind: Block, Series: part.name, Points: []XY{{0, foot}, {e.Value, foot + 0.32}}, style: part.style, strong: 0.85})
			middle := foot + 0.16
			in := e.Interval
			if !drawable(in) {
				in = nil
			}
			if in != nil {
				marks = append(marks, Mark{Kind: Bar, Series: part.name, Points: []XY{{in.Low, middle}, {in.High, middle}}, style: neutral, alone: true})
			}
			if in != nil || e.Value != 1 { // the baseline's own ratio has no error
				ratios = append(ratios, in)
			}
			if _, had := drawn[part.name]; !had {
				drawn[part.name] = e.Value
				labels = append(labels, Mark{Kind: Label, Series: part.name, Points: []XY{{e.Value, middle}}, Text: part.name, style: part.style, strong: 0.85})
			}
		}
	}
	if marks == nil {
		return nil, fmt.Errorf("normalised figure: %w", errors.New("nothing to draw: no configuration has a time or a cost to hold against the baseline's"))
	}
	c.y = namesAxis("", names)
	c.marks = append(append(marks, Mark{Kind: Target, Points: []XY{{1, -0.6}, {1, float64(len(list)) - 0.4}}, style: -1}), labels...)
	with := 0
	for _, in := range ratios {
		if in != nil {
			with++
		}
	}
	spread := "Thin bars: Hodges–Lehmann intervals over all ratios of runs."
	switch {
	case with == 0:
		spread = "No intervals: insufficient runs for one."
	case with < len(ratios):
		spread += " Where there is none, there are insufficient runs for one."
	}
	c.caption = append([]string{fmt.Sprintf("Dashed: 1, the baseline (%s). Ratios of medians.", shown(baseline)), spread}, c.caption...)
	if err := c.fit(); err != nil {
		return nil, fmt.Errorf("normalised figure: %w", err)
	}
	return compose("normalised", []chart{c}, o)
}
