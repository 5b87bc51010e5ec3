package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

type importOptions struct {
	logOptions
	sets, labels cli.StringSlice
	decimal, sum string
	replace, dry bool
	say          func(string)        // what is worth knowing of a file
	digest       func(string) string // of a secret
}

func importCommand(s *session) *cli.Command {
	var o importOptions
	return &cli.Command{
		Name:      "import",
		Usage:     "store runs from other programs' logs and tables",
		ArgsUsage: "FILE...",
		Description: "--from (or --format) gives the format: csv for a table, a row a run, or a program's\n" +
			"log format, one run a file. A file that was imported before changes nothing.\n" +
			"\n" +
			"--map names the columns of a table that have other names than these. All runs:\n" +
			"study, workers (or replicas), nodes, framework. Trainings: " + strings.Join(extract.TrainFigures[:9], ", ") + ",\n" +
			strings.Join(extract.TrainFigures[9:], ", ") + ". Services: " + strings.Join(extract.Coordinates, ", ") + ", " + strings.Join(extract.LoadFigures[:5], ", ") + ", " + strings.Join(extract.LoadFigures[5:], ", ") + ". When runs\n" +
			"were made, so that drift can be told from scaling: started, order, block.\n" +
			"\n" +
			"--set gives all runs a study, workers (or replicas), framework, nodes or a label;\n" +
			"--label makes a label of a table's column. Labels work like parameters in queries\n" +
			"and curves.\n" +
			"\n" +
			"  scalebench import r*.log --format horovod-synthetic --set study=old --set platform=cpu8\n" +
			"  scalebench import t.csv --format csv --set study=old --map workers=gpus \\\n" +
			"    --map throughput=img_s --map elapsed=seconds",
		Flags: append(o.flags(table.FormatCSV),
			&cli.StringSliceFlag{Name: "set", Destination: &o.sets, Usage: "`KEY=VALUE` for all runs: study, workers, framework, nodes, or a label; may be repeated"},
			&cli.StringSliceFlag{Name: "label", Destination: &o.labels, Usage: "for CSV files: label each row by a column, `KEY=COLUMN`; may be repeated"},
			&cli.StringFlag{Name: "decimal", Destination: &o.decimal, Usage: "decimal `SIGN` of CSV files, comma or point; the other one may separate thousands"},
			&cli.StringFlag{Name: "sum", Destination: &o.sum, Usage: "add up the rates of CSV rows that differ only in `COLUMN`: they are parts of one run, such as its ranks"},
			&cli.BoolFlag{Name: "replace", Destination: &o.replace, DisableDefaultText: true, Usage: "replace the runs of files that were imported before, with these settings"},
			&cli.BoolFlag{Name: "dry-run", Destination: &o.dry, DisableDefaultText: true, Usage: "print what would be stored, but store nothing"}),
		Before: o.formatIsFrom(s, true),
		Action: func(c *cli.Context) error {
			return runImport(c.Context, s, o, c.Args().Slice())
		},
	}
}

// imported is a run that is ready to be stored, and what it was made of.
type imported struct {
	store.Imported
	result extract.Content
}

