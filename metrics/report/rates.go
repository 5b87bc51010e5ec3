package report

import (
	"fmt"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/table"
)

// Rates returns a table of how many replicas are needed for a demand (requests/s). For people, it
// also returns a sentence on the best answer.
func Rates(list []capacity.Answer, load capacity.Load, currency string, people bool) (*table.Table, string) {
	t := &table.Table{Columns: []table.Column{{Key: "series", ID: true}, {Key: "demand", Unit: "requests/s", Optional: true, ID: true}, {Key: "replicas"}, {Key: "at_least"}, {Key: "from", Head: "measured replicas"},
		{Key: "rate_within_limit", Unit: "requests/s"}, {Key: "rate_within_limit_low", Head: "low"}, {Key: "rate_within_limit_high", Head: "high"}, {Key: "runs"}, {Key: "keeps_limits", Head: "carries it", Show: decision.Likely, Right: true}, {Key: "provisional", Data: true}}}
	if currency != "" {
		t.Columns = append(t.Columns, table.Column{Key: "cost_per_hour", Unit: currency}, table.Column{Key: "cost_per_million", Unit: currency})
	}
	add := func(cells ...any) { t.Add(cells[:len(t.Columns)]...) }
	for _, one := range list {
		if one.Replicas == 0 {
			add(one.Series, table.NonZero(one.SeriesDemand), nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil)
			if len(list) > 1 {
				t.Notes = append(t.Notes, one.Sentence())
			}
			continue
		}
		add(one.Series, table.NonZero(one.SeriesDemand), one.Replicas, one.AtLeast, one.From, one.Rate, one.Low, one.High, one.Runs, one.Keeps, one.Provisional, one.CostPerHour, one.CostPerMillion)
	}
	if load.Samples > 0 {
		t.Notes = append(t.Notes, load.Sentence())
	}
	if !people {
		return t, ""
	}
	best := list[0]
	t.Notes = append(t.Notes, nextRates(best)...)
	sentence := best.Sentence()
	if best.CostPerHour != nil {
		sentence += fmt.Sprintf(" %s an hour, %s per million requests at that demand.", number.Significant(*best.CostPerHour)+" "+currency, number.Significant(*best.CostPerMillion)+" "+currency)
	}
	if single := capacity.Unbatched(list); single != nil {
		sentence += " Without putting requests together: " + single.Short(currency) + "."
	}
	return t, sentence
}

// nextRates returns lines that say what to measure next.
func nextRates(a capacity.Answer) []string {
	switch {
	case a.Next == nil && a.Replicas > 0 && !a.Provisional:
		return []string{"Measure next: nothing; no run is likely to change the answer."}
	case a.Next == nil:
		return nil
	case a.Next.Command != "":
		return []string{a.Next.Sentence(), "`" + a.Next.Command + "`"}
	}
	return []string{a.Next.Sentence()}
}
