package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/summary"
	"github.com/scalebench/scalebench/metrics/table"
)

func Run(d *store.Details) []table.Section {
	evaluations := []summary.Accuracy(nil)
	if d.Result != nil {
		evaluations = d.Result.Evaluations
	}
	var places []measure.Place
	if d.Result != nil {
		places = d.Result.Places.List()
	}
	figures := slices.DeleteFunc(slices.Clone(d.Figures), summary.Placed)
	return slices.Concat([]table.Section{
		{Key: "run", Table: runRecord(d), Record: true, Upright: true},
		{Key: "parameters", Table: parameterRecord(d.Run.Parameters), Record: true, Upright: true},
		{Key: "job", Table: jobRecord(d.Run.Job), Record: true, Upright: true},
		{Key: "result", Table: resultRecord(d.Result, d.Run.Kind, d.Algorithm, d.Run.Parameters), Record: true, Upright: true},
		{Key: "fingerprint", Table: fingerprintRecord(d.Result), Record: true, Upright: true},
		{Key: "targets", Table: targetRows(d.Result)},
		{Key: "training", Table: trainRecord(d.Train), Record: true, Upright: true},
		{Key: "environments", Table: environmentRows(d.Environments), Upright: true},
		{Key: "staging", Table: stagedRows(d.Staged)},
		{Key: "epochs", Table: epochRows(d.Epochs)},
		{Key: "evaluations", Table: evaluationRows(evaluations)},
		{Key: "gradient_noise_scale", Table: noiseScaleRows(d.Result)},
	}, placeSections(places), []table.Section{
		{Key: "figures", Table: figureRows(figures)},
		{Key: "telemetry", Table: telemetryRows(d)},
		{Key: "energy", Table: energyRows(d)},
		{Key: "import", Table: importRecord(d.Source), Record: true, Upright: true},
		{Key: "files", Table: fileRows(d.Files)},
		{Key: "errors", Table: errorRows(d.Errors)},
		{Key: "bad_lines", Table: badLineRows(d.BadLines)},
	})
}

func runRecord(d *store.Details) *table.Table {
	r := d.Run
	t := &table.Table{Columns: table.Keys("run", "study", "series", "point", "repeat", "attempt", "kind", "framework", "workers", "nodes",
		"status", "detail", "dir", "created", "ingested", "tags", "note")}
	t.Add(r.ID, r.Study, d.Series, r.Point, r.Repeat, r.Attempt, r.Kind, r.Framework, r.Workers, table.NonZero(r.Nodes),
		string(r.Status), table.NonZero(r.Detail), r.Dir, unixTime(r.CreatedUnix), d.Ingested,
		table.NonZero(strings.Join(d.Remarks.Tags, " ")), table.NonZero(d.Remarks.Note))
	return t
}

// fingerprintRecord returns a table with one row and a column for each fact of the run's
// fingerprint.
func fingerprintRecord(r *summary.Outcome) *table.Table {
	t := &table.Table{}
	if r == nil {
		return t
	}
	var cells []any
	for _, field := range r.Fingerprint.Fields() {
		t.Columns = append(t.Columns, table.Column{Key: field, Head: fingerprint.Name(field)})
		cells = append(cells, r.Fingerprint[field])
	}
	if len(cells) > 0 {
		t.Add(cells...)
	}
	return t
}

// parameterRecord returns a table with one row and a column for each parameter, named by its TOML
// path.
func parameterRecord(parameters map[string]any) *table.Table {
	t := &table.Table{}
	var cells []any
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		t.Columns = append(t.Columns, table.Column{Key: key, Head: key, Show: number.Exact})
		cells = append(cells, parameters[key])
	}
	if len(cells) > 0 {
		t.Add(cells...)
	}
	return t
}

