package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/scaling/sequential"
)

// A Contrast is the question which of two settings is better, such as two frameworks. It is asked
// for each point that both have.
type Contrast struct {
	Key     string // TOML path of the key whose values are compared, such as "framework"
	Measure measure.Measure
	Pairs   []compare.Pair
}

// name returns a name for the setting of one side of a pair. settings are the parameters of runs, by
// point.
func (c *Contrast) name(side compare.Origin, settings map[string]map[string]any) string {
	if c.Key == "framework" {
		return side.Series
	}
	return fmt.Sprintf("%s=%s", c.Key[strings.LastIndexByte(c.Key, '.')+1:], scaling.ValueOf(settings[side.Points[0]][c.Key]))
}

// contrasts returns a view for each pair of points.
func (s *Study) contrasts(r *Results) []View {
	hours, runs, settings := map[string]float64{}, map[string]int{}, map[string]map[string]any{}
	for i := range r.Observations {
		o := &r.Observations[i]
		hours[o.Point] += nodeHours(o)
		runs[o.Point]++
		settings[o.Point] = o.Parameters
	}
	var views []View
	for _, p := range r.Contrast.Pairs {
		ids, each := slices.Concat(p.Origin[0].Points, p.Origin[1].Points), 0.0
		for _, id := range ids {
			each += hours[id] / float64(max(1, runs[id]))
		}
		a, b := r.Contrast.name(p.Origin[0], settings), r.Contrast.name(p.Origin[1], settings)
		series := fmt.Sprintf("%s against %s", b, a)
		if r.Contrast.Key != "framework" {
			series += ", " + p.Origin[0].Series
		}
		n := p.Workers
		v := View{
			Look:   &sequential.Look{Series: series + ", " + scaling.Places(p.Axis, p.At), Runs: map[int]int{n: min(p.NA, p.NB)}},
			Points: map[int][]string{n: ids}, Ratio: p.Ratio, pair: &p, settings: [2]string{a, b}, measure: r.Contrast.Measure,
		}
		v.question = sequential.Question{Design: s.Design, Hours: func(int) float64 { return each }}
		if p.Verdict == compare.Insufficient && !p.FewRuns {
			v.Caveat = p.Why
		}
		v.Decided = p.Verdict != compare.Same && p.Verdict != compare.Insufficient || p.Why == "" && asGood(p.Ratio)
		if !v.Decided && v.Caveat == "" && !s.closed(v.Points)[n] {
			v.Counts, v.Open = []int{n}, []int{n}
		}
		views = append(views, v)
	}
	return views
}

// asGood reports whether a ratio is certainly within decision.Equivalent of 1.
func asGood(e *scaling.Estimate) bool {
	return e != nil && e.Interval != nil && e.Interval.Low >= 1-decision.Equivalent && e.Interval.High <= 1/(1-decision.Equivalent)
}

// contrasted returns a sentence that says how the two settings of a view compare.
func (v *View) contrasted() string {
	a, b := v.settings[0], v.settings[1]
	if v.Ratio == nil {
		return fmt.Sprintf("Undecided. The %s of %s and %s cannot be compared: %s.", v.measure.Title, b, a, v.pair.Why)
	}
	times := number.Significant(v.Ratio.Value) + " times"
	switch i := v.Ratio.Interval; {
	case i != nil:
		times += fmt.Sprintf(" (%s to %s)", number.Significant(i.Low), number.Significant(i.High))
	case v.pair.P != nil:
		times += fmt.Sprintf(" (p = %.2g; %s)", *v.pair.P, v.Ratio.Why)
	default:
		times += fmt.Sprintf(" (%s)", v.Ratio.Why)
	}
	text := fmt.Sprintf("The %s of %s is %s that of %s", v.measure.Title, b, times, a)
	switch {
	case v.Decided && asGood(v.Ratio):
		return fmt.Sprintf("Decided: they are within %s of each other, either will do. %s.", number.ExactPercent(decision.Equivalent), text)
	case v.Decided && v.pair.Verdict == compare.Different:
		return "Decided: they differ. " + text + "."
	case v.Decided:
		return fmt.Sprintf("Decided: %s is %s. %s.", b, v.pair.Verdict, text)
	}
	return "Undecided. " + text + "."
}
