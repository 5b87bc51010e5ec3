package report

import (
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/table"
)

// Answers returns a table of the answers for several series, one per row, the best first. Series
// without an answer come last; notes below the table give the reasons.
func Answers(curves []scaling.Curve, list []*advice.Advice, wish advice.Options) *table.Table {
	keys := scaling.Keys(curves)
	of := map[string]scaling.Curve{}
	for _, c := range curves {
		of[c.Series] = c
	}
	currency := ""
	for _, a := range list {
		currency = a.Currency
	}
	rate := table.Column{Key: "throughput", Unit: scaling.RateUnit(curves...), Right: true}
	if len(list) > 0 && list[0].Measure != "" {
		rate = rateColumn(list[0])
	}
	t := &table.Table{Columns: append(seriesColumns(keys), table.Column{Key: "use", Head: "use workers"}, table.Column{Key: "goal", Head: "to reach"},
		table.Column{Key: "seconds", Head: "in", Right: true},
		rate, table.Column{Key: "efficiency", Right: true},
		table.Column{Key: "cost", Head: "cost (" + currency + ")", Right: true, Data: currency == ""}, table.Column{Key: "limit", Head: "limited by"})}
	answered := map[string]bool{}
	for _, a := range advice.Ranked(list, wish) {
		answered[a.Series] = true
		atBase := a.Base != nil && a.Candidate.Workers == a.Base.Workers
		t.Add(append(seriesCells(of[a.Series], keys), a.Candidate.Workers, table.NonZero(goalText(a.Advice)), figureText(a.Seconds, number.Seconds, false),
			figureText(rateOf(a.Candidate), number.Significant, false), figureText(a.Efficiency, number.Percent, atBase), figureText(a.Cost, number.Significant, false), table.NonZero(a.Limits.Text()))...)
	}
	if len(list) > 0 {
		if text := brackets(t, list[0].Confidence); text != "" {
			t.Notes = append(t.Notes, strings.TrimSpace(text))
		}
		t.Notes = append(t.Notes, onlyFigure(list[0])...)
	}
	t.Notes = append(t.Notes, dashes(t)...)
	t.Notes = append(t.Notes, clockNotes(list)...)
	for _, a := range list {
		if !answered[a.Series] {
			t.Add(append(seriesCells(of[a.Series], keys), nil, table.NonZero(goalText(a)), nil, nil, nil, nil, table.NonZero(a.Limits.Text()))...)
			t.Notes = append(t.Notes, a.Series+": "+a.Sentences())
		}
	}
	return t
}

// clockNotes returns lines that say what the times of the answers include (initialisation or
// not). If series differ in this, each line names its series.
func clockNotes(list []*advice.Advice) []string {
	of := map[advice.Clock][]string{}
	timed := 0
	for _, a := range list {
		if clock := a.Clock(); clock != advice.Untimed {
			of[clock] = append(of[clock], a.Series)
			timed++
		}
	}
	says := map[advice.Clock]string{
		advice.Job:     "include initialisation: they count from the start of the processes",
		advice.Trained: "are on the training clock, as in scaling; initialisation was not recorded",
		advice.Stated:  "are as the program states them, from the start of training to its target, without initialisation",
	}
	var notes []string
	for _, clock := range []advice.Clock{advice.Job, advice.Trained, advice.Stated} {
		switch names := of[clock]; {
		case len(names) == 0:
		case len(names) == timed:
			notes = append(notes, "Times "+says[clock]+".")
		default:
			notes = append(notes, "Times of "+strings.Join(names, ", ")+" "+says[clock]+".")
		}
	}
	return notes
}

// goalText returns the target in words, such as "accuracy 0.75"; "" without a target.
func goalText(a *advice.Advice) string {
	switch {
	case a.Target != nil:
		return a.Target.Text()
	case a.Goal != "":
		return "the program's target"
	}
	return ""
}

// ruling maps what the intervals of the two best answers say about their order to a clause.
var ruling = map[advice.Order]string{
	advice.Unproven: "; ranked by their medians, not by intervals",
	advice.Overlap:  "; their intervals overlap",
	advice.Apart:    "",
}

// Best returns a sentence on the best answer of several series and how it compares with the
// second best; "" if no series has an answer.
func Best(list []*advice.Advice, wish advice.Options) string {
	ranked := advice.Ranked(list, wish)
	if len(ranked) == 0 {
		return ""
	}
	says := func(a advice.Answer) string {
		text := ""
		if a.Seconds != nil {
			text = figureText(a.Seconds, number.Seconds, a.Seconds.Low == nil).(string)
			if goal := goalText(a.Advice); goal != "" {
				text += " to " + goal
			}
			text += " " + string(a.Clock())
		} else if a.Figure != nil {
			text = strings.TrimSpace(a.Measure + " " + figureText(a.Figure, number.Significant, a.Figure.Low == nil).(string) + " " + a.Unit())
		} else if a.Throughput != nil {
			text = figureText(a.Throughput, number.Significant, a.Throughput.Low == nil).(string) + " " + measure.RateUnit(a.Sample)
		}
		if a.Cost != nil {
			text += ", for " + figureText(a.Cost, number.Significant, a.Cost.Low == nil).(string) + " " + a.Currency
		}
		return text
	}
	best := ranked[0]
	use := "Use "
	if best.Provisional {
		use = "Provisional: use "
	}
	text := use + number.Count(best.Candidate.Workers, "worker") + " with " + best.Series + ": " + says(best) + ". That is the best of " + number.Count(len(list), "configuration") + ", each at its recommended worker count"
	if len(ranked) > 1 {
		next := ranked[1]
		text += ". Next is " + next.Series + " with " + number.Count(next.Candidate.Workers, "worker") + ", " + says(next)
		text += ruling[advice.Compare(best, next)]
	}
	return text + "." + best.Uncertain()
}

const noInterval = number.Absent + ": no interval; `scaling` says why."

// dashes returns a note that explains a dash after a value, if the table has one.
func dashes(t *table.Table) []string {
	for _, row := range t.Rows {
		for _, cell := range row {
			if text, ok := cell.(string); ok && strings.HasSuffix(text, " "+number.Absent) {
				return []string{noInterval}
			}
		}
	}
	return nil
}

// brackets returns a note that explains the brackets in the table's cells, if it has any.
func brackets(t *table.Table, confidence float64) string {
	for _, row := range t.Rows {
		for _, cell := range row {
			if text, ok := cell.(string); ok && strings.HasSuffix(text, "]") {
				return fmt.Sprintf(" In brackets: %g %% intervals.", 100*confidence)
			}
		}
	}
	return ""
}