func runImport(ctx context.Context, s *session, o importOptions, files []string) error {
	if o.from == "" {
		return usagef("name the format of the files with --from; valid: csv, %s", strings.Join(extract.Names(), ", "))
	}
	if o.from != table.FormatCSV {
		if _, err := o.extractor(); err != nil {
			return err
		}
	}
	sets, err := o.given()
	if err != nil {
		return err
	}
	if _, err := o.load(); err != nil {
		return err
	}
	if _, err := extract.ParseDecimal(o.decimal); err != nil {
		return usagef("--decimal: %v", err)
	}
	if o.from != table.FormatCSV && (o.decimal != "" || o.sum != "") {
		return usagef("--decimal and --sum are for CSV files")
	}
	if _, err := o.mapped(); err != nil { // of the command line, and no file's mistake
		return err
	}
	o.say = func(text string) { s.note("%s", text) }
	listed := newImportedList(s.format)
	o.digest = redact.Key(nil).Hide
	if o.dry {
		for r, err := range o.each(files, sets) {
			if err != nil {
				return err
			}
			listed.add(r, nil, "not stored")
		}
		return s.print(listed.table())
	}
	path, err := s.database()
	if err != nil {
		return err
	}
	keyed := sync.OnceValues(func() (redact.Key, error) { return redact.ReadKey(redact.KeyFile(path)) })
	o.digest = func(secret string) string {
		key, err := keyed()
		if err != nil {
			s.warn("%v", err) // the store refuses the run for this
		}
		return key.Hide(secret)
	}
	// A file that cannot be read makes no database.
	next, stop := iter.Pull2(o.each(files, sets))
	defer stop()
	r, err, more := next()
	if err != nil {
		return err
	}
	s.hold()
	db, err := workspace.OpenForWriting(path)
	if err != nil {
		return workspace.StoreError(err)
	}
	defer db.Close()
	var before []store.Source
	if o.from == table.FormatCSV {
		if before, err = db.Tables(ctx); err != nil {
			return workspace.StoreError(err)
		}
	}
	origins := map[string]string{} // by path
	runs := func(yield func(store.Imported, error) bool) {
		for ; more; r, err, more = next() {
			if _, known := origins[r.From.Path]; err == nil && o.from == table.FormatCSV && !known {
				origins[r.From.Path], err = origin(r.From, before)
			}
			r.From.Origin = origins[r.From.Path]
			if !yield(r.Imported, err) {
				return
			}
		}
	}
	err = db.Import(ctx, runs, func(report store.Report) {
		outcome := "unchanged"
		if report.Changed {
			outcome = "stored"
		}
		listed.add(r, report.Run, outcome)
	})
	var usage *usageError
	switch {
	case errors.Is(err, store.ErrImported):
		return &usageError{err: err, hint: "--replace replaces that run."}
	case errors.As(err, &usage):
		return err
	case errors.Is(err, store.ErrAbsurd):
		return &usageError{err: err}
	case err != nil:
		return workspace.StoreError(err)
	}
	if err := db.Arrange(ctx); err != nil {
		return workspace.StoreError(err)
	}
	return s.print(listed.table())
}

// each makes runs of the files, one by one. A mistake in one file is the end of
// all of them, once the others have been read for theirs.
func (o *importOptions) each(files []string, sets map[string]any) iter.Seq2[imported, error] {
	return func(yield func(imported, error) bool) {
		var problems []error
		for _, file := range files {
			stopped := false
			err := o.read(file, sets, func(r imported) bool {
				stopped = len(problems) == 0 && !yield(r, nil)
				return !stopped
			})
			if stopped {
				return
			}
			if err != nil {
				problems = append(problems, err)
			}
		}
		if err := errors.Join(problems...); err != nil {
			yield(imported{}, &usageError{err: err})
		}
	}
}

// shownRows is how many imported runs, or figures of a log, people are shown; nobody
// reads a million lines, and a table is held until its widths are known.
const shownRows = 1000

// importedList is what is printed of an import.
type importedList struct {
	t     *table.Table
	whole bool           // for programs, which get a row for every run
	more  map[string]int // runs that are not shown, by outcome
}

func newImportedList(format string) *importedList {
	return &importedList{
		t: &table.Table{Columns: []table.Column{{Key: "file"}, {Key: "part"}, {Key: "run"}, {Key: "workers"}, {Key: "throughput", Unit: "samples/s", Optional: true},
			{Key: measure.TokensPerSecond, Unit: "tokens/s", Optional: true}, {Key: measure.RequestsPerSecond, Unit: "requests/s", Optional: true},
			{Key: "accuracy", Show: number.Percent, Optional: true}, {Key: "evaluations"}, {Key: "figures"}, {Key: "outcome"}}},
		whole: format == table.FormatJSON || format == table.FormatCSV,
		more:  map[string]int{},
	}
}

func (l *importedList) add(r imported, id any, outcome string) {
	if !l.whole && len(l.t.Rows) == shownRows {
		l.more[outcome]++
		return
	}
	r.row(l.t, id, outcome)
}

// table is the list with a note on the runs that are not in it.
func (l *importedList) table() *table.Table {
	for _, outcome := range slices.Sorted(maps.Keys(l.more)) {
		l.t.Notes = append(l.t.Notes, fmt.Sprintf("and %d more: %s", l.more[outcome], outcome))
	}
	return l.t
}

