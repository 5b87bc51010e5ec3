package report

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// RunMeasures are the measures that every list of runs shows.
var RunMeasures = declared(measure.Throughput, measure.EndToEnd, measure.StepP50, measure.TrainSeconds, measure.FinalAccuracy)

// declared returns the declared measures with the given names.
func declared(names ...string) []measure.Measure {
	list := make([]measure.Measure, len(names))
	for i, name := range names {
		var err error
		if list[i], err = measure.Find(name); err != nil {
			panic(err) // a programming error: the constant is not declared
		}
	}
	return list
}

// Runs returns a table of runs with their values of the measures in of, which must begin with
// RunMeasures. If the runs' parameters were loaded (see store.Describe), people get a column for
// each parameter that differs among the runs of a study.
func Runs(rows []store.RunRow, of []measure.Measure) *table.Table {
	keys, at := swept(rows), placeKeys(of)
	t := &table.Table{Columns: runColumns(rows, keys, at, of)}
	for _, r := range rows {
		t.Add(runCells(r, keys, at)...)
	}
	return t
}

// writeRuns writes the table of a study's runs as CSV, one run after the other.
func writeRuns(ctx context.Context, db *store.Store, study string, of []measure.Measure, w io.Writer) error {
	at := placeKeys(of)
	csv, err := table.NewCSV(w, runColumns(nil, nil, at, of)) // the parameters are for people only
	if err != nil {
		return err
	}
	if err := db.EachRun(ctx, store.Filter{Study: study}, of, func(r store.RunRow) error { return csv.Write(runCells(r, nil, at)...) }); err != nil {
		return err
	}
	return csv.Flush()
}

// placeKeys returns the coordinates of the measures; nil if none has any.
func placeKeys(of []measure.Measure) []string {
	for _, m := range of {
		if m.At != "" {
			return m.At.Keys() // store.Runs accepts only measures with the same coordinates
		}
	}
	return nil
}

// runColumns returns the columns of a table of runs: keys are the parameters that differ, at the
// coordinates of places within a run.
func runColumns(rows []store.RunRow, keys, at []string, of []measure.Measure) []table.Column {
	empty := func(i int) bool {
		return !slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Values[i] != nil })
	}
	// In tables for people, leave out empty columns if the runs have another measure.
	others := false
	for i := len(RunMeasures); i < len(of); i++ {
		others = others || !empty(i)
	}
	columns := []table.Column{{Key: "run", ID: true}}
	for _, c := range keyColumns(keys) {
		c.ID, c.Optional = false, true
		columns = append(columns, c)
	}
	columns = append(columns, []table.Column{
		{Key: "study", Data: true},
		{Key: "series", Data: true},
		{Key: "point", Data: true},
		{Key: "repeat", Data: true},
		{Key: "attempt", Data: true},
		{Key: "framework", Optional: true},
		{Key: "workers"},
		{Key: "nodes", Optional: true},
		{Key: "status"},
		{Key: "detail", Data: true},
		{Key: "job", Optional: true},
		{Key: "job_state", Data: true},
		{Key: "created", Optional: true},
		{Key: "dir", Data: true},
		{Key: "steps", Data: true},
		{Key: "epochs", Optional: true},
		{Key: "throughput", Unit: rateUnit(rows), Data: others && empty(0)},
		{Key: "throughput_why", Data: true},
		{Key: "end_to_end", Data: true},
		{Key: "step_p50", Head: "step", Show: number.Seconds, Optional: true},
		{Key: "train_seconds", Head: "training", Show: number.Seconds, Optional: true},
		{Key: "final_accuracy", Head: "accuracy", Show: number.Percent, Data: others && empty(4)},
		{Key: "warnings", Data: true},
		{Key: "tags", Data: !slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Tags != "" })},
		{Key: "note", Data: !slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Note != "" })},
	}...)
	for _, key := range at {
		columns = append(columns, coordinateColumn(key))
	}
	for _, m := range of[len(RunMeasures):] {
		columns = append(columns, table.ColumnOf(m))
	}
	return columns
}

// runCells returns a run's cells in the columns that runColumns returns.
func runCells(r store.RunRow, keys, at []string) []any {
	warnings := r.Warnings
	if warnings == nil {
		warnings = []string{}
	}
	if r.Steps != nil && *r.Steps == 0 {
		r.Steps = nil // steps were not counted
		if r.Epochs != nil && *r.Epochs == 0 {
			r.Epochs = nil
		}
	}
	cells := []any{r.Run}
	for _, key := range keys {
		cells = append(cells, r.Parameters[key])
	}
	cells = append(cells, r.Study, r.Series, r.Point, r.Repeat, r.Attempt, r.Framework, r.Workers, table.NonZero(r.Nodes), string(r.Status), table.NonZero(r.Detail),
		table.NonZero(r.Job), table.NonZero(r.JobState), r.Created, r.Dir, r.Steps, r.Epochs, r.Values[0], table.NonZero(r.ThroughputWhy), r.Values[1],
		r.Values[2], r.Values[3], r.Values[4], warnings, table.NonZero(r.Tags), table.NonZero(r.Note))
	for _, key := range at {
		cells = append(cells, r.At[key])
	}
	for _, v := range r.Values[len(RunMeasures):] {
		cells = append(cells, v)
	}
	return cells
}

// rateUnit returns the unit of the runs' throughputs: images/s, for example, if all runs say that
// a sample is an image; samples/s otherwise.
func rateUnit(rows []store.RunRow) string {
	said := ""
	for i, r := range rows {
		word, _ := r.Parameters[measure.SampleKey].(string)
		if i > 0 && word != said {
			return measure.RateUnit("")
		}
		said = word
	}
	return measure.RateUnit(said)
}

// swept returns the parameters that have different values in the listed runs of a study.
func swept(rows []store.RunRow) []string {
	of := map[string][]map[string]any{}
	for _, r := range rows {
		if r.Parameters != nil {
			of[r.Study] = append(of[r.Study], r.Parameters)
		}
	}
	return scaling.VaryingWithin(of)
}

// InOrder returns the runs of one study sorted by the values of its swept parameters (by size if
// they are numbers), then by workers, point, repeat and attempt. Runs of several studies keep
// their order, and so do runs without swept parameters.
func InOrder(rows []store.RunRow) []store.RunRow {
	keys := swept(rows)
	if len(keys) == 0 || slices.ContainsFunc(rows, func(r store.RunRow) bool { return r.Study != rows[0].Study }) {
		return rows
	}
	list := slices.Clone(rows)
	slices.SortStableFunc(list, func(a, b store.RunRow) int {
		c := cmp.Compare(a.Framework, b.Framework)
		for _, key := range keys {
			if c == 0 {
				c = scaling.ValueOf(a.Parameters[key]).Compare(scaling.ValueOf(b.Parameters[key]))
			}
		}
		return cmp.Or(c, cmp.Compare(a.Workers, b.Workers), cmp.Compare(a.Point, b.Point), cmp.Compare(a.Repeat, b.Repeat), cmp.Compare(a.Attempt, b.Attempt))
	})
	return list
}

// evaluationsTable returns a table of the evaluations of the runs.
func evaluationsTable(obs []scaling.Observation) *table.Table {
	t := &table.Table{Columns: table.Keys("run", "epoch", "seconds", "samples", "accuracy")}
	for _, o := range obs {
		for _, e := range o.Evaluations {
			t.Add(o.Run, e.Epoch, e.Seconds, e.Samples, e.Accuracy)
		}
	}
	return t
}
