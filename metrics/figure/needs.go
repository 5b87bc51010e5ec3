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

// needs draws which fraction of a measure remains with less of each resource, in one panel per
// resource. Over amounts, it draws a line with a ring at the sufficient amount; over words,
// columns.
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
	p := panelOfNeeds{answers: answers, places: placesOfNeeds(answers, key), amount: func(v scaling.Value) string { return shown(amount(key, v)) }}
	names := make([]string, len(p.places))
	for i, v := range p.places {
		names[i] = p.amount(v)
	}
	p.title, p.x, p.y = shown(last(key)), namesAxis(shown(last(key)), names), newAxis("of the speed with all of it (%)")
	p.y.unit, p.y.zero = 0.01, true
	least := 1 - answers[0].Epsilon
	p.add(Mark{Kind: Target, Points: []XY{{-0.4, least}, {float64(len(p.places)) - 0.6, least}}, style: -1})
	for style, a := range answers {
		if f := a.Factor(key); f != nil {
			p.factor(style, f)
		}
	}
	for style, a := range answers {
		if a.Value != nil {
			p.caption = append(p.caption, p.whole(style, &a))
		}
	}
	what := answers[0].Measure.Title
	if answers[0].Measure.Better == measure.Lower {
		what = "speed, by the " + what
	}
	p.caption = append(p.caption, fmt.Sprintf("Share of the %s that remains with less of one resource, all else unchanged. Dots: runs divided by the median with all of it; bars: interval of the ratio; dashed: %s, the required share.", shown(what), number.ExactPercent(least)))
	p.caption = append(p.caption, "Rings: the least that is enough; thin rings: may be enough.")
	return p.chart
}

// placesOfNeeds lists the amounts in all answers, smallest first.
func placesOfNeeds(answers []sensitivity.Answer, key string) []scaling.Value {
	var places []scaling.Value
	ordered := true
	for _, a := range answers {
		f := a.Factor(key)
		if f == nil {
			continue
		}
		ordered = ordered && f.Ordered
		for _, l := range slices.Backward(f.Levels) {
			if !slices.Contains(places, l.At) {
				places = append(places, l.At)
			}
		}
	}
	if ordered {
		slices.SortFunc(places, func(x, y scaling.Value) int { return sensitivity.Compare(key, x, y) })
	} else {
		slices.SortFunc(places, scaling.Value.Compare)
	}
	return places
}

// panelOfNeeds builds the panel of one resource.
type panelOfNeeds struct {
	chart
	answers []sensitivity.Answer
	places  []scaling.Value // positions on the axis
	amount  func(scaling.Value) string
}

// name returns the label of an answer, "" if there is only one.
func (p *panelOfNeeds) name(style int) string {
	if len(p.answers) == 1 {
		return ""
	}
	return shown(p.answers[style].Series)
}

// at returns the position of an amount; those of several answers are side by side.
func (p *panelOfNeeds) at(style int, v scaling.Value) float64 {
	shift := 0.0
	if n := len(p.answers); n > 1 {
		shift = 0.4 * (float64(style)/float64(n-1) - 0.5)
	}
	return float64(slices.Index(p.places, v)) + shift
}

// factor draws the remaining fraction for one answer.
func (p *panelOfNeeds) factor(style int, f *sensitivity.Factor) {
	name := p.name(style)
	line := Mark{Kind: Line, Series: name, style: style}
	var marks []Mark
	var out []string
	for _, l := range slices.Backward(f.Levels) {
		x := p.at(style, l.At)
		if l.Verdict != "" && l.Runs == 0 && l.At != f.Reference {
			out = append(out, p.amount(l.At))
			marks = append(marks, Mark{Kind: Missed, Series: name, Points: []XY{{x, 0}}, style: style})
			continue
		}
		line.Points = append(line.Points, XY{x, kept(&l)})
		marks = append(marks, p.level(style, f.Ordered, &l)...)
	}
	if f.Ordered && len(line.Points) > 1 {
		p.add(line)
	}
	for _, m := range marks {
		p.add(m)
	}
	if ring, may := bend(f); ring != nil && f.Ordered {
		m := Mark{Kind: Bend, Series: name, style: style}
		for _, l := range []*sensitivity.Level{may, ring} {
			if l != nil {
				m.Points = append(m.Points, XY{p.at(style, l.At), kept(l)})
			}
		}
		p.add(m)
	}
	if name != "" && len(line.Points) > 0 {
		p.add(Mark{Kind: Label, Series: name, Points: line.Points[len(line.Points)-1:], Text: name, style: style})
	}
	if out != nil {
		p.caption = append(p.caption, fmt.Sprintf("%sMemory ran out (×) at %s.", prefix(name), join(out)))
	}
}

// level returns the marks at one amount: the runs, the interval, and the median, or a
// column if amounts have no order.
func (p *panelOfNeeds) level(style int, ordered bool, l *sensitivity.Level) []Mark {
	name, x, y := p.name(style), p.at(style, l.At), kept(l)
	var marks []Mark
	if !ordered {
		wide := 0.35 / float64(len(p.answers))
		marks = append(marks, Mark{Kind: Block, Series: name, Points: []XY{{x - wide, 0}, {x + wide, y}}, style: style, strong: 0.55})
	}
	for _, gain := range l.Gains {
		marks = append(marks, Mark{Kind: Dot, Series: name, Points: []XY{{x, gain}}, style: style, alone: len(l.Gains) == 1})
	}
	if l.Ratio != nil && l.Ratio.Interval != nil {
		in := l.Ratio.Interval
		marks = append(marks, Mark{Kind: Bar, Series: name, Points: []XY{{x, in.Low}, {x, in.High}}, style: style})
	}
	if ordered {
		marks = append(marks, Mark{Kind: Median, Series: name, Points: []XY{{x, y}}, style: style})
	}
	return marks
}

// kept returns the fraction of the measure that remains at an amount; 1 at the reference.
func kept(l *sensitivity.Level) float64 {
	if l.Ratio == nil {
		return 1
	}
	return l.Ratio.Value
}

// whole returns a sentence with the value of the measure at the full amount of the resource.
func (p *panelOfNeeds) whole(style int, a *sensitivity.Answer) string {
	value := a.Measure.Text(a.Value.Value)
	if unit := a.Measure.Unit; unit != "" && unit != "s" {
		value += " " + unit
	}
	return fmt.Sprintf("%sAll of it: %s %s (%s).", prefix(p.name(style)), shown(a.Measure.Title), value, number.Count(a.Value.Runs, "run"))
}

// bend returns the smallest level that is sufficient, and the smallest level below it that may
// be; nil: none.
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
