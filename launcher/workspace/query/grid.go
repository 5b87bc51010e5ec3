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

// A gridRun is a run of a grid. It is small, since there may be many.
type gridRun struct {
	point  int // index of its point
	repeat int
	state  *launcher.State // nil if not started
}

// NewGrid returns the grid of a study's runs. If a run has several attempts, the last one counts.
func NewGrid(states []launcher.State, planned []launcher.Unbegun) *Grid {
	var points []row // the first run of each point
	at := map[pointID]int{}
	last := lastAttempts(states)
	for i := range last {
		if p := &last[i].Point; !has(at, pointID{p.Study, p.ID}) {
			at[pointID{p.Study, p.ID}] = 0
			points = append(points, row{point: *p, state: &last[i]})
		}
	}
	for i := range planned {
		if p := &planned[i].Point; !has(at, pointID{p.Study, p.ID}) {
			at[pointID{p.Study, p.ID}] = 0
			points = append(points, row{point: *p, planned: planned[i]})
		}
	}
	keys := varying(points)
	order(points, keys)
	for i, p := range points {
		at[p.id()] = i
	}
	var runs []gridRun
	for i := range last {
		p := &last[i].Point
		runs = append(runs, gridRun{at[pointID{p.Study, p.ID}], p.Repeat, &last[i]})
	}
	for i := range planned {
		p := &planned[i].Point
		runs = append(runs, gridRun{at[pointID{p.Study, p.ID}], p.Repeat, nil})
	}
	switch {
	case len(points) > mostRows:
		return gridByWorkers(runs, points)
	case len(runs) > mostCells:
		g := described(points, keys)
		g.count(runs, func(r gridRun) int { return r.point })
		return g
	}
	return gridOfRuns(runs, points, keys)
}

func has(at map[pointID]int, id pointID) bool {
	_, known := at[id]
	return known
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

// gridOfRuns returns a grid with a column for each repeat.
func gridOfRuns(runs []gridRun, points []row, keys []string) *Grid {
	g := described(points, keys)
	most := 0
	for _, r := range runs {
		most = max(most, r.repeat)
	}
	most = min(most, mostCells) // a folder's name may have any number
	for i := range most {
		g.Columns = append(g.Columns, fmt.Sprint(i+1))
	}
	for i := range g.Rows {
		g.Rows[i].Cells = make([]GridCell, most)
	}
	for _, r := range runs {
		if n := r.repeat; n >= 1 && n <= most {
			g.Rows[r.point].Cells[n-1] = r.cell()
		}
	}
	return g
}

// gridByWorkers returns a grid with a row for each framework and number of workers.
func gridByWorkers(runs []gridRun, points []row) *Grid {
	type group struct {
		framework string
		workers   int
	}
	count := map[group]int{}
	for _, p := range points {
		count[group{p.point.Framework, p.point.Workers}]++
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
	g.count(runs, func(r gridRun) int { return at[group{points[r.point].point.Framework, points[r.point].point.Workers}] })
	return g
}

// count adds a column for each state that a run has, and counts the runs. at returns the row of a
// run.
func (g *Grid) count(runs []gridRun, at func(gridRun) int) {
	counts := make([]map[metrics.Status]int, len(g.Rows))
	total := map[metrics.Status]int{}
	for _, r := range runs {
		i, status := at(r), r.status()
		if counts[i] == nil {
			counts[i] = map[metrics.Status]int{}
		}
		counts[i][status]++
		total[status]++
		if r.state != nil && status != metrics.Done && len(g.Notable) < mostNotable {
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

func (r gridRun) status() metrics.Status {
	if r.state == nil {
		return metrics.Planned
	}
	return r.state.Status
}

func (r gridRun) cell() GridCell {
	c := GridCell{Status: r.status()}
	if r.state == nil {
		return c
	}
	c.Run = r.state.Run.Name()
	c.Detail = clean.Line(cmp.Or(detailOf(r.state), reasonOf(r.state)))
	if !c.Status.Terminal() {
		c.Detail = clean.Line(cmp.Or(detailOf(r.state), Reached(*r.state), reasonOf(r.state)))
	}
	return c
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