// origin is that of the table of the same path, or of the largest that this one
// begins with; its own SHA256 for a new one. before is by rising size.
func origin(from store.Source, before []store.Source) (string, error) {
	if i := slices.IndexFunc(before, func(t store.Source) bool { return t.Path == from.Path }); i >= 0 {
		return before[i].Origin, nil
	}
	f, err := os.Open(from.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	found := from.SHA256
	sum, read := sha256.New(), int64(0)
	for _, t := range before {
		if t.Bytes > from.Bytes {
			break
		}
		n, err := io.CopyN(sum, f, t.Bytes-read)
		if read += n; err != nil {
			return "", fmt.Errorf("%s changed while it was read, from %d to %d bytes; import it again", from.Path, from.Bytes, read)
		}
		if hex.EncodeToString(sum.Sum(nil)) == t.SHA256 {
			found = t.Origin
		}
	}
	return found, nil
}

// row shows the run in the table of what was imported.
func (r *imported) row(t *table.Table, id any, outcome string) {
	var throughput, tokens, requests, accuracy *float64
	evaluations, figures := 0, 0
	for f := range r.result.Findings() {
		if e := f.Event.Evaluation; e != nil {
			evaluations++
			accuracy = &e.Accuracy
		}
		if g := f.Event.Figure; g != nil {
			figures++
			switch {
			case g.Name == metrics.FigureThroughput && len(g.At) == 0:
				throughput = &g.Value
			case g.Name == measure.TokensPerSecond && len(g.At) == 0:
				tokens = &g.Value
			case g.Name == measure.RequestsPerSecond && (requests == nil || g.Value > *requests):
				requests = &g.Value // the largest of its loads
			}
		}
	}
	if r.result.Failed != "" {
		outcome += ", failed"
	}
	t.Add(filepath.Base(r.From.Path), table.NonZero(r.From.Part), id, r.Run.Workers, throughput, tokens, requests, accuracy, evaluations, figures, outcome)
}

// mapped reads --map and --label.
func (o *importOptions) mapped() (map[string]extract.Column, error) {
	if o.from != table.FormatCSV {
		if len(o.labels.Value()) > 0 {
			return nil, usagef("--label names a column of a CSV file; give a log's labels with --set")
		}
		return o.columns(extract.LogFigures)
	}
	columns, err := o.columns(slices.Concat(extract.TableFigures, extract.WhenColumns, []string{"study", "workers", "replicas", "nodes", "framework"}))
	if err != nil {
		return nil, err
	}
	loads := slices.ContainsFunc(slices.Collect(maps.Keys(columns)), func(name string) bool {
		m, err := measure.Find(name)
		return err == nil && m.At.Has(measure.Rate)
	})
	for _, text := range o.labels.Value() {
		key, column, ok := strings.Cut(text, "=")
		if !ok || !labelKey(key) || column == "" {
			return nil, usagef("--label %q: write KEY=COLUMN, like platform=host", text)
		}
		// The batch of a training is a label; of a load it is where its figures are.
		coordinate := measure.OfLoad(key) && !loads
		if _, twice := columns[key]; twice || slices.Contains(slices.Concat(extract.TableFigures, extract.WhenColumns), key) && !coordinate {
			return nil, usagef("--label %s: a figure or a mapped column has that name; give the label another", text)
		}
		columns[key] = extract.Column{Name: column, Label: true}
	}
	return columns, nil
}

// given reads --set.
func (o *importOptions) given() (map[string]any, error) {
	labels := map[string]any{}
	for _, text := range o.sets.Value() {
		key, value, ok := strings.Cut(text, "=")
		if !ok || !labelKey(key) || value == "" {
			return nil, usagef("--set %q: write KEY=VALUE; keys consist of letters, digits, _, - and ., like platform or workload.batch", text)
		}
		if _, twice := labels[key]; twice {
			return nil, usagef("--set gives %s twice", key)
		}
		labels[key] = extract.ParseLabel(value)
		if key == measure.TargetsKey {
			var err error
			if labels[key], err = targetList(labels[key]); err != nil {
				return nil, usagef("--set %s: %v", key, err)
			}
		}
		if said := labels[key]; o.workers != 0 && (key == "workers" || key == "replicas") && said != int64(o.workers) {
			return nil, usagef("--workers says %d and --set says %s=%s; give one of them", o.workers, key, value)
		}
	}
	return labels, nil
}

// targetList are targets as the store keeps them, of one or of a list.
func targetList(v any) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]any, len(list))
	for i, v := range list {
		var t measure.Target
		if err := t.UnmarshalTOML(v); err != nil {
			return nil, err
		}
		if out[i] = t.String(); t.Of == measure.OfAccuracy {
			out[i] = t.Value
		}
	}
	return out, nil
}

func labelKey(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return !(r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z')
	}) < 0
}
