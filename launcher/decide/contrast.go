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
	// Warnings concern the whole study.
	Warnings []string
}

// doubts returns a clause with the warnings about the runs of points that can change the answer; "" without any.
func (r *Results) doubts(points []string) string {
	of := scaling.ByRun(r.Observations)
	var own []scaling.Curve
	for _, c := range r.Curves {
		c.Points = slices.DeleteFunc(slices.Clone(c.Points), func(p scaling.Point) bool {
			return len(p.Runs) == 0 || of[p.Runs[0].ID] == nil || !slices.Contains(points, of[p.Runs[0].ID].Point)
		})
		if len(c.Points) > 0 {
			own = append(own, c)
		}
	}
	list := scaling.DecisiveIn(own, r.Contrast.Warnings...)
	if len(list) == 0 {
		return ""
	}
	return " Doubtful: " + strings.Join(list, "; ") + "."
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
	settings := map[string]map[string]any{}
	for _, o := range r.Observations {
		settings[o.Point] = o.Parameters
	}
	var views []View
	for _, p := range r.Contrast.Pairs {
		ids := slices.Concat(p.Origin[0].Points, p.Origin[1].Points)
		a, b := r.Contrast.name(p.Origin[0], settings), r.Contrast.name(p.Origin[1], settings)
		series := fmt.Sprintf("%s against %s", b, a)
		if r.Contrast.Key != "framework" {
			series += ", " + p.Origin[0].Series
		}
		n := p.Workers
		v := View{
			Points: map[int][]string{n: ids}, Ratio: p.Ratio, total: p.NA + p.NB,
			question: sequential.Question{Design: s.Design, Hours: r.hours(ids)},
		}
		v.Look = sequential.Pair(&p, s.closed(v.Points)[n])
		v.Series = series + ", " + scaling.Places(p.Axis, p.At)
		v.stated = contrasted(&p, v.Decided, atLevel(s.Design.Confidence, len(r.Contrast.Pairs)), r.Contrast.Measure, a, b) + r.doubts(ids)
		views = append(views, v)
	}
	return views
}

// atLevel returns a clause with the largest p-value at which a look decides.
func atLevel(confidence float64, pairs int) string {
	text := "; a look decides at " + number.Significant(1-confidence)
	if pairs > 1 {
		text += " for all comparisons together"
	}
	return text
}

// contrasted returns a sentence that says how two settings, named a and b, compare by a measure.
// level is the text of atLevel.
func contrasted(p *compare.Pair, decided bool, level string, of measure.Measure, a, b string) string {
	if p.Ratio == nil {
		return fmt.Sprintf("Undecided. The %s of %s and %s cannot be compared: %s.", of.Title, b, a, p.Why)
	}
	asGood, i, why := sequential.AsGood(p.Ratio), p.Ratio.Interval, []string{}
	if i != nil {
		why = append(why, fmt.Sprintf("%s to %s", number.Significant(i.Low), number.Significant(i.High)))
	}
	if p.P != nil && (i == nil || decided && !asGood && i.Low <= 1 && i.High >= 1) { // the test decides, and can before an interval
		if !decided {
			level = ""
		}
		why = append(why, fmt.Sprintf("Mann–Whitney test of %d and %d runs: p = %.2g%s", p.NA, p.NB, *p.P, level))
	}
	if i == nil && !decided {
		why = append(why, p.Ratio.Why)
	}
	text := fmt.Sprintf("The %s of %s is %s times that of %s (%s)", of.Title, b, number.Significant(p.Ratio.Value), a, strings.Join(why, "; "))
	switch {
	case decided && asGood:
		return fmt.Sprintf("Decided: they are within %s of each other, either will do. %s.", number.ExactPercent(decision.Equivalent), text)
	case decided && p.Verdict == compare.Different:
		return "Decided: they differ. " + text + "."
	case decided:
		return fmt.Sprintf("Decided: %s is %s. %s.", b, p.Verdict, text)
	}
	return "Undecided. " + text + "."
}
