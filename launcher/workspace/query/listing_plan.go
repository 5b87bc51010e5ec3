package query

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

// Plan returns a study's plan as a table with one row per point. In the output for people, empty
// columns are omitted.
func Plan(st *study.Study, plan *study.Plan, in workspace.Inventory) *table.Table {
	none := func(has func(study.Point) bool) bool {
		return !slices.ContainsFunc(plan.Points, func(p study.Planned) bool { return has(p.Point) })
	}
	untold := func(path string) bool { return none(func(p study.Point) bool { return p.Reaches(path) }) }
	batchless := none(func(p study.Point) bool { return p.ReceivesBatch() })
	ownBatch := func(p study.Point) bool {
		return fmt.Sprint(p.Parameters()["workload.batch"]) != fmt.Sprint(p.WorkerBatch)
	}
	swept := slices.DeleteFunc(st.Swept(), func(path string) bool { // these keys have columns already
		return slices.Contains([]string{"framework", "variant", "workload.model", "workers", "resources.time"}, path)
	})
	t := &table.Table{Columns: []table.Column{{Key: "point"}, {Key: "framework"},
		{Key: "variant", Data: none(func(p study.Point) bool { return p.Variant != "" })}, {Key: "model", Data: untold("workload.model")}}}
	for _, path := range swept {
		t.Columns = append(t.Columns, table.Column{Key: path, Head: path[strings.LastIndexByte(path, '.')+1:], Show: number.Exact})
	}
	t.Columns = append(t.Columns, []table.Column{{Key: "workers"}, {Key: "nodes", Optional: true}, {Key: "workers_per_node", Optional: true},
		{Key: "partition", Optional: true}, {Key: "exclusive", Optional: true},
		{Key: "worker_batch", Optional: true, Data: batchless || slices.Contains(swept, "workload.batch") && none(ownBatch)}, {Key: "global_batch", Optional: true, Data: batchless},
		{Key: "learning_rate", Head: "scaled learning rate", Optional: true, Data: untold("workload.reference_batch")},
		{Key: "runs"}, {Key: "time_limit", Show: number.Seconds, Optional: true}, {Key: "node_hours", Head: "max node-hours"},
		{Key: "results"}, {Key: "why", Head: "missing"},
	}...)
	for _, p := range plan.Points {
		q := p.Point
		if q.Repeat != st.First {
			continue
		}
		cells := []any{q.ID, q.Framework, table.NonZero(q.Variant), heard(q, "workload.model", modelOf(st, q))}
		parameters := q.Parameters()
		for _, path := range swept {
			cells = append(cells, study.Redacted(path, parameters[path]))
		}
		t.Add(append(cells, q.Workers, q.Nodes, q.WorkersPerNode, table.NonZero(p.Partition), p.Exclusive, // an empty partition means the cluster's default partition
			batch(q, q.WorkerBatch), batch(q, q.GlobalBatch), heard(q, "workload.reference_batch", q.LearningRate), st.Runs(), q.Resources.Time.Seconds(),
			p.NodeHours()*float64(in.Left[q.ID]), in.Good[q.ID], table.NonZero(strings.Join(in.Why[q.ID], ", ")))...)
	}
	t.Columns[len(t.Columns)-1].Data = !slices.ContainsFunc(t.Rows, func(row []any) bool { return row[len(row)-1] != nil })
	t.Fold("point", "framework", "model", "nodes", "workers_per_node", "partition", "exclusive", "worker_batch", "global_batch", "learning_rate", "runs", "time_limit")
	return t
}

// modelOf returns the model of a point: its name, or for a service the path of its model file as
// the study gives it.
func modelOf(st *study.Study, p study.Point) string {
	if !p.Workload.UnderLoad() {
		return p.Workload.Train.Model
	}
	if name, err := filepath.Rel(st.Command.Folder, p.ModelFile()); err == nil && filepath.IsLocal(name) {
		return name
	}
	return p.Workload.Serve.Model
}

// heard returns the value of a study key if the point's program receives that key, else nil. A
// program that does not receive it may use another value.
func heard[T comparable](p study.Point, path string, value T) any {
	if !p.Reaches(path) {
		return nil
	}
	return table.NonZero(value)
}

// batch returns samples, a batch size; nil if the point's program does not receive its batch size.
func batch(p study.Point, samples int) any {
	if !p.ReceivesBatch() {
		return nil
	}
	return table.NonZero(samples)
}
