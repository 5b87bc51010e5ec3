package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/collective"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/noisescale"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/summary"
)

func showCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "print everything about one run",
		ArgsUsage: "RUN",
		Description: "RUN is a run as `runs` lists it, or so much of its beginning or end that no other\n" +
			"run has it. JSON is one object with a member for each section.",
		Action: func(c *cli.Context) error { return runShow(c.Context, s, c.Args().First()) },
	}
}

func runShow(ctx context.Context, s *session, run string) error {
	db, err := s.openStore()
	if err != nil {
		return err
	}
	defer db.Close()
	d, err := db.Show(ctx, run)
	if err != nil {
		return storeError(err)
	}
	w := bufio.NewWriter(s.stdout)
	if err := writeSections(w, sectionsOf(d), s.format, screenOf(s.stdout)); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot write the output: %w", err)
	}
	if d.Result != nil {
		for _, doubt := range d.Result.Warnings {
			s.warn("%s", doubt)
		}
	}
	return nil
}

// section is one part of what is shown of a run.
type section struct {
	key     string
	table   *table
	record  bool // at most one row
	upright bool // for people, the cells of a row stand below each other
}

// writeSections prints the sections in any of the formats. JSON has a member
// for each: an object or null for a record, a list for the others. CSV has a
// line for each value.
func writeSections(w io.Writer, sections []section, format string, on screen) error {
	switch format {
	case formatJSON:
		return writeSectionsJSON(w, sections)
	case formatCSV:
		flat := &table{columns: []column{{key: "section"}, {key: "row"}, {key: "key"}, {key: "value"}}}
		for _, part := range sections {
			for i, row := range part.table.rows {
				number := any(i + 1)
				if part.record {
					number = nil
				}
				for j, cell := range row {
					flat.add(part.key, number, part.table.columns[j].key, cell)
				}
			}
		}
		return flat.write(w, format, on)
	}
	first := true
	for _, part := range sections {
		if len(part.table.rows) == 0 {
			continue
		}
		gap := "\n"
		if first {
			gap, first = "", false
		}
		title := strings.ReplaceAll(part.key, "_", " ")
		switch {
		case format == formatMarkdown:
			title = "## " + title + "\n"
		case on.bold:
			title = "\x1b[1m" + title + "\x1b[0m"
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", gap, title); err != nil {
			return err
		}
		shown := []*table{part.table}
		if part.upright {
			shown = part.table.forPeople().uprights()
		}
		for i, t := range shown {
			if i > 0 {
				if _, err := io.WriteString(w, "\n"); err != nil {
					return err
				}
			}
			if err := t.write(w, format, on); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeSectionsJSON(w io.Writer, sections []section) error {
	members := make([]string, len(sections))
	for i, part := range sections {
		value := "null"
		var err error
		switch {
		case !part.record:
			value, err = part.table.list("  ")
		case len(part.table.rows) > 0:
			value, err = part.table.object(0)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", part.key, err)
		}
		members[i] = fmt.Sprintf("\n  %q: %s", part.key, value)
	}
	_, err := io.WriteString(w, "{"+strings.Join(members, ",")+"\n}\n")
	return err
}

// uprights are the rows of a table, each set as a table of two columns, for
// people.
func (t *table) uprights() []*table {
	list := make([]*table, len(t.rows))
	for i, row := range t.rows {
		list[i] = &table{columns: keys("key", "value")}
		for j, cell := range row {
			list[i].add(t.columns[j].title(), t.columns[j].text(cell))
		}
	}
	return list
}

func sectionsOf(d *store.Details) []section {
	evaluations := []summary.Accuracy(nil)
	if d.Result != nil {
		evaluations = d.Result.Evaluations
	}
	measured, figures := collective.Of(d.Figures)
	var links []collective.Link
	if d.Result != nil {
		links = d.Result.Links
	}
	return []section{
		{key: "run", table: runRecord(d), record: true, upright: true},
		{key: "parameters", table: parameterRecord(d.Run.Parameters), record: true, upright: true},
		{key: "job", table: jobRecord(d.Run.Job), record: true, upright: true},
		{key: "result", table: resultRecord(d.Result, d.Run.Kind, d.Algorithm), record: true, upright: true},
		{key: "fingerprint", table: fingerprintRecord(d.Result), record: true, upright: true},
		{key: "targets", table: targetRows(d.Result)},
		{key: "training", table: trainRecord(d.Train), record: true, upright: true},
		{key: "environments", table: environmentRows(d.Environments), upright: true},
		{key: "staging", table: stagedRows(d.Staged)},
		{key: "epochs", table: epochRows(d.Epochs)},
		{key: "evaluations", table: evaluationRows(evaluations)},
		{key: "gradient_noise_scale", table: noiseScaleRows(d.Result)},
		{key: "links", table: linkRows(links)},
		{key: "collectives", table: collectiveRows(measured)},
		{key: "figures", table: figureRows(figures)},
		{key: "import", table: importRecord(d.Source), record: true, upright: true},
		{key: "files", table: fileRows(d.Files)},
		{key: "errors", table: errorRows(d.Errors)},
		{key: "bad_lines", table: badLineRows(d.BadLines)},
	}
}

func runRecord(d *store.Details) *table {
	r := d.Run
	t := &table{columns: keys("run", "study", "series", "point", "repeat", "attempt", "kind", "framework", "workers", "nodes",
		"status", "detail", "dir", "created", "ingested")}
	t.add(r.ID, r.Study, d.Series, r.Point, r.Repeat, r.Attempt, r.Kind, r.Framework, r.Workers, positive(r.Nodes),
		string(r.Status), orNil(r.Detail), r.Dir, unixTime(r.CreatedUnix), d.Ingested)
	return t
}

// fingerprintRecord has a column for each fact by which the run is held
// comparable with others.
func fingerprintRecord(r *summary.Result) *table {
	t := &table{}
	if r == nil {
		return t
	}
	var cells []any
	for _, field := range r.Fingerprint.Fields() {
		t.columns = append(t.columns, column{key: field, head: fingerprint.Name(field)})
		cells = append(cells, r.Fingerprint[field])
	}
	if len(cells) > 0 {
		t.add(cells...)
	}
	return t
}

// parameterRecord has a column for each parameter, titled by its TOML path.
func parameterRecord(parameters map[string]any) *table {
	t := &table{}
	var cells []any
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		t.columns = append(t.columns, column{key: key, head: key, show: exactly})
		cells = append(cells, parameters[key])
	}
	if len(cells) > 0 {
		t.add(cells...)
	}
	return t
}

func jobRecord(j *metrics.Job) *table {
	t := &table{columns: keys("cluster", "id", "name", "partition", "state", "reason", "exit_code", "nodes", "submitted", "started", "ended")}
	if j != nil {
		t.add(orNil(j.Cluster), orNil(j.ID), orNil(j.Name), orNil(j.Partition), orNil(j.State), orNil(j.Reason), orNil(j.ExitCode),
			strings.Join(j.Nodes, ","), unixTime(j.SubmitUnix), unixTime(j.StartUnix), unixTime(j.EndUnix))
	}
	return t
}

// resultRecord has a column for each measure of the run's kind of workload and
// each that it reports, and behind them the facts that are none.
func resultRecord(r *summary.Result, kind string, algorithm int) *table {
	t := &table{}
	if r == nil {
		return t
	}
	var cells []any
	for _, m := range append(measure.Of(kind), r.Reported...) {
		t.columns = append(t.columns, measureColumn(m))
		cells = append(cells, r.Known(m.Name))
		if why := r.Why[m.Name]; why != "" || m.Name == measure.Throughput {
			t.columns = append(t.columns, column{key: m.Name + "_why", head: "no " + m.Title + " because"})
			cells = append(cells, orNil(why))
		}
	}
	t.columns = append(t.columns, column{key: "world"}, column{key: "restart"}, column{key: "steps"}, column{key: "warmup_steps"}, column{key: "steady_steps"},
		column{key: "samples"}, column{key: "epochs"}, column{key: "slowest", head: "slowest in steps, by rank"},
		column{key: "noise_scale_why", head: "no gradient noise scale because"}, column{key: "algorithm"}, column{key: "warnings", data: true})
	var slowest any
	if r.Slowest != nil {
		slowest = r.Slowest
	}
	warnings := r.Warnings
	if warnings == nil {
		warnings = []string{}
	}
	t.add(append(cells, r.World, r.Restart, positive(r.Steps), bySteps(r.WarmupSteps, r.Steps), bySteps(r.SteadySteps, r.Steps), bySteps(r.Samples, r.Steps),
		bySteps(r.Epochs, r.Steps), slowest, orNil(r.NoiseScaleWhy), algorithm, warnings)...)
	return t
}

// noiseScaleRows are the gradient noise scale of each epoch. What its figures
// are made of stands beside them: from so many steps, by gradients of a rank's
// batch and of the global one. An interval without an upper end says so.
func noiseScaleRows(r *summary.Result) *table {
	t := &table{columns: []column{{key: "epoch"}, {key: "noise_scale", unit: "samples"},
		{key: "low", head: fmt.Sprintf("%.0f %% interval from", 100*noisescale.Level)}, {key: "high", head: "to"},
		{key: "steps"}, {key: "batch"}, {key: "global_batch"}, {key: "gradient_squared", data: true}, {key: "noise", data: true},
		{key: "level", data: true}, {key: "why", head: "missing because"}}}
	if r == nil {
		return t
	}
	for _, n := range r.NoiseScales {
		var gradient, noise, level any
		if n.Steps > 0 {
			gradient, noise = n.GradientSquared, n.Noise
		}
		if n.Low != nil || n.High != nil {
			level = noisescale.Level
		}
		t.add(n.Epoch, n.Samples, n.Low, n.High, positive(n.Steps), n.Batch, n.GlobalBatch, gradient, noise, level, orNil(n.Why))
	}
	return t
}

func targetRows(r *summary.Result) *table {
	t := &table{columns: []column{{key: "accuracy", show: exactly}, {key: "seconds", head: "time to it", show: seconds}}}
	if r != nil {
		for _, target := range r.Targets() {
			t.add(target, r.Known(measure.To(target).Name))
		}
	}
	return t
}

func trainRecord(tr *metrics.Train) *table {
	t := &table{columns: []column{{key: "parameters"}, {key: "gradient_bytes", show: binaryBytes}, {key: "train_samples"}, {key: "test_samples"},
		{key: "global_batch"}, {key: "steps_per_epoch"}, {key: "parameter_sha256"}, {key: "data_sha256"}}}
	if tr != nil {
		t.add(positive(tr.Parameters), positive(tr.GradientBytes), positive(tr.TrainSamples), positive(tr.TestSamples), positive(tr.GlobalBatch), positive(tr.StepsPerEpoch),
			orNil(tr.ParameterSHA256), orNil(tr.DataSHA256))
	}
	return t
}

func environmentRows(list []store.Environment) *table {
	t := &table{columns: []column{{key: "ranks"}, {key: "host"}, {key: "cpu"}, {key: "cpus"}, {key: "cpu_set"}, {key: "threads"},
		{key: "memory_bytes", head: "memory", show: binaryBytes}, {key: "gpus"}, {key: "interface"},
		{key: "kernel"}, {key: "git_commit"}, {key: "files"}, {key: "versions"}, {key: "variables"}}}
	for _, e := range list {
		v := e.Environment
		var gpus, network any
		if len(v.GPUs) > 0 {
			gpus = v.GPUs
		}
		if v.Interface != nil {
			network = v.Interface
		}
		t.add(e.Ranks, orNil(v.Hostname), orNil(v.CPUModel), positive(v.CPUs), orNil(v.CPUSet), positive(v.Threads), positive(v.MemoryBytes),
			gpus, network, orNil(v.Kernel), orNil(v.GitCommit), orNone(v.Files), orNone(v.Versions), orNone(v.Variables))
	}
	return t
}

func stagedRows(list []store.Staged) *table {
	t := &table{columns: []column{{key: "restart"}, {key: "node"}, {key: "host"}, {key: "item"}, {key: "seconds", head: "took", show: seconds},
		{key: "bytes", show: binaryBytes}, {key: "reused"}, {key: "source"}, {key: "path"}}}
	for _, s := range list {
		t.add(s.Restart, s.Rank, orNil(s.Host), s.Item, s.Seconds, s.Bytes, s.Reused, s.Source, s.Staged.Path)
	}
	return t
}

func epochRows(list []metrics.Epoch) *table {
	t := &table{columns: []column{{key: "epoch"}, {key: "step"}, {key: "samples", head: "samples of rank 0"}, {key: "seconds", head: "time", show: seconds},
		{key: "loss"}, {key: "learning_rate"}}}
	for _, e := range list {
		t.add(e.Epoch, e.Step, e.Samples, e.Seconds, e.Loss, positive(e.LearningRate))
	}
	return t
}

func evaluationRows(list []summary.Accuracy) *table {
	t := &table{columns: []column{{key: "epoch"}, {key: "step"}, {key: "samples"}, {key: "seconds", head: "at", show: seconds}, {key: "accuracy", show: percent}}}
	for _, e := range list {
		t.add(e.Epoch, e.Step, e.Samples, e.Seconds, e.Accuracy)
	}
	return t
}

func fileRows(list []store.File) *table {
	t := &table{columns: []column{{key: "path"}, {key: "writer", data: true}, {key: "rank", data: true}, {key: "restart", data: true}, {key: "host"},
		{key: "bytes", show: binaryBytes}, {key: "lines"}, {key: "stop"}, {key: "cause"}}}
	for _, f := range list {
		var stop, cause any
		if f.Stop != nil {
			stop, cause = f.Stop.Status, orNil(f.Stop.Cause)
		}
		t.add(f.Path, f.Writer, f.Rank, f.Restart, orNil(f.Host), f.Bytes, f.Lines, stop, cause)
	}
	return t
}

func errorRows(list []store.RankError) *table {
	t := &table{columns: keys("writer", "rank", "restart", "where", "message")}
	for _, e := range list {
		t.add(e.Writer, e.Rank, e.Restart, e.Error.Where, e.Error.Message)
	}
	return t
}

func badLineRows(list []metrics.LineError) *table {
	t := &table{columns: keys("file", "line", "message")}
	for _, e := range list {
		t.add(e.File, e.Line, e.Err.Error())
	}
	return t
}

// keys are columns that need nothing but a name.
func keys(names ...string) []column {
	columns := make([]column, len(names))
	for i, name := range names {
		columns[i] = column{key: name}
	}
	return columns
}

// unixTime is seconds since the epoch as a cell; 0 is not known.
func unixTime(seconds float64) any {
	if seconds == 0 {
		return nil
	}
	return metrics.Time(seconds)
}

// positive is a cell of a number whose zero means that it was not found out.
func positive[N int | int64 | float64](n N) any {
	if n == 0 {
		return nil
	}
	return n
}

// orNone is a map as a cell, "not had" when it is empty.
func orNone(m map[string]string) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

// figureRows are what logs state, with what it is.
func figureRows(list []metrics.Figure) *table {
	t := &table{columns: []column{{key: "figure"}, {key: "value", show: exactly}, {key: "unit"}, {key: "plus_minus", head: "±", show: exactly}, {key: "at"},
		{key: "source"}, {key: "line", show: exactly}, {key: "reduction"}, {key: "values", show: exactly}, {key: "note"}, {key: "plus_minus_is", head: "± is"}}}
	for _, g := range list {
		t.add(g.Name, g.Value, orNil(g.Unit), g.PlusMinus, orNil(heldAt(g.At)), orNil(g.File), positive(g.Line), orNil(g.Reduce), positive(g.Of), orNil(g.Note), orNil(g.PlusMinusIs))
	}
	return t
}

func importRecord(from *store.Source) *table {
	t := &table{columns: keys("path", "part", "format", "sha256")}
	if from != nil {
		t.add(from.Path, orNil(from.Part), from.Format, from.SHA256)
	}
	return t
}

// bySteps is a cell of something that the steps count: where no step was
// recorded, as of another program's log, 0 is no count.
func bySteps[N int | int64](n N, steps int) any {
	if steps == 0 {
		return positive(n)
	}
	return n
}
