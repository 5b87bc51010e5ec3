package main

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

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/table"
)

// read makes runs of one file and hands them over, as long as more are wanted.
func (o *importOptions) read(file string, sets map[string]any, yield func(imported) bool) error {
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
	// Read once, and no more of it kept than its format needs.
	sum, n := sha256.New(), byteCount(0)
	from := io.Reader(log)
	if info.Mode().IsRegular() { // to which a program may append faster than this reads
		from = io.LimitReader(log, info.Size())
	}
	text := io.TeeReader(from, io.MultiWriter(sum, &n))
	var source *store.Source
	for r, err := range o.extract(file, text, info.Size(), sets) {
		if err != nil {
			return err
		}
		if source == nil { // no run comes before its file was read, for a format's needs
			if _, err := io.Copy(io.Discard, text); err != nil {
				return err
			}
			source = &store.Source{Path: path, SHA256: hex.EncodeToString(sum.Sum(nil)), Format: o.from, Bytes: int64(n), Replace: o.replace}
		}
		one := imported{Imported: store.Imported{From: *source}, result: r.Result}
		one.From.Part, one.From.Rows = r.Part, r.Rows
		labels := maps.Clone(sets)
		for key, v := range r.Labels {
			if _, both := labels[key]; both {
				return fmt.Errorf("%s is both set and mapped to a column; leave one out", key)
			}
			labels[key] = v
		}
		place := file
		if r.Part != "" {
			place += ", " + r.Part
		}
		if one.Run, err = o.run(place, labels, r.Result); err != nil {
			return err
		}
		if why := r.Result.Curveless(); why != "" {
			o.say(place + ": " + why)
		}
		one.Run.Detail = "imported from " + path
		one.Run.CreatedUnix = r.Result.StartUnix
		if one.Run.CreatedUnix == 0 {
			one.Run.CreatedUnix = metrics.Unix(info.ModTime())
		}
		one.BeganUnix = cmp.Or(r.Result.StartUnix, r.Result.Position)
		one.Run.Repeat = r.Result.Block
		one.Events = r.Result.Run(one.Run)
		if r.Result.Found() < fewFindings {
			one.Events = slices.Values(slices.Collect(one.Events))
		}
		if !yield(one) {
			return nil
		}
	}
	return nil
}

// fewFindings are made into events once for all that goes through them: those of a
// table's row are, a million of a log are not.
const fewFindings = 1000

// byteCount counts what is written to it.
type byteCount int64

func (n *byteCount) Write(b []byte) (int, error) {
	*n += byteCount(len(b))
	return len(b), nil
}

// extract reads the file in its format; bytes is its size, 0 where that is not
// known.
func (o *importOptions) extract(file string, text io.Reader, bytes int64, sets map[string]any) iter.Seq2[extract.TableRun, error] {
	workers, ok := sets["workers"].(int64)
	if !ok {
		workers, ok = sets["replicas"].(int64)
	}
	if ok && o.workers == 0 && workers > 0 && workers < math.MaxInt32 {
		o.workers = int(workers)
	}
	if o.from == table.FormatCSV {
		if o.model != "" {
			return only(extract.TableRun{}, usagef("--mfu is for logs; a CSV file's columns are figures as they stand"))
		}
		columns, err := o.mapped()
		if err != nil {
			return only(extract.TableRun{}, err)
		}
		options := extract.Options{File: file, Bytes: bytes, Workers: o.workers, WorkerBatch: o.batch, Given: slices.Collect(maps.Keys(sets)), Say: o.say}
		if nodes, ok := sets["nodes"].(int64); ok && nodes > 0 && nodes < math.MaxInt32 {
			options.Nodes = int(nodes)
		}
		if o.workers > 0 {
			options.Given = append(options.Given, "workers")
		}
		options.Decimal, _ = extract.ParseDecimal(o.decimal) // runImport checked it
		options.Scaling, _ = sets["workload.scaling"].(string)
		options.Sum = o.sum
		if options.At, err = o.load(); err != nil {
			return only(extract.TableRun{}, err)
		}
		if o.firstIsSet {
			options.FirstEpoch = &o.firstEpoch
		}
		return extract.Runs(text, options, columns)
	}
	e, err := o.extractor()
	if err != nil {
		return only(extract.TableRun{}, err)
	}
	options, err := o.options(file)
	if err != nil {
		return only(extract.TableRun{}, err)
	}
	options.Bytes = bytes
	spareMemory()
	r, err := e.Extract(text, options)
	labels := maps.Clone(r.Labels) // what is set by hand goes before what the log says
	maps.DeleteFunc(labels, func(key string, _ any) bool { _, set := sets[key]; return set })
	return only(extract.TableRun{Labels: labels, Result: r}, err)
}

