package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/store"
)

// read makes runs of one file until yield wants no more.
func (o *ImportOptions) read(file string, sets map[string]any, yield func(ImportedRun) bool) error {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	// The file is read once, and only what its format needs is kept.
	sum, n := sha256.New(), byteCount(0)
	from := io.Reader(log)
	if info.Mode().IsRegular() { // a program may append faster than this reads
		from = io.LimitReader(log, info.Size())
	}
	text := io.TeeReader(from, io.MultiWriter(sum, &n))
	var source *store.Source
	var curveless reasons
	defer func() { curveless.each(o.say) }()
	for r, err := range o.extract(file, text, info.Size(), sets) {
		if err != nil {
			return err
		}
		if source == nil { // the format has now read what its first run needs
			if _, err := io.Copy(io.Discard, text); err != nil {
				return err
			}
			source = &store.Source{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil)), Format: o.From, Bytes: int64(n), Replace: o.Replace}
		}
		one, err := o.item(file, *source, info.ModTime(), sets, r)
		if err != nil {
			return err
		}
		if why := r.Result.Curveless(); why != "" {
			curveless.add(placed(file, r.Part), why)
		}
		if !yield(one) {
			return nil
		}
	}
	return nil
}

// item returns the run of one part of a file.
func (o *ImportOptions) item(file string, source store.Source, modified time.Time, sets map[string]any, r extract.TableRun) (ImportedRun, error) {
	one := ImportedRun{Imported: store.Imported{From: source}, Result: r.Result}
	one.From.Part, one.From.Rows = r.Part, r.Rows
	labels := maps.Clone(sets)
	for key, v := range r.Labels {
		if _, both := labels[key]; both {
			return one, fmt.Errorf("%s is both set and mapped to a column; leave one out", key)
		}
		labels[key] = v
	}
	var err error
	if one.Run, err = o.run(placed(file, r.Part), labels, r.Result); err != nil {
		return one, err
	}
	one.Run.Detail = "imported from " + source.Path
	one.Run.CreatedUnix = r.Result.StartUnix
	if one.Run.CreatedUnix == 0 {
		one.Run.CreatedUnix = metrics.Unix(modified)
	}
	one.BeganUnix = cmp.Or(r.Result.StartUnix, r.Result.Position)
	one.Run.Repeat = r.Result.Block
	one.Events = r.Result.Run(one.Run)
	if r.Result.Found() < fewFindings {
		one.Events = slices.Values(slices.Collect(one.Events))
	}
	return one, nil
}

// placed names a part of a file, "" for the whole file, for messages.
func placed(file, part string) string {
	if part == "" {
		return file
	}
	return file + ", " + part
}

// reasons counts why parts of a file are left out of curves. A table may have the same reason in
// each of its rows.
type reasons struct {
	order []string // in the order of their first parts
	first map[string]string
	parts map[string]int
}

func (r *reasons) add(place, why string) {
	if r.parts == nil {
		r.first, r.parts = map[string]string{}, map[string]int{}
	}
	if r.parts[why]++; r.parts[why] == 1 {
		r.first[why] = place
		r.order = append(r.order, why)
	}
}

// each says every reason once, of the first part that has it.
func (r *reasons) each(say func(string)) {
	for _, why := range r.order {
		text := r.first[why] + ": " + why
		if more := r.parts[why] - 1; more > 0 {
			text += fmt.Sprintf(" (%d more of its parts likewise)", more)
		}
		say(text)
	}
}

// fewFindings or less are made into events once and kept, as for a row of a table; more, as
// of a long log, are made each time.
const fewFindings = 1000

// byteCount counts bytes written to it.
type byteCount int64

func (n *byteCount) Write(b []byte) (int, error) {
	*n += byteCount(len(b))
	return len(b), nil
}

// extract reads the file in its format; bytes is its size, 0 if unknown.
func (o *ImportOptions) extract(file string, text io.Reader, bytes int64, sets map[string]any) iter.Seq2[extract.TableRun, error] {
	workers, ok := sets["workers"].(int64)
	if !ok {
		workers, ok = sets["replicas"].(int64)
	}
	if ok && o.Workers == 0 && workers > 0 && workers < math.MaxInt32 {
		o.Workers = int(workers)
	}
	if o.From == csvFormat {
		if o.Model != "" {
			return only(extract.TableRun{}, Errorf("--mfu is for logs; columns of a CSV file are stored as they are"))
		}
		columns, err := o.mapped()
		if err != nil {
			return only(extract.TableRun{}, err)
		}
		options := extract.Options{File: file, Bytes: bytes, Workers: o.Workers, WorkerBatch: o.Batch, Given: slices.Collect(maps.Keys(sets)), Say: o.say}
		if nodes, ok := sets["nodes"].(int64); ok && nodes > 0 && nodes < math.MaxInt32 {
			options.Nodes = int(nodes)
		}
		if o.Workers > 0 {
			options.Given = append(options.Given, "workers")
		}
		options.Decimal, _ = extract.ParseDecimal(o.Decimal) // check has parsed it
		options.Scaling, _ = sets["workload.scaling"].(string)
		options.Sum = o.Sum
		if options.At, err = o.load(); err != nil {
			return only(extract.TableRun{}, err)
		}
		options.FirstEpoch = o.FirstEpoch
		return extract.Runs(text, options, columns)
	}
	e, err := o.Extractor()
	if err != nil {
		return only(extract.TableRun{}, err)
	}
	options, err := o.Extraction(file)
	if err != nil {
		return only(extract.TableRun{}, err)
	}
	options.Bytes = bytes
	r, err := e.Extract(text, options)
	labels := maps.Clone(r.Labels) // labels set by hand replace the log's
	maps.DeleteFunc(labels, func(key string, _ any) bool { _, set := sets[key]; return set })
	return only(extract.TableRun{Labels: labels, Result: r}, err)
}