func jobRecord(j *metrics.Job) *table.Table {
	t := &table.Table{Columns: table.Keys("cluster", "id", "name", "partition", "state", "reason", "exit_code", "nodes", "submitted", "started", "ended")}
	if j != nil {
		t.Add(table.NonZero(j.Cluster), table.NonZero(j.ID), table.NonZero(j.Name), table.NonZero(j.Partition), table.NonZero(j.State), table.NonZero(j.Reason), table.NonZero(j.ExitCode),
			strings.Join(j.Nodes, ","), unixTime(j.SubmitUnix), unixTime(j.StartUnix), unixTime(j.EndUnix))
	}
	return t
}

// resultRecord returns a table with one row: a column for each measure of the run's kind of
// workload, for each measure that the run reports, and then for other facts.
func resultRecord(r *summary.Outcome, kind string, algorithm int, parameters map[string]any) *table.Table {
	t := &table.Table{}
	if r == nil {
		return t
	}
	var cells []any
	for _, m := range append(measure.ForKind(kind), r.Reported...) {
		if m.At != "" {
			continue
		}
		sample, _ := parameters[measure.SampleKey].(string)
		c := table.ColumnOf(m.Counting(sample))
		c.Optional = m.Uses()
		t.Columns = append(t.Columns, c)
		cells = append(cells, r.Known(m.Name))
		if why := r.Why[m.Name]; why != "" || m.Name == measure.Throughput {
			t.Columns = append(t.Columns, table.Column{Key: m.Name + "_why", Head: "no " + m.Title + " because"})
			cells = append(cells, table.NonZero(why))
		}
	}
	t.Columns = append(t.Columns, table.Column{Key: "world"}, table.Column{Key: "restart"}, table.Column{Key: "steps"}, table.Column{Key: "warmup_steps"}, table.Column{Key: "steady_steps"},
		table.Column{Key: "samples"}, table.Column{Key: "epochs"}, table.Column{Key: "slowest", Head: "slowest in steps, by rank"},
		table.Column{Key: "noise_scale_why", Head: "no gradient noise scale because"}, table.Column{Key: "algorithm"}, table.Column{Key: "warnings", Data: true})
	var slowest any
	if r.Slowest != nil {
		slowest = r.Slowest
	}
	warnings := r.Warnings
	if warnings == nil {
		warnings = []string{}
	}
	t.Add(append(cells, r.World, r.Restart, table.NonZero(r.Steps), bySteps(r.WarmupSteps, r.Steps), bySteps(r.SteadySteps, r.Steps), bySteps(r.Samples, r.Steps),
		bySteps(r.Epochs, r.Steps), slowest, table.NonZero(r.NoiseScaleWhy), algorithm, warnings)...)
	return t
}

// noiseScaleRows returns a table of the gradient noise scale of each epoch, with what it was
// computed from: the number of steps, the batch per rank, and the global batch. An interval may
// have no upper bound.
func noiseScaleRows(r *summary.Outcome) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "epoch"}, {Key: "noise_scale", Unit: "samples"},
		{Key: "low", Head: fmt.Sprintf("%.0f %% interval from", 100*summary.NoiseScaleLevel)}, {Key: "high", Head: "to"},
		{Key: "steps"}, {Key: "batch"}, {Key: "global_batch"}, {Key: "gradient_squared", Data: true}, {Key: "noise", Data: true},
		{Key: "level", Data: true}, {Key: "why", Head: "missing because"}}}
	if r == nil {
		return t
	}
	for _, n := range r.NoiseScales {
		var gradient, noise, level any
		if n.Steps > 0 {
			gradient, noise = n.GradientSquared, n.Noise
		}
		if n.Low != nil || n.High != nil {
			level = summary.NoiseScaleLevel
		}
		t.Add(n.Epoch, n.Samples, n.Low, n.High, table.NonZero(n.Steps), n.Batch, n.GlobalBatch, gradient, noise, level, table.NonZero(n.Why))
	}
	return t
}