// only is a sequence of one.
func only(r extract.TableRun, err error) iter.Seq2[extract.TableRun, error] {
	return func(yield func(extract.TableRun, error) bool) { yield(r, err) }
}

// run is what the labels and the log say of a run.
func (o *importOptions) run(file string, labels map[string]any, r extract.Content) (metrics.Run, error) {
	run := metrics.Run{Kind: r.Kind, Framework: o.from, Status: metrics.Done, Parameters: map[string]any{"import.format": o.from}}
	if r.Failed != "" {
		run.Status = metrics.Failed
	}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		text, count := fmt.Sprint(labels[key]), 0
		switch n := labels[key].(type) {
		case int64:
			if n >= 1 && n < math.MaxInt32 {
				count = int(n)
			}
		case float64: // "4.0", as a column with gaps is often written
			if n >= 1 && n < math.MaxInt32 && n == math.Trunc(n) {
				count = int(n)
			}
		}
		switch key {
		case "study":
			run.Study = text
		case "framework":
			run.Framework = text
		case "workers", "replicas", "nodes": // a service's workers are its replicas
			if count == 0 {
				problems = append(problems, fmt.Errorf("%s: %s is %q; want a whole number, 1 or more", file, key, text))
			}
			switch {
			case key == "nodes":
				run.Nodes = count
			case run.Workers != 0 && run.Workers != count:
				problems = append(problems, fmt.Errorf("%s: replicas is %d and workers %d; the workers of a service are its replicas", file, run.Workers, count))
			default:
				run.Workers = count
			}
		default:
			if !labelKey(key) {
				problems = append(problems, fmt.Errorf("%s: %q is not a valid label; use letters, digits, dots, - and _", file, key))
			}
			run.Parameters[key] = labels[key]
		}
	}
	if run.Workers == 0 {
		run.Workers = max(o.workers, 0)
	}
	switch {
	case run.Workers == 0:
		run.Workers = r.Workers
	case r.WorkersBy != "" && run.Workers != r.Workers:
		problems = append(problems, fmt.Errorf("%s: the log says %d workers (%s), not %d; leave out --set workers=%[4]d", file, r.Workers, r.WorkersBy, run.Workers))
	}
	if run.Study == "" {
		problems = append(problems, fmt.Errorf("%s: no study; name one with --set study=NAME", file))
	} else if !labelKey(run.Study) {
		problems = append(problems, fmt.Errorf("%s: study name %q is not valid; use letters, digits, dots, - and _", file, run.Study))
	}
	if run.Workers == 0 && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%s: number of workers unknown; add --set workers=N or, for a CSV file, --map workers=COLUMN", file))
	}
	if err := errors.Join(problems...); err != nil {
		return run, err
	}
	// Of a secret its digest counts: everybody sees the point's name.
	labelled := map[string]any{}
	for key, v := range run.Parameters {
		labelled[key] = redact.Hider(o.digest).Value(key, v)
	}
	point, err := json.Marshal([]any{run.Kind, run.Framework, run.Workers, run.Nodes, labelled})
	if err != nil {
		return run, err
	}
	sum := sha256.Sum256(point)
	run.Point = fmt.Sprintf("imported-w%d-%s", run.Workers, hex.EncodeToString(sum[:4]))
	return run, nil
}
