package extract

import (
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
)

// rank returns 0 for notes on contradictions and missing rates and 1 for others, so that sorting
// by it puts the former first.
func rank(note string) int {
	if strings.HasPrefix(note, "figures named "+statedPrefix) || strings.HasPrefix(note, "no rate is taken") {
		return 0
	}
	return 1
}

// Curveless returns the reason, according to the log, why the run is left out of every curve; ""
// if a curve includes it.
func (r *Content) Curveless() string {
	if r.Failed != "" {
		return "the run failed, so curves leave it out: " + r.Failed
	}
	want := measure.KindOf(r.Kind).Main
	if want == nil {
		return ""
	}
	for f := range r.Findings() {
		if f.Event.Evaluation != nil || f.Event.Figure != nil && slices.Contains(want, f.Event.Figure.Name) {
			return ""
		}
	}
	why := "it states none"
	if len(r.Notes) > 0 {
		notes := slices.Clone(r.Notes)
		slices.SortStableFunc(notes, func(a, b string) int { return rank(a) - rank(b) })
		why = strings.Join(notes[:min(len(notes), 2)], "; ")
	}
	return "it has no " + strings.Join(want[:min(len(want), 2)], " or ") + ": " + why
}