func targetRows(r *summary.Outcome) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "accuracy", Show: number.Exact}, {Key: "seconds", Head: "reached after", Show: number.Seconds}}}
	if r == nil {
		return t
	}
	targets := r.Targets()
	if slices.ContainsFunc(targets, func(t measure.Target) bool { return t.Of != measure.OfAccuracy }) {
		t.Columns[0] = table.Column{Key: "target"}
	}
	for _, target := range targets {
		first := any(target.Value)
		if t.Columns[0].Key == "target" {
			first = target.Text()
		}
		t.Add(first, r.Known(target.Time().Name))
	}
	return t
}

func trainRecord(tr *metrics.Train) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "parameters"}, {Key: "gradient_bytes", Show: number.Bytes}, {Key: "train_samples"}, {Key: "test_samples"},
		{Key: "global_batch"}, {Key: "steps_per_epoch"}, {Key: "parameter_sha256"}, {Key: "data_sha256"}}}
	if tr != nil {
		t.Add(table.NonZero(tr.Parameters), table.NonZero(tr.GradientBytes), table.NonZero(tr.TrainSamples), table.NonZero(tr.TestSamples), table.NonZero(tr.GlobalBatch), table.NonZero(tr.StepsPerEpoch),
			table.NonZero(tr.ParameterSHA256), table.NonZero(tr.DataSHA256))
	}
	return t
}

func environmentRows(list []store.Environment) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "ranks"}, {Key: "host"}, {Key: "cpu"}, {Key: "cpus"}, {Key: "cpu_set"}, {Key: "threads"},
		{Key: "memory_bytes", Head: "memory", Show: number.Bytes}, {Key: "gpus"}, {Key: "interface"},
		{Key: "kernel"}, {Key: "git_commit"}, {Key: "files"}, {Key: "versions"}, {Key: "variables"}}}
	for _, e := range list {
		v := e.Environment
		var gpus, network any
		if len(v.GPUs) > 0 {
			gpus = v.GPUs
		}
		if v.Interface != nil {
			network = v.Interface
		}
		t.Add(e.Ranks, table.NonZero(v.Hostname), table.NonZero(v.CPUModel), table.NonZero(v.CPUs), table.NonZero(v.CPUSet), table.NonZero(v.Threads), table.NonZero(v.MemoryBytes),
			gpus, network, table.NonZero(v.Kernel), table.NonZero(v.GitCommit), orNone(v.Files), orNone(v.Versions), orNone(v.Variables))
	}
	return t
}

func stagedRows(list []store.Staged) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "restart"}, {Key: "node"}, {Key: "host"}, {Key: "item"}, {Key: "seconds", Head: "took", Show: number.Seconds},
		{Key: "bytes", Show: number.Bytes}, {Key: "reused"}, {Key: "source"}, {Key: "path"}}}
	for _, s := range list {
		t.Add(s.Restart, s.Rank, table.NonZero(s.Host), s.Item, s.Seconds, s.Bytes, s.Reused, s.Source, s.Staged.Path)
	}
	return t
}

func epochRows(list []metrics.Epoch) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "epoch"}, {Key: "step"}, {Key: "samples", Head: "samples of rank 0"}, {Key: "seconds", Head: "time", Show: number.Seconds},
		{Key: "loss"}, {Key: "learning_rate"}}}
	for _, e := range list {
		t.Add(e.Epoch, e.Step, e.Samples, e.Seconds, e.Loss, table.NonZero(e.LearningRate))
	}
	return t
}

func evaluationRows(list []summary.Accuracy) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "epoch"}, {Key: "step"}, {Key: "samples"}, {Key: "seconds", Head: "at", Show: number.Seconds}, {Key: "accuracy", Show: number.Percent}, {Key: "loss"}}}
	for _, e := range list {
		t.Add(e.Epoch, e.Step, e.Samples, e.Seconds, e.Accuracy, e.Loss)
	}
	return t
}

