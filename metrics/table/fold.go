package table

import (
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// Fold hides the given columns from people if all their cells are equal, and adds a
// note with their values: "all 4 points: nodes 1, runs 6". rows is the noun for the
// table's rows. A table with one row is unchanged.
func (t *Table) Fold(rows string, keys ...string) {
	if len(t.Rows) < 2 {
		return
	}
	var alike []string
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Data || !slices.Contains(keys, c.Key) {
			continue
		}
		text := c.Text(t.Rows[0][i])
		if slices.ContainsFunc(t.Rows, func(row []any) bool { return c.Text(row[i]) != text }) {
			continue
		}
		c.Data = true
		if text != number.Absent {
			alike = append(alike, c.title()+" "+text)
		}
	}
	if len(alike) > 0 {
		t.Notes = append(t.Notes, "all "+number.Count(len(t.Rows), rows)+": "+strings.Join(alike, ", "))
	}
}
