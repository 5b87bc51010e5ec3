package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
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
	place := file
	if r.Part != "" {
		place += ", " + r.Part
	}
	var err error
	if one.Run, err = o.run(place, labels, r.Result); err != nil {
		return one, err
	}
	if why := r.Result.Curveless(); why != "" {
		o.say(place + ": " + why)
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