func fileRows(list []store.File) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "path"}, {Key: "writer", Data: true}, {Key: "rank", Data: true}, {Key: "restart", Data: true}, {Key: "host"},
		{Key: "bytes", Show: number.Bytes}, {Key: "lines"}, {Key: "stop"}, {Key: "cause"}}}
	for _, f := range list {
		var stop, cause any
		if f.Stop != nil {
			stop, cause = f.Stop.Status, table.NonZero(f.Stop.Cause)
		}
		t.Add(f.Path, f.Writer, f.Rank, f.Restart, table.NonZero(f.Host), f.Bytes, f.Lines, stop, cause)
	}
	return t
}

func errorRows(list []store.RankError) *table.Table {
	t := &table.Table{Columns: table.Keys("writer", "rank", "restart", "where", "message")}
	for _, e := range list {
		t.Add(e.Writer, e.Rank, e.Restart, e.Error.Where, e.Error.Message)
	}
	return t
}

func badLineRows(list []metrics.LineError) *table.Table {
	t := &table.Table{Columns: table.Keys("file", "line", "message")}
	for _, e := range list {
		t.Add(e.File, e.Line, e.Err.Error())
	}
	return t
}

// unixTime returns a time in seconds since 1970 as a cell; 0 means unknown.
func unixTime(seconds float64) any {
	if seconds == 0 {
		return nil
	}
	return metrics.Time(seconds)
}

// orNone returns a map as a cell; nil if it is empty.
func orNone(m map[string]string) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

// figureRows returns a table of the figures that the run's logs state, with their descriptions.
func figureRows(list []metrics.Figure) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "figure"}, {Key: "value", Show: number.Exact}, {Key: "unit"}, {Key: "plus_minus", Head: "±", Show: number.Exact}, {Key: "at"},
		{Key: "source"}, {Key: "line", Show: number.Exact}, {Key: "reduction"}, {Key: "values", Show: number.Exact}, {Key: "note"}, {Key: "plus_minus_is", Head: "± is"}}}
	for _, g := range list {
		t.Add(g.Name, g.Value, table.NonZero(unitOf(g)), g.PlusMinus, table.NonZero(placeText(g.At)), table.NonZero(g.File), table.NonZero(g.Line), table.NonZero(g.Reduce), table.NonZero(g.Of), table.NonZero(g.Note), table.NonZero(g.PlusMinusIs))
	}
	return t
}

func importRecord(from *store.Source) *table.Table {
	t := &table.Table{Columns: table.Keys("path", "part", "format", "sha256")}
	if from != nil {
		t.Add(from.Path, table.NonZero(from.Part), from.Format, from.SHA256)
	}
	return t
}

// bySteps returns a count that was made over recorded steps as a cell. Without recorded steps, as
// in another program's log, a count of 0 means unknown.
func bySteps[N int | int64](n N, steps int) any {
	if steps == 0 {
		return table.NonZero(n)
	}
	return n
}

// unitOf returns the unit of a figure from a log. MFU and other shares of a device's peak have
// the unit "fraction".
func unitOf(g metrics.Figure) string {
	if measure.Reported(g.Name, g.Unit, measure.Neither).Show == measure.Percent {
		return "fraction"
	}
	return g.Unit
}

// placeText describes the coordinates of a figure; "" for a figure of the whole run.
func placeText(at map[string]any) string {
	var parts []string
	known := []string{"op", "bytes", "in_place", "epoch", "step"}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(at)), func(key string) bool { return slices.Contains(known, key) })
	for _, key := range append(known, others...) {
		switch v := at[key].(type) {
		case string:
			parts = append(parts, v)
		case float64:
			switch {
			case key == "in_place" && v == 0:
				parts = append(parts, "out of place")
			case key == "in_place":
				parts = append(parts, "in place")
			default:
				parts = append(parts, key+" "+strconv.FormatFloat(v, 'f', -1, 64))
			}
		}
	}
	return strings.Join(parts, ", ")
}
