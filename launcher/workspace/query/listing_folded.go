package query

import (
	"path"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

// leastFolded is the minimum number of similar runs that Folded combines into one row.
const leastFolded = 3

// Folded is like Status, but combines three or more similar runs of a point into one row, unless
// they are running. A cell is empty where the combined runs differ. Attempts without a result that a
// later attempt of the run replaced are only counted.
func Folded(states []launcher.State, planned []launcher.Unbegun) *table.Table {
	rows := rowsOf(states, planned)
	keys := varying(rows)
	order(rows, keys)
	all := len(rows)
	rows = slices.DeleteFunc(rows, superseded(rows))
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
		name := path.Join(rows[i].point.Study, rows[i].point.ID)
		if rows[i].unreadable() { // its point may be unknown
			name = pattern(t.Rows[i : i+n])
		}
		folded.Add(slices.Insert(common(t.Rows[i:i+n], name), 1, any(n))...)
		i += n
	}
	if len(folded.Rows) == len(rows) {
		folded = t
	}
	if n := all - len(rows); n > 0 {
		folded.Notes = append(folded.Notes, number.Count(n, "earlier attempt")+" of these runs did not succeed; -v lists "+number.Them(n)+".")
	}
	return folded
}

// superseded returns a function that reports whether a row is an attempt without a result that a later
// attempt of the run replaced.
func superseded(rows []row) func(row) bool {
	type run struct {
		point  pointID
		repeat int
	}
	newest := map[run]int{} // number of the newest attempt
	for _, r := range rows {
		of := run{r.id(), r.point.Repeat}
		newest[of] = max(newest[of], r.attempt)
	}
	return func(r row) bool {
		return r.state != nil && !r.unreadable() && r.state.Status.Terminal() && r.state.Status != metrics.Done && r.attempt < newest[run{r.id(), r.point.Repeat}]
	}
}

// alike reports whether two rows belong to the same point and show the same state.
func (r row) alike(other row) bool {
	if r.unreadable() && other.unreadable() {
		return r.point.Study == other.point.Study && detailOf(r.state) == detailOf(other.state)
	}
	if r.id() != other.id() || (r.state == nil) != (other.state == nil) {
		return false
	}
	if r.state == nil {
		return true
	}
	a, b := r.state, other.state
	return a.Status == b.Status && a.Detail == b.Detail && a.Status != metrics.Running && a.Err == nil && b.Err == nil && reasonOf(a) == reasonOf(b)
}

func (r row) unreadable() bool { return r.state != nil && r.state.Err != nil }

// reasonOf returns the scheduler's reason why a run is waiting; "" if it is not waiting.
func reasonOf(s *launcher.State) string {
	if s.Job == nil {
		return ""
	}
	return s.Job.Reason
}

// pattern returns the common beginning of the runs' names, followed by a star.
func pattern(rows [][]any) string {
	first, _ := rows[0][0].(string)
	last := first
	for _, row := range rows {
		name, _ := row[0].(string)
		first, last = min(first, name), max(last, name)
	}
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	return first[:strings.LastIndexAny(first[:n], "-/")+1] + "*"
}

// common combines rows into one. It keeps the cells that are equal in all rows, empties the
// others, and replaces the run's name by the point's.
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
