package report

import (
	"cmp"
	"fmt"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
	"github.com/scalebench/scalebench/metrics/table"
)

// A Phase is one study (training, serving or preprocessing) in a comparison of several, with the
// answer for one of its series.
type Phase struct {
	Study  string
	Kind   string // kind of workload: "train", "serve", "preprocess"
	Answer sensitivity.Answer
	Market *sensitivity.Market // nil: no machine has a price
}

// Phases returns a table for people with the smallest sufficient resources for each study, and
// with the smallest and the cheapest machine that have them.
func Phases(list []Phase, currency string) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "phase", ID: true}, {Key: "study", ID: true}, {Key: "series", ID: true}, {Key: "enough"}, {Key: "ratio", Head: "keeps", Right: true}, {Key: "of"}, {Key: "runs"}}}
	priced := markets(list) != nil
	if priced {
		t.Columns = append(t.Columns, table.Column{Key: "smallest", Head: "smallest machine"}, table.Column{Key: "smallest_hour", Head: currency + " per hour", Right: true},
			table.Column{Key: "cheapest", Head: "cheapest"}, table.Column{Key: "cheapest_hour", Head: currency + " per hour", Right: true},
			table.Column{Key: "million", Head: currency + " per million samples", Right: true})
	}
	for _, p := range list {
		a := p.Answer
		var enough, ratio, runs any
		if why := provisionally(a); why != "" {
			t.Notes = append(t.Notes, fmt.Sprintf("Provisional, %s, %s: %s.", p.Study, a.Series, why))
		}
		if a.Spec != nil {
			enough, runs = amounts(a.Spec.At, a.Keys()), a.Spec.Runs
			ratio = estimate(a.Spec.Ratio, number.Percent, false)
			if a.Spec.Ratio == nil {
				ratio = "all of it"
			}
		} else {
			t.Notes = append(t.Notes, fmt.Sprintf("%s %s, %s: no answer: %s.", number.Absent, p.Study, a.Series, a.Why))
		}
		cells := []any{p.Kind, p.Study, a.Series, enough, ratio, gained(a.Measure), runs}
		if priced {
			var more [5]any
			if m := p.Market; m != nil && m.Smallest != nil {
				more = [5]any{m.Smallest.Name, number.Significant(m.Smallest.Hour), m.Cheapest.Name, number.Significant(m.Cheapest.Hour)}
				if perSample(a) {
					more[4] = estimate(perMillion(*m.Cheapest, a), number.Significant, false)
				}
			}
			cells = append(cells, more[:]...)
		}
		t.Add(cells...)
	}
	for _, p := range list {
		if a := p.Answer; a.Value != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("Base, %s, %s: %s; up to %s may be lost.", p.Study, a.Series, referenceText(a), number.ExactPercent(a.Epsilon)))
		}
	}
	if priced {
		t.Notes = append(t.Notes, "A million samples: on the cheapest machine, at the throughput of the measured combination that it holds. This assumes that each core of a machine is as fast as those that were measured.")
	}
	return t
}

// PhasesSentence returns a sentence for people on the machine that suffices for all studies; ""
// without prices.
func PhasesSentence(list []Phase, currency string) string {
	all := markets(list)
	if all == nil {
		return ""
	}
	smallest, cheapest := sensitivity.Common(all)
	switch {
	case smallest == nil || len(all) < len(list):
		return "No machine of the price list is shown to be enough for all of them."
	case smallest.Name == cheapest.Name:
		return fmt.Sprintf("The smallest machine of the price list that is enough for each of them, and the cheapest, is %s, one at a time.", offered(smallest, currency))
	}
	return fmt.Sprintf("The smallest machine of the price list that is enough for each of them, one at a time, is %s, the cheapest %s.", offered(smallest, currency), offered(cheapest, currency))
}

func markets(list []Phase) (all []sensitivity.Market) {
	for _, p := range list {
		if p.Market != nil {
			all = append(all, *p.Market)
		}
	}
	return all
}

// PhasesData returns the table of Phases for programs: unrounded, one row per phase. If all studies have prices, a row with the phase
// "all" has the machines that suffice for every study. A row with the phase "warning" has a
// warning in the column "why".
func PhasesData(list []Phase, currency string, warnings []string) *table.Table {
	t := &table.Table{Columns: table.Keys("phase", "study", "series", "allocation", "measure", "ratio", "ratio_low", "ratio_high", "runs", "likely_enough", "provisional", "smallest", "smallest_hour", "cheapest", "cheapest_hour", "currency", "why")}
	for _, p := range list {
		a := p.Answer
		cells := []any{p.Kind, p.Study, a.Series}
		if a.Spec != nil {
			cells = append(cells, words(a.Spec.At, a.Keys(), exactly), a.Measure.Name)
			cells = append(cells, estimateCells(a.Spec.Ratio)...)
			cells = append(cells, a.Spec.Runs, a.Spec.Keeps, a.Provisional)
		} else {
			cells = append(cells, nil, a.Measure.Name, nil, nil, nil, nil, nil, nil)
		}
		var smallest, cheapest *sensitivity.Machine
		if m := p.Market; m != nil && m.Smallest != nil {
			smallest, cheapest = &m.Smallest.Machine, &m.Cheapest.Machine
		}
		t.Add(append(append(cells, machineCells(smallest, cheapest, currency)...), table.NonZero(cmp.Or(a.Why, provisionally(a))))...)
	}
	if all := markets(list); all != nil && len(all) == len(list) {
		smallest, cheapest := sensitivity.Common(all)
		why := any(nil)
		if smallest == nil {
			why = "no machine is enough for each"
		}
		t.Add(append(append([]any{"all", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}, machineCells(smallest, cheapest, currency)...), why)...)
	}
	for _, w := range warnings {
		t.Add("warning", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, w)
	}
	return t
}

func machineCells(smallest, cheapest *sensitivity.Machine, currency string) []any {
	if smallest == nil {
		return []any{nil, nil, nil, nil, nil}
	}
	return []any{smallest.Name, smallest.Hour, cheapest.Name, cheapest.Hour, currency}
}
