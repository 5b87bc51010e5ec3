package query

import (
	"path"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/table"
)

// leastFolded is the smallest number of runs that share a row.
const leastFolded = 3

// Folded is Status with similar runs of a point in one row, unless they are running or fewer than three. A cell
// in which they differ is empty.
func Folded(states []launcher.State, planned []launcher.Unbegun) *table.Table {
	rows := rowsOf(states, planned)
	keys := varying(rows)
	order(rows, keys)
	t := status(rows, keys)
	folded := &table.Table{Columns: slices.Insert(slices.Clone(t.Columns), 1, table.Column{Key: "attempts"})}
	for i := 0; i < len(rows); {
		n := 1
		for i+n < len(rows) && rows[i].alike(rows[i+n]) {
			n++
		}
		if n < leastFolded {
			n = 1
		}
		folded.Add(slices.Insert(common(t.Rows[i:i+n], path.Join(rows[i].point.Study, rows[i].point.ID)), 1, any(n))...)
		i += n
	}
	if len(folded.Rows) == len(rows) {
		return t
	}
	return folded
}

// alike reports whether two rows show the same state of runs of one point.
func (r row) alike(other row) bool {
	if r.id() != other.id() || (r.state == nil) != (other.state == nil) {
		return false
	}
	if r.state == nil {
		return true
	}
	a, b := r.state, other.state
	return a.Status == b.Status && a.Detail == b.Detail && a.Status != metrics.Running && a.Err == nil && b.Err == nil && reasonOf(a) == reasonOf(b)
}

// reasonOf returns why a run waits in the scheduler; "" if it does not wait.
func reasonOf(s *launcher.State) string {
	if s.Job == nil {
		return ""
	}
	return s.Job.Reason
}

// common returns one row for several: cells that are equal in all, and the point in
// the column of run names.
func common(rows [][]any, point string) []any {
	cells := slices.Clone(rows[0])
	if len(rows) == 1 {
		return cells
	}
	cells[0] = point
	for i := 1; i < len(cells); i++ {
		if slices.ContainsFunc(rows, func(row []any) bool { return row[i] != cells[i] }) {
			cells[i] = nil
		}
	}
	return cells
}
