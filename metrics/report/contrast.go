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

// Contrast returns a table for people that compares two sets of runs; a and b are the names of
// the sets.
func Contrast(r *compare.Comparison, m measure.Measure, a, b string) *table.Table {
	write, of := m.Text, m.Name
	if m.Show == measure.Number && m.Unit != "" {
		of += " in " + m.Unit
	}
	t := &table.Table{Columns: []table.Column{{Key: "series", ID: true}, {Key: "workers", ID: true}, {Key: "runs_a", Head: "runs A"}, {Key: "runs_b", Head: "runs B"},
		{Key: "a", Head: "A", Right: true}, {Key: "b", Head: "B", Right: true}, {Key: "ratio", Head: "B / A", Right: true}, {Key: "p"}, {Key: "verdict"}, {Key: "why"}}}
	alongCoordinate(t, m)
	for _, p := range r.Pairs {
		cells := append(pointCells(p, m), p.NA, p.NB, estimate(p.A, write, false), estimate(p.B, write, false), estimate(p.Ratio, number.Significant, false),
			p.P, string(p.Verdict), table.NonZero(p.Why))
		t.Add(cells...)
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

// alongCoordinate inserts a column for the coordinate along which the measure is taken, if it has
// one, after the column of the workers.
func alongCoordinate(t *table.Table, m measure.Measure) {
	if m.Axis != "" {
		t.Columns = slices.Insert(t.Columns, 2, coordinateColumn(m.Axis))
	}
}

// pointCells returns the cells that identify a point.
func pointCells(p compare.Pair, m measure.Measure) []any {
	cells := []any{p.Series, table.NonZero(p.Workers)}
	if m.Axis != "" {
		cells = append(cells, p.At.Any())
	}
	return cells
}

// ContrastData returns the table of a comparison for programs.
func ContrastData(r *compare.Comparison, m measure.Measure) *table.Table {
	t := &table.Table{Columns: table.Keys("series", "workers", "metric", "runs_a", "runs_b")}
	for _, name := range []string{"a", "b", "ratio"} {
		t.Columns = append(t.Columns, table.Keys(name, name+"_low", name+"_high")...)
	}
	t.Columns = append(t.Columns, table.Keys("p", "verdict", "why", "differ")...)
	alongCoordinate(t, m)
	differ := r.Differ
	if differ == nil {
		differ = []string{}
	}
	for _, p := range r.Pairs {
		cells := append(pointCells(p, m), m.Name, p.NA, p.NB)
		for _, e := range []*scaling.Estimate{p.A, p.B, p.Ratio} {
			cells = append(cells, estimateCells(e)...)
		}
		t.Add(append(cells, p.P, string(p.Verdict), table.NonZero(p.Why), differ)...)
	}
	return t
}
