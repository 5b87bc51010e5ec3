package figure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
)

// needs draws what less of each resource keeps of a measure, a panel for each: a line
// along amounts, with what is enough ringed, columns over words.
func needs(d Data, _ Options) ([]chart, error) {
	var keys []string
	for _, a := range d.Resources {
		for _, f := range a.Factors {
			if !slices.Contains(keys, f.Key) {
				keys = append(keys, f.Key)
			}
		}
	}
	if keys == nil {
		return nil, errors.New("nothing to draw: no run has less of anything with all else unchanged")
	}
	var charts []chart
	for _, key := range keys {
		c := needsPanel(d.Resources, key, d.Amount)
		if err := c.fit(); err != nil {
			return nil, err
		}
		charts = append(charts, c)
	}
	return charts, nil
}

// needsPanel is the panel of one resource.
func needsPanel(answers []sensitivity.Answer, key string, amount func(string, scaling.Value) string) chart {
	// The places of all answers, the least first.
	var places []scaling.Value
	ordered := true
	for _, a := range answers {
		if f := a.Factor(key); f != nil {
			ordered = ordered && f.Ordered
			for _, l := range slices.Backward(f.Levels) {
				if !slices.Contains(places, l.At) {
					places = append(places, l.At)
				}
			}
		}
	}
	if ordered {
		slices.SortFunc(places, func(x, y scaling.Value) int { return sensitivity.Compare(key, x, y) })
	} else {
		slices.SortFunc(places, scaling.Value.Compare)
	}
	names := make([]string, len(places))
	for i, v := range places {
		names[i] = shown(amount(key, v))
	}
	c := chart{title: shown(last(key)), x: namesAxis(shown(last(key)), names), y: newAxis("of the speed with all of it (%)")}
	c.y.unit, c.y.zero = 0.01, true
	least := 1 - answers[0].Epsilon
	ends := []XY{{-0.4, least}, {float64(len(places)) - 0.6, least}}
	c.add(Mark{Kind: Target, Points: ends, style: -1})
	for style, a := range answers {
		f := a.Factor(key)
		if f == nil {
			continue
		}
		name := ""
		if len(answers) > 1 {
			name = shown(a.Series)
		}
		shift := 0.0
		if n := len(answers); n > 1 {
			shift = 0.4 * (float64(style)/float64(n-1) - 0.5)
		}
		at := func(v scaling.Value) float64 { return float64(slices.Index(places, v)) + shift }
		line := Mark{Kind: Line, Series: name, style: style}
		var marks []Mark
		var out []string
		for _, l := range slices.Backward(f.Levels) {
			x, y := at(l.At), 1.0
			switch {
			case l.Verdict != "" && l.Runs == 0 && l.At != f.Reference:
				out = append(out, shown(amount(key, l.At)))
				marks = append(marks, Mark{Kind: Missed, Series: name, Points: []XY{{x, 0}}, style: style})
				continue
			case l.Ratio != nil:
				y = l.Ratio.Value
			}
			if !f.Ordered {
				wide := 0.35 / float64(len(answers))
				marks = append(marks, Mark{Kind: Block, Series: name, Points: []XY{{x - wide, 0}, {x + wide, y}}, style: style, strong: 0.55})
			}
			for _, gain := range l.Gains {
				marks = append(marks, Mark{Kind: Dot, Series: name, Points: []XY{{x, gain}}, style: style, alone: len(l.Gains) == 1})
			}
			if l.Ratio != nil && l.Ratio.Interval != nil {
				in := l.Ratio.Interval
				marks = append(marks, Mark{Kind: Bar, Series: name, Points: []XY{{x, in.Low}, {x, in.High}}, style: style})
			}
			line.Points = append(line.Points, XY{x, y})
			if f.Ordered {
				marks = append(marks, Mark{Kind: Median, Series: name, Points: []XY{{x, y}}, style: style})
			}
		}
		if f.Ordered && len(line.Points) > 1 {
			c.add(line)
		}
		for _, m := range marks {
			c.add(m)
		}
		if ring, may := bend(f); ring != nil && f.Ordered {
			m := Mark{Kind: Bend, Series: name, style: style}
			for _, l := range []*sensitivity.Level{may, ring} {
				if l == nil {
					continue
				}
				y := 1.0
				if l.Ratio != nil {
					y = l.Ratio.Value
				}
				m.Points = append(m.Points, XY{at(l.At), y})
			}
			c.add(m)
		}
		if name != "" && len(line.Points) > 0 {
			c.add(Mark{Kind: Label, Series: name, Points: line.Points[len(line.Points)-1:], Text: name, style: style})
		}
		if out != nil {
			c.caption = append(c.caption, fmt.Sprintf("%sMemory ran out (×) at %s.", prefix(name), join(out)))
		}
	}
	for _, a := range answers {
		name := ""
		if len(answers) > 1 {
			name = shown(a.Series)
		}
		if a.Value != nil {
			unit := a.Measure.Unit
			value := a.Measure.Text(a.Value.Value)
			if unit != "" && unit != "s" {
				value += " " + unit
			}
			c.caption = append(c.caption, fmt.Sprintf("%sAll of it: %s %s (%s).", prefix(name), shown(a.Measure.Title), value, number.Count(a.Value.Runs, "run")))
		}
	}
	what := answers[0].Measure.Title
	if answers[0].Measure.Better == measure.Lower {
		what = "speed, by the " + what
	}
	c.caption = append(c.caption, fmt.Sprintf("What less of one resource keeps of the %s, all else unchanged. Dots: runs, over the median with all of it; bars: interval of the ratio; dashed: %s, what must be kept.", shown(what), number.ExactPercent(least)))
	c.caption = append(c.caption, "Rings: the least that is enough; thin rings: may be enough.")
	return c
}

// bend is the least level that is enough, and the least below it of which the runs say
// nothing yet; nil for none.
func bend(f *sensitivity.Factor) (ring, may *sensitivity.Level) {
	if f.Enough == nil {
		return nil, nil
	}
	below := false
	for i := range f.Levels {
		l := &f.Levels[i]
		switch {
		case l.At == *f.Enough:
			ring, below = l, true
		case below && l.Verdict == sensitivity.TooLittle:
			return ring, may
		case below && l.Ratio != nil:
			may = l
		}
	}
	return ring, may
}

func prefix(series string) string {
	if series == "" {
		return ""
	}
	return series + ": "
}
