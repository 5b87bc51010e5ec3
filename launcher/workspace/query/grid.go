package query

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

// A Grid shows the states of a study's runs. Each row is a point, each column a repeat. With many
// runs the columns are states and the cells are counts; with many points, each row has all points
// with the same number of workers.
type Grid struct {
	Heads   []string  `json:"heads"`   // titles of the columns that describe a row
	Columns []string  `json:"columns"` // repeats or states
	Rows    []GridRow `json:"rows"`
	// Notable are the first runs that have started and are not done, if the cells are counts: those
	// that failed or run.
	Notable []GridCell `json:"notable,omitempty"`
}

// A GridRow is one row of a Grid.
type GridRow struct {
	Values []string   `json:"values"` // as many as Heads
	Cells  []GridCell `json:"cells"`  // as many as Columns
}

// A GridCell is the state of a run, or the number of runs in a state. It is empty if there is none.
type GridCell struct {
	Status metrics.Status `json:"status,omitempty"`
	Runs   int            `json:"runs,omitempty"`   // 0 in a cell of a single run
	Run    string         `json:"run,omitempty"`    // name of the run's last attempt; "" if it has not started
	Detail string         `json:"detail,omitempty"` // progress, or why the run failed or waits
}

// Largest sizes of a grid: mostCells runs are shown one by one, mostRows points have a row each, and
// mostNotable runs are listed if the cells are counts.
const (
	mostCells   = 400
	mostRows    = 200
	mostNotable = 40
)

// NewGrid returns the grid of a study's runs. If a run has several attempts, the last one counts.
func NewGrid(list []Brief) *Grid {
	runs := lastAttempts(list)
	at := map[pointID]int{}
	var points []*briefPoint
	for _, r := range runs {
		if _, known := at[r.at.pointID]; !known {
			at[r.at.pointID] = 0
			points = append(points, r.at)
		}
	}
	if len(points) > mostRows {
		return gridByWorkers(runs, points)
	}
	rows := make([]row, len(points)) // a row for each point
	for i, p := range points {
		rows[i].point = *p.whole
	}
	keys := varying(rows)
	order(rows, keys)
	for i, p := range rows {
		at[p.id()] = i
	}
	index := func(r Brief) int { return at[r.at.pointID] }
	g := described(rows, keys)
	if len(runs) > mostCells {
		g.count(runs, index)
	} else {
		g.repeats(runs, index)
	}
	return g
}

// described returns a grid with a row for each point and no columns yet.
func described(points []row, keys []string) *Grid {
	g := &Grid{Heads: []string{"framework"}}
	columns := columns(keys)
	for _, c := range columns {
		g.Heads = append(g.Heads, clean.Line(c.Head))
	}
	g.Heads = append(g.Heads, "workers")
	for _, p := range points {
		r := GridRow{Values: []string{clean.Line(cmp.Or(p.point.Framework, p.point.ID))}}
		for i, v := range values(keys, p.point) {
			r.Values = append(r.Values, columns[i].Text(table.Deref(v)))
		}
		g.Rows = append(g.Rows, GridRow{Values: append(r.Values, fmt.Sprint(p.point.Workers))})
	}
	return g
}

// repeats adds a column for each repeat. at returns the row of a run.
func (g *Grid) repeats(runs []Brief, at func(Brief) int) {
	most := 0
	for _, r := range runs {
		most = max(most, int(r.repeat))
	}
	most = min(most, mostCells) // a folder's name may have any number
	for i := range most {
		g.Columns = append(g.Columns, fmt.Sprint(i+1))
	}
	for i := range g.Rows {
		g.Rows[i].Cells = make([]GridCell, most)
	}
	for _, r := range runs {
		if n := int(r.repeat); n >= 1 && n <= most {
			g.Rows[at(r)].Cells[n-1] = r.cell()
		}
	}
}

// gridByWorkers returns a grid with a row for each framework and number of workers.
func gridByWorkers(runs []Brief, points []*briefPoint) *Grid {
	type group struct {
		framework string
		workers   int
	}
	count := map[group]int{}
	for _, p := range points {
		count[group{p.framework, p.workers}]++
	}
	groups := slices.SortedFunc(maps.Keys(count), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.framework, b.framework), cmp.Compare(a.workers, b.workers))
	})
	at := map[group]int{}
	g := &Grid{Heads: []string{"framework", "workers", "points"}}
	for i, one := range groups {
		at[one] = i
		g.Rows = append(g.Rows, GridRow{Values: []string{clean.Line(one.framework), fmt.Sprint(one.workers), fmt.Sprint(count[one])}})
	}
	g.count(runs, func(r Brief) int { return at[group{r.at.framework, r.at.workers}] })
	return g
}

// count adds a column for each state that a run has, and counts the runs. at returns the row of a
// run.
func (g *Grid) count(runs []Brief, at func(Brief) int) {
	counts := make([]map[metrics.Status]int, len(g.Rows))
	total := map[metrics.Status]int{}
	for _, r := range runs {
		i, status := at(r), r.status
		if counts[i] == nil {
			counts[i] = map[metrics.Status]int{}
		}
		counts[i][status]++
		total[status]++
		if r.number > 0 && status != metrics.Done && len(g.Notable) < mostNotable {
			g.Notable = append(g.Notable, r.cell())
		}
	}
	for _, status := range metrics.Statuses {
		if total[status] == 0 {
			continue
		}
		g.Columns = append(g.Columns, string(status))
		for i := range g.Rows {
			cell := GridCell{}
			if n := counts[i][status]; n > 0 {
				cell = GridCell{Status: status, Runs: n}
			}
			g.Rows[i].Cells = append(g.Rows[i].Cells, cell)
		}
	}
}

func (b Brief) cell() GridCell {
	return GridCell{Status: b.status, Run: b.run, Detail: clean.Line(b.detail)}
}

// Reached returns how far a run has got: "epoch 2, step 340, about 1.2k samples/s". It is "" if the
// run's program has not said so.
func Reached(s launcher.State) string {
	t := s.Traces
	if t.Throughput <= 0 {
		return t.Phase
	}
	return fmt.Sprintf("epoch %d, step %d, about %s %s", t.Epoch, t.Step, number.Significant(t.Throughput), measure.RateUnit(s.Point.Workload.Train.Sample))
}
