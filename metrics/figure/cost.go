package figure

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// manyConfigurations is the number of configurations above which one plot is too full.
const manyConfigurations = 12

// choice is a configuration and its name in a figure.
type choice struct {
	cost.Row
	name string
}

// choices are the configurations in one panel.
type choices struct {
	title string // "" for the only panel
	list  []choice
}

// valueOf returns a parameter of a configuration as text.
func valueOf(r *cost.Row, key string) string { return placeOf(r, key).String() }

func placeOf(r *cost.Row, key string) scaling.Value {
	if key == scaling.Workers {
		return scaling.At(r.Workers)
	}
	return scaling.ValueOf(r.Parameters[key])
}

// differing returns the parameters in which configurations differ, workers last.
func differing(rows []cost.Row) []string {
	set := map[string]bool{}
	for i := range rows {
		for key := range rows[i].Parameters {
			set[key] = true
		}
	}
	delete(set, scaling.Workers)
	return slices.DeleteFunc(append(slices.Sorted(maps.Keys(set)), scaling.Workers), func(key string) bool {
		return !slices.ContainsFunc(rows, func(r cost.Row) bool { return valueOf(&r, key) != valueOf(&rows[0], key) })
	})
}

// split returns the panels, one for each value of the parameter by, with their configurations. If
// by is "", it chooses a parameter if there are too many configurations for one plot.
func split(c cost.Comparison, by string) (panels []choices, key string) {
	keys := differing(c.Rows)
	if by == "" && len(c.Rows) > manyConfigurations {
		by = leastFull(c, keys)
	}
	if _, values := fullest(c.Rows, by); by == "" || values < 2 {
		return []choices{together(c.Rows, keys)}, ""
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == by })
	for _, r := range slices.SortedStableFunc(slices.Values(c.Rows), func(a, b cost.Row) int { return placeOf(&a, by).Compare(placeOf(&b, by)) }) {
		title := panelTitle(by, valueOf(&r, by))
		i := slices.IndexFunc(panels, func(p choices) bool { return p.title == title })
		if i < 0 {
			i, panels = len(panels), append(panels, choices{title: title})
		}
		panels[i].list = append(panels[i].list, choice{r, nameBy(&r, keys)})
	}
	return panels, by
}

// fullest returns how many configurations share the most frequent value of a parameter, and
// how many values it has.
func fullest(rows []cost.Row, key string) (most, values int) {
	count := map[string]int{}
	for i := range rows {
		v := valueOf(&rows[i], key)
		count[v]++
		most = max(most, count[v])
	}
	return most, len(count)
}

// leastFull returns the parameter that gives the fewest panels without any overfull one; "" if none
// exists. It never returns a parameter that defines the baseline.
func leastFull(c cost.Comparison, keys []string) string {
	by, best := "", [2]int{math.MaxInt, math.MaxInt}
	for _, key := range keys {
		if slices.ContainsFunc(c.Options.Baseline, func(b scaling.Condition) bool { return b.Key == key || last(key) == b.Key }) {
			continue
		}
		most, values := fullest(c.Rows, key)
		if most == 1 {
			continue // no panel would have anything to compare
		}
		if rank := [2]int{max(most, manyConfigurations), values}; slices.Compare(rank[:], best[:]) < 0 {
			by, best = key, rank
		}
	}
	return by
}

// together returns a single panel with all configurations, sorted by series and workers.
func together(rows []cost.Row, keys []string) choices {
	one := choices{}
	series := map[string]bool{}
	for _, r := range rows {
		series[r.Series] = true
	}
	for _, r := range rows {
		name := shown(r.Series)
		switch {
		case len(series) == 1:
			name = workers(r.Workers)
		case slices.Contains(keys, scaling.Workers):
			name += ", " + workers(r.Workers)
		}
		one.list = append(one.list, choice{r, name})
	}
	return one
}

// nameBy returns a name for a configuration: its values of the parameters in which the panel's
// configurations differ.
func nameBy(r *cost.Row, keys []string) string {
	var words []string
	for _, key := range keys {
		switch v := shown(valueOf(r, key)); {
		case key == scaling.Workers:
			words = append(words, workers(r.Workers))
		case len(keys) == 1 || key == "framework":
			words = append(words, v)
		default:
			words = append(words, shown(last(key))+"="+v)
		}
	}
	return strings.Join(words, " ")
}

