package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// Contrast returns the table of a comparison of two sets of runs; a and b are the names of the sets.
func Contrast(r *compare.Comparison, m measure.Measure, a, b string) *table.Table {
	write, of := m.Text, m.Name
	if m.Show == measure.Number && m.Unit != "" {
		of += " in " + m.Unit
	}
	t := &table.Table{Columns: []table.Column{{Key: "series", ID: true}, {Key: "workers", ID: true}}}
	if m.Axis != "" {
		t.Columns = append(t.Columns, coordinateColumn(m.Axis))
	}
	t.Columns = slices.Concat(t.Columns, []table.Column{{Key: "metric", Data: true}, {Key: "runs_a", Head: "runs A"}, {Key: "runs_b", Head: "runs B"}},
		estimateColumns("a", "A"), estimateColumns("b", "B"), estimateColumns("ratio", "B / A"),
		[]table.Column{{Key: "p"}, {Key: "verdict"}, {Key: "why"}, {Key: "differ", Data: true}})
	for _, p := range r.Pairs {
		cells := []any{p.Series, table.NonZero(p.Workers)}
		if m.Axis != "" {
			cells = append(cells, p.At.Any())
		}
		cells = append(cells, m.Name, p.NA, p.NB)
		for _, e := range []*scaling.Estimate{p.A, p.B} {
			cells = append(append(cells, estimate(e, write, false)), estimateCells(e)...)
		}
		cells = append(append(cells, estimate(p.Ratio, number.Significant, false)), estimateCells(p.Ratio)...)
		t.Add(append(cells, p.P, string(p.Verdict), table.NonZero(p.Why), append([]string{}, r.Differ...))...)
	}
	t.Notes = []string{fmt.Sprintf("A: %s. B: %s. Medians of %s over runs, [95 %% interval]; –: too few runs for one, or equal ones.", a, b, of)}
	if len(r.Differ) > 0 {
		list, more := r.Differ, ""
		if n := len(list) - mostDiffer; n > 0 {
			list, more = list[:mostDiffer], fmt.Sprintf("; and %d more (--format json lists all)", n)
		}
		short := make([]string, len(list))
		for i, text := range list {
			if short[i] = text; utf8.RuneCountInString(text) > longDiffer {
				short[i] = string([]rune(text)[:longDiffer-1]) + "…"
			}
		}
		t.Notes = append(t.Notes, "A and B differ in "+strings.Join(short, "; ")+more+".")
	}
	if r.OtherDays != "" {
		t.Notes = append(t.Notes, "Doubtful: "+r.OtherDays+".")
	}
	if n := len(r.Pairs); n > 1 {
		t.Notes = append(t.Notes, fmt.Sprintf("Verdicts cover all %d points together: if nothing differs, one comparison in 20 still finds some point better or worse.", n))
	}
	return t
}

// mostDiffer limits how many differences between the configurations of two sets are shown,
// longDiffer the letters of each.
const mostDiffer, longDiffer = 5, 80

// estimateColumns returns the columns of an estimate: its text for people; its value and interval for programs.
func estimateColumns(key, head string) []table.Column {
	return []table.Column{{Key: key, Head: head, Right: true, People: true}, {Key: key, Data: true}, {Key: key + "_low", Data: true}, {Key: key + "_high", Data: true}}
}
