package table

import (
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// Fold takes those of the columns whose cells are all alike out of what people
// are shown, and says in a note what they hold: "all 4 points: nodes 1, runs 6".
// rows is what the table's rows are. A table of one row stays as it is.
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