// last is the last part of a parameter's path.
func last(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// costs draws cost against time with the Pareto front or, for a service, cost against demand.
func costs(d Data, o Options) ([]chart, error) {
	if d.Bill == nil {
		return single(demand)(d, o)
	}
	c := *d.Bill
	c.Rows = slices.DeleteFunc(slices.Clone(c.Rows), func(r cost.Row) bool {
		return r.Time == nil || r.Cost == nil || !(r.Time.Value > 0) || !(r.Cost.Value >= 0) || math.IsInf(r.Time.Value, 1) || math.IsInf(r.Cost.Value, 1)
	})
	if len(c.Rows) == 0 {
		return nil, errors.New("nothing to draw: no configuration has both a time and a cost")
	}
	panels, key := split(c, o.By)
	var styles []string // the index of a name is its style
	var charts []chart
	for _, p := range panels {
		one := chart{title: p.title, scattered: true, own: key != ""}
		one.tradeoff(c, p, &styles)
		if key != "" {
			one.caption = append(one.caption, perPanel(key))
		}
		if err := one.fit(); err != nil {
			return nil, err
		}
		charts = append(charts, one)
	}
	return charts, nil
}

func perPanel(key string) string { return "A panel for each " + shown(last(key)) + "." }

// tradeoff draws one panel's configurations. In a single panel, a style is a series and
// each point has a label; in one of several, a style is a configuration.
func (c *chart) tradeoff(of cost.Comparison, p choices, styles *[]string) {
	longest, shortest := 0.0, math.Inf(1)
	dearest, cheapest := 0.0, math.Inf(1)
	for _, one := range p.list {
		longest, shortest = max(longest, one.Time.Value), min(shortest, one.Time.Value)
		dearest, cheapest = max(dearest, one.Cost.Value), min(cheapest, one.Cost.Value)
	}
	what := "time of "
	if of.Options.Work.Target != nil {
		what = "time to "
	}
	c.x, c.y = timeAxis(what+of.Options.Work.String(), longest), newAxis(fmt.Sprintf("cost (%s)", shown(of.Currency)))
	// A range of decades in one figure needs a log axis. Otherwise both axes start at 0, so
	// that twice the cost is twice the distance.
	c.x.log, c.y.log = longest > 10*shortest, cheapest > 0 && dearest > 10*cheapest
	c.x.zero, c.y.zero = !c.x.log, !c.y.log
	rows := make([]cost.Row, len(p.list))
	for i, one := range p.list {
		rows[i] = one.Row
	}
	if p.title != "" {
		cost.Front(rows, of.Options) // configurations of other panels are not alternatives
	}
	var front []XY
	var labels []Mark
	fewest, most, bare := math.MaxInt, 0, false
	for i, one := range p.list {
		look := shown(one.Series)
		if p.title != "" {
			look = one.name
		}
		style := slices.Index(*styles, look)
		if style < 0 {
			style = len(*styles)
			*styles = append(*styles, look)
		}
		at := XY{one.Time.Value, one.Cost.Value}
		if in := one.Time.Interval; drawable(in) {
			c.add(Mark{Kind: Bar, Series: look, Points: []XY{{in.Low, at.Y}, {in.High, at.Y}}, style: style, alone: true})
		}
		if in := one.Cost.Interval; drawable(in) {
			c.add(Mark{Kind: Bar, Series: look, Points: []XY{{at.X, in.Low}, {at.X, in.High}}, style: style, alone: true})
		}
		bare = bare || !drawable(one.Time.Interval) || !drawable(one.Cost.Interval)
		c.add(Mark{Kind: Median, Series: look, Points: []XY{at}, style: style})
		labels = append(labels, Mark{Kind: Label, Series: look, Points: []XY{at}, Text: one.name, style: style})
		fewest, most = min(fewest, one.Time.Runs), max(most, one.Time.Runs)
		if rows[i].Front {
			front = append(front, at)
		}
	}
	c.front(front)
	c.marks = append(c.marks, labels...)
	runs := fmt.Sprint(most)
	if fewest < most {
		runs = fmt.Sprintf("%d to %d", fewest, most)
	}
	c.caption = append(c.caption, "Markers: medians. Runs per point: "+runs+".")
	if bare {
		c.caption = append(c.caption, "Bars: intervals of the medians; a point without one has too few runs, or equal ones.")
	} else {
		c.caption = append(c.caption, "Bars: intervals of the medians.")
	}
}

// front draws the Pareto front below everything else.
func (c *chart) front(points []XY) {
	if len(points) < 2 {
		return
	}
	slices.SortFunc(points, func(a, b XY) int { return cmp.Compare(a.X, b.X) })
	var stairs []XY
	for i, p := range points {
		if i > 0 { // until the next point's time, the last one is the cheapest
			stairs = append(stairs, XY{p.X, points[i-1].Y})
		}
		stairs = append(stairs, p)
	}
	c.marks = append([]Mark{{Kind: Front, Points: stairs, style: -1}}, c.marks...)
	c.caption = append(c.caption, "Grey stairs: the Pareto front; above and right of it, another choice is faster and no dearer, or cheaper and no slower.")
}

// drawable reports whether an interval has two ends that an axis can show. If some runs miss a
// target, it may not.
func drawable(in *scaling.Interval) bool {
	return in != nil && in.Low > 0 && in.High >= in.Low && !math.IsInf(in.High, 1)
}

// normalised draws time and cost relative to the baseline, with a dashed line at 1; left of
// it is better. It returns an error if every configuration is its own baseline.
func normalised(d Data, o Options) ([]chart, error) {
	var c cost.Comparison
	if d.Bill != nil {
		c = *d.Bill
	}
	ratios := func(r *cost.Row) []*scaling.Estimate {
		return []*scaling.Estimate{r.TimeNormalised, r.CostNormalised}
	}
	lowest, highest := math.Inf(1), 0.0
	measured, others := false, false
	for i := range c.Rows {
		for _, e := range ratios(&c.Rows[i]) {
			if positive(e) {
				lowest, highest = min(lowest, e.Value), max(highest, e.Value)
				measured, others = true, others || e.Why != cost.AtBaseline
			}
		}
	}
	switch {
	case !measured:
		return nil, errors.New("nothing to draw: no configuration has a time or a cost to compare with the baseline's")
	case !others:
		return nil, fmt.Errorf("every configuration is its own baseline; choose one by what they differ in: %s", strings.Join(differing(c.Rows), ", "))
	}
	x := newAxis("times the baseline's")
	x.log = highest > 10*lowest
	x.zero = !x.log
	panels, key := split(c, o.By)
	var names []string // the first is on top; the same in every panel
	for _, p := range panels {
		for _, one := range p.list {
			if !slices.Contains(names, one.name) {
				names = append(names, one.name)
			}
		}
	}
	slices.Reverse(names)
	var charts []chart
	for _, p := range panels {
		one := chart{title: p.title, x: x, y: namesAxis("", names), scattered: true, panel: true}
		if !one.ratios(p, names, ratios) {
			continue
		}
		one.caption = append([]string{fmt.Sprintf("Dashed: 1, the baseline (%s; time and cost of %s). Ratios of medians.", shown(c.Options.BaselineText()), c.Options.Work)}, one.caption...)
		if key != "" {
			one.caption = append(one.caption, perPanel(key))
		}
		if err := one.fit(); err != nil {
			return nil, err
		}
		charts = append(charts, one)
	}
	if text := without(c.Rows); text != "" {
		foot := &charts[len(charts)-1]
		foot.caption = append(foot.caption, text)
	}
	return charts, nil
}

func positive(e *scaling.Estimate) bool {
	return e != nil && e.Value > 0 && !math.IsInf(e.Value, 1)
}

// ratios draws one panel; it returns false if the panel is empty.
func (c *chart) ratios(p choices, names []string, ratios func(*cost.Row) []*scaling.Estimate) bool {
	parts := []string{"time", "cost"}
	var labels []Mark
	with, all := 0, 0 // ratios with an interval, and ratios with an error bar or without
	for _, one := range p.list {
		row := float64(slices.Index(names, one.name))
		for style, e := range ratios(&one.Row) {
			if !positive(e) {
				continue
			}
			at := XY{e.Value, row + 0.2 - 0.4*float64(style)}
			if in := e.Interval; drawable(in) {
				with++
				c.add(Mark{Kind: Bar, Series: parts[style], Points: []XY{{in.Low, at.Y}, {in.High, at.Y}}, style: style, alone: true})
			}
			if e.Why != cost.AtBaseline {
				all++
			}
			c.add(Mark{Kind: Median, Series: parts[style], Points: []XY{at}, style: style})
			if !slices.ContainsFunc(labels, func(m Mark) bool { return m.Text == parts[style] }) {
				labels = append(labels, Mark{Kind: Label, Series: parts[style], Points: []XY{at}, Text: parts[style], style: style})
			}
		}
	}
	if labels == nil {
		return false
	}
	dashed := Mark{Kind: Target, Points: []XY{{1, -0.6}, {1, float64(len(names)) - 0.4}}, style: -1}
	c.marks = append(append([]Mark{dashed}, c.marks...), labels...)
	spread := "Bars: intervals of ratios of medians."
	switch {
	case with == 0:
		spread = "No intervals: too few runs, or equal ones."
	case with < all:
		spread += " A ratio without one has too few runs, or equal ones."
	}
	c.caption = append(c.caption, spread)
	return true
}

// without returns a sentence that says which configurations have no ratio and why. It names only
// a few.
func without(rows []cost.Row) string {
	const few = 6
	var words []string
	for _, r := range rows {
		name := shown(r.Series) + ", " + workers(r.Workers)
		switch {
		case r.WhyNoBase != "":
			words = append(words, name+" ("+shown(r.WhyNoBase)+")")
		case !positive(r.TimeNormalised) && !positive(r.CostNormalised):
			words = append(words, name+" ("+cmp.Or(shown(r.Why), "its baseline has neither time nor cost")+")")
		case !positive(r.TimeNormalised):
			words = append(words, name+": no time")
		case !positive(r.CostNormalised):
			words = append(words, name+": no cost")
		}
	}
	if words == nil {
		return ""
	}
	return "Missing: " + strings.Join(number.Few(words, few), "; ") + "."
}
