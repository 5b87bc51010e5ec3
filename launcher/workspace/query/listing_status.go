package query

import (
	"cmp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// Status returns a table of the progress of runs, with one row per attempt and one per planned
// run without an attempt. Each key that a study varies has a column. Rows are sorted by these
// keys, numerically if they are numbers, then by workers, repeat and attempt.
func Status(states []launcher.State, planned []launcher.Unbegun) *table.Table {
	rows := rowsOf(states, planned)
	keys := varying(rows)
	order(rows, keys)
	return status(rows, keys)
}

// inOrder is like Status, but keeps the given order of the runs.
func inOrder(states []launcher.State, planned []launcher.Unbegun) *table.Table {
	rows := rowsOf(states, planned)
	return status(rows, varying(rows))
}

// rateUnit returns the unit of the throughputs: samples/s, unless all points use the same name
// for their samples, such as "images".
func rateUnit(rows []row) string {
	said := ""
	for i, r := range rows {
		word := r.point.Workload.Train.Sample
		if i > 0 && word != said {
			return measure.RateUnit("")
		}
		said = word
	}
	return measure.RateUnit(said)
}

// progressOf returns how far a run is; nil for what is unknown.
func progressOf(s *launcher.State) (epoch, step, rate, accuracy any) {
	traces := s.Traces
	if !traces.Begun {
		return
	}
	untold := s.Status.Terminal() || s.Point.Command.Run != nil // the epoch may be unknown so far, because it is read from the program's log
	if s.Point.Workload.Trains() && (traces.Epoch > 0 || traces.Step > 0 || !untold) {
		epoch, step = traces.Epoch, traces.Step
	}
	if traces.Throughput > 0 {
		rate = traces.Throughput
	}
	if traces.Accuracy != nil {
		accuracy = *traces.Accuracy
	}
	return
}

// status returns the table for Status, with one row per run and one column for each of the
// keys.
func status(rows []row, keys []string) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "run"}}}
	t.Columns = append(t.Columns, columns(keys)...)
	t.Columns = append(t.Columns, table.Column{Key: "workers"}, table.Column{Key: "status"}, table.Column{Key: "job", Optional: true},
		table.Column{Key: "slurm_state", Head: "Slurm", Optional: true}, table.Column{Key: "reason", Optional: true},
		table.Column{Key: "epoch", Optional: true}, table.Column{Key: "step", Optional: true},
		table.Column{Key: "recent_throughput", Head: "recent throughput", Unit: rateUnit(rows), Optional: true}, table.Column{Key: "accuracy", Show: number.Percent, Optional: true}, table.Column{Key: "detail"},
		table.Column{Key: "framework", Data: true}) // omitted for people, who see it in the run's name
	for _, r := range rows {
		if r.state == nil {
			t.Add(slices.Concat([]any{r.planned.First.ID()}, values(keys, r.point),
				[]any{r.point.Workers, string(metrics.Planned), nil, nil, nil, nil, nil, nil, nil, nil, r.point.Framework})...)
			continue
		}
		s := r.state
		var job, word, reason any
		if j := s.Job; j != nil {
			job, word, reason = j.ID, table.NonZero(j.State), table.NonZero(j.Reason)
			if s.Status == metrics.Cancelled { // Slurm keeps the last reason for waiting
				reason = nil
			}
		}
		detail := detailOf(s)
		if detail == reason || detail == word {
			detail = "" // avoid showing it twice
		}
		if s.Traces.Begun && !s.Status.Terminal() {
			detail = cmp.Or(detail, s.Traces.Phase)
		}
		epoch, step, rate, accuracy := progressOf(s)
		t.Add(slices.Concat([]any{s.Record.ID}, values(keys, r.point),
			[]any{table.NonZero(r.point.Workers), string(s.Status), job, word, reason, epoch, step, rate, accuracy, table.NonZero(detail), table.NonZero(r.point.Framework)})...)
	}
	return t
}

// detailOf returns what is known about a run's state. The path of a run that cannot be read is
// left out, because its row names the run.
func detailOf(s *launcher.State) string {
	if s.Err == nil {
		return s.Detail
	}
	return strings.ReplaceAll(s.Detail, s.Run.Path()+"/", "")
}

// A row is an attempt, or a planned run without an attempt.
type row struct {
	point   study.Point
	attempt int             // number of the attempt; 0 for a planned run
	state   *launcher.State // nil if not started
	planned launcher.Unbegun
}

func rowsOf(states []launcher.State, planned []launcher.Unbegun) []row {
	var rows []row
	for _, s := range states {
		rows = append(rows, row{point: s.Point, attempt: s.Number, state: &s})
	}
	for _, p := range planned {
		rows = append(rows, row{point: p.Point, planned: p})
	}
	return rows
}

// varying returns the keys in which the points of a study differ.
func varying(rows []row) []string {
	of := map[string][]map[string]any{} // by study
	for id, p := range parametersOf(rows) {
		of[id.study] = append(of[id.study], p)
	}
	return scaling.VaryingWithin(of)
}

type pointID struct{ study, id string }

func (r row) id() pointID { return pointID{r.point.Study, r.point.ID} }

// parametersOf returns the parameters of each point. It omits points that could not be read.
func parametersOf(rows []row) map[pointID]map[string]any {
	of := map[pointID]map[string]any{}
	for _, r := range rows {
		if r.point.Framework != "" && of[r.id()] == nil {
			of[r.id()] = r.point.Parameters()
		}
	}
	return of
}

// order sorts the rows by study, framework, the given keys and so on. It compares numeric
// values as numbers, not as text.
func order(rows []row, keys []string) {
	of := parametersOf(rows)
	slices.SortStableFunc(rows, func(a, b row) int {
		c := cmp.Or(cmp.Compare(a.point.Study, b.point.Study), cmp.Compare(a.point.Framework, b.point.Framework))
		for _, key := range keys {
			if c == 0 {
				c = scaling.ValueOf(of[a.id()][key]).Compare(scaling.ValueOf(of[b.id()][key]))
			}
		}
		return cmp.Or(c, cmp.Compare(a.point.Workers, b.point.Workers), cmp.Compare(a.point.ID, b.point.ID),
			cmp.Compare(a.point.Repeat, b.point.Repeat), cmp.Compare(a.attempt, b.attempt))
	})
}

// columns returns one column for each of the keys, with a short heading.
func columns(keys []string) []table.Column {
	heads := scaling.Short(keys)
	list := make([]table.Column, len(keys))
	for i, key := range keys {
		list[i] = table.Column{Key: key, Head: heads[i], Show: number.Exact}
	}
	return list
}

// values returns the values of the keys at a point, in the order of the keys.
func values(keys []string, p study.Point) []any {
	list := make([]any, len(keys))
	if len(keys) > 0 && p.Framework != "" {
		parameters := p.Parameters()
		for i, key := range keys {
			list[i] = study.Redacted(key, parameters[key])
		}
	}
	return list
}