// only returns a sequence of one.
func only(r extract.TableRun, err error) iter.Seq2[extract.TableRun, error] {
	return func(yield func(extract.TableRun, error) bool) { yield(r, err) }
}

// run returns the run that the labels and the log describe.
func (o *ImportOptions) run(file string, labels map[string]any, r extract.Content) (metrics.Run, error) {
	run := metrics.Run{Kind: r.Kind, Framework: o.From, Status: metrics.Done, Parameters: map[string]any{"import.format": o.From}}
	if r.Failed != "" {
		run.Status = metrics.Failed
	}
	var problems []error
	wrong := func(format string, a ...any) {
		problems = append(problems, fmt.Errorf("%s: "+format, append([]any{file}, a...)...))
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text := fmt.Sprint(labels[key])
		switch key {
		case "study":
			run.Study = text
		case "framework":
			run.Framework = text
		case "workers", "replicas", "nodes": // a service's workers are its replicas
			count := countOf(labels[key])
			if count == 0 {
				wrong("%s is %q; want a whole number, 1 or more", key, text)
			}
			switch {
			case key == "nodes":
				run.Nodes = count
			case run.Workers != 0 && run.Workers != count:
				wrong("replicas is %d and workers %d; the workers of a service are its replicas", run.Workers, count)
			default:
				run.Workers = count
			}
		default:
			if !labelKey(key) {
				wrong("%q is not a valid label; use letters, digits, dots, - and _", key)
			}
			run.Parameters[key] = labels[key]
		}
	}
	if run.Workers == 0 {
		run.Workers = max(o.Workers, 0)
	}
	switch {
	case run.Workers == 0:
		run.Workers = r.Workers
	case r.WorkersBy != "" && run.Workers != r.Workers:
		wrong("the log says %d workers (%s), not %d; leave out --set workers=%[4]d", r.Workers, r.WorkersBy, run.Workers)
	}
	switch {
	case run.Study == "":
		wrong("no study; name one with --set study=NAME")
	case !labelKey(run.Study):
		wrong("study name %q is not valid; use letters, digits, dots, - and _", run.Study)
	}
	if run.Workers == 0 && len(problems) == 0 {
		wrong("number of workers unknown; add --set workers=N or, for a CSV file, --map workers=COLUMN")
	}
	if err := errors.Join(problems...); err != nil {
		return run, err
	}
	return run, o.name(&run)
}

// countOf returns a label as a count, or 0 if it is not one.
func countOf(label any) int {
	switch n := label.(type) {
	case int64:
		if n >= 1 && n < math.MaxInt32 {
			return int(n)
		}
	case float64: // "4.0", as a column with gaps is often written
		if n >= 1 && n < math.MaxInt32 && n == math.Trunc(n) {
			return int(n)
		}
	}
	return 0
}

// name derives the run's point from what was measured. Secrets enter as digests, since the point's name is
// public.
func (o *ImportOptions) name(run *metrics.Run) error {
	labelled := map[string]any{}
	for key, v := range run.Parameters {
		labelled[key] = o.hide(key, v)
	}
	point, err := json.Marshal([]any{run.Kind, run.Framework, run.Workers, run.Nodes, labelled})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(point)
	run.Point = fmt.Sprintf("imported-w%d-%s", run.Workers, hex.EncodeToString(sum[:4]))
	return nil
}

// mapped parses the columns of --map and --label.
func (o *ImportOptions) mapped() (map[string]extract.Column, error) {
	if o.From != csvFormat {
		if len(o.Labels) > 0 {
			return nil, Errorf("--label names a column of a CSV file; give a log's labels with --set")
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
	for _, text := range o.Labels {
		key, column, ok := strings.Cut(text, "=")
		if !ok || !labelKey(key) || column == "" {
			return nil, Errorf("--label %q: write KEY=COLUMN, like platform=host", text)
		}
		// For a training the batch size is a label; for a load it is the coordinate of figures.
		coordinate := measure.DescribesLoad(key) && !loads
		if _, twice := columns[key]; twice || slices.Contains(slices.Concat(extract.TableFigures, extract.WhenColumns), key) && !coordinate {
			return nil, Errorf("--label %s: a figure or a mapped column has that name; give the label another", text)
		}
		columns[key] = extract.Column{Name: column, Label: true}
	}
	return columns, nil
}

// given parses --set.
func (o *ImportOptions) given() (map[string]any, error) {
	labels := map[string]any{}
	for _, text := range o.Sets {
		key, value, ok := strings.Cut(text, "=")
		if !ok || !labelKey(key) || value == "" {
			return nil, Errorf("--set %q: write KEY=VALUE; keys consist of letters, digits, _, - and ., like platform or workload.batch", text)
		}
		if _, twice := labels[key]; twice {
			return nil, Errorf("--set gives %s twice", key)
		}
		labels[key] = extract.ParseLabel(value)
		if key == measure.TargetsKey {
			var err error
			if labels[key], err = targetList(labels[key]); err != nil {
				return nil, Errorf("--set %s: %v", key, err)
			}
		}
		if said := labels[key]; o.Workers != 0 && (key == "workers" || key == "replicas") && said != int64(o.Workers) {
			return nil, Errorf("--workers says %d and --set says %s=%s; give one of them", o.Workers, key, value)
		}
	}
	return labels, nil
}

// targetList returns one target, or a list of them, as the store keeps them.
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
