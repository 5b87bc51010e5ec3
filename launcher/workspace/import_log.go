package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/measure"
)

// LogInfo gives information that logs lack.
type LogInfo struct {
	From           string   // format
	Workers, Batch int      // 0 if unknown
	FirstEpoch     *int     // number of the first epoch; nil means the format's default
	Model          string   // file that describes a model and device
	Maps           []string // OURS=THEIRS, names of columns and tags
	At             []string // KEY=VALUE, the load
}

// Extractor returns the extractor of the format.
func (o *LogInfo) Extractor() (extract.Extractor, error) {
	e, err := extract.Find(o.From)
	if err != nil {
		return e, &Error{Err: fmt.Errorf("--from: %w", err), Hint: study.SpellingHint(o.From, append(extract.Names(), csvFormat))}
	}
	return e, nil
}

// columns returns the mappings by our names, which must be among known.
func (o *LogInfo) columns(known []string) (map[string]extract.Column, error) {
	columns := map[string]extract.Column{}
	for _, text := range o.Maps {
		ours, c, err := extract.ParseColumn(text)
		if err != nil {
			return nil, Errorf("--map %v", err)
		}
		if _, twice := columns[ours]; twice {
			return nil, Errorf("--map names %s twice", ours)
		}
		if !slices.Contains(known, ours) {
			hint := study.SpellingHint(ours, known)
			if o.From == csvFormat && hint == "" {
				hint = fmt.Sprintf("For a label with a value in each row: --label %s=%s.", ours, c.Name)
			}
			return nil, &Error{Err: fmt.Errorf("--map %s=%s: %s cannot be mapped; valid: %s", ours, c.Name, ours, strings.Join(known, ", ")), Hint: hint}
		}
		columns[ours] = c
	}
	return columns, nil
}

// Extraction returns the options of extractors for one file.
func (o *LogInfo) Extraction(file string) (extract.Options, error) {
	e := extract.Options{File: file, Workers: o.Workers, WorkerBatch: o.Batch, Columns: map[string]string{}}
	if o.Workers < 0 || o.Batch < 0 {
		return e, Errorf("--workers and --worker-batch are counts; want 1 or more")
	}
	e.FirstEpoch = o.FirstEpoch
	var err error
	if e.Model, err = o.described(); err != nil {
		return e, err
	}
	if e.At, err = o.load(); err != nil {
		return e, err
	}
	columns, err := o.columns(extract.LogFigures)
	if err != nil {
		return e, err
	}
	for ours, c := range columns {
		switch {
		case c.Unit == "%" && ours == "accuracy":
			e.AccuracyUnit = c.Unit
		case c.Unit != "":
			return e, Errorf("--map %s=%s:%s: only CSV columns take a unit, and a log's accuracy %%; remove :%[3]s", ours, c.Name, c.Unit)
		}
		e.Columns[ours] = c.Name
	}
	return e, nil
}

// described reads the description of the model; nil without one.
func (o *LogInfo) described() (*measure.Transformer, error) {
	if o.Model == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.Model)
	if err != nil {
		return nil, &Error{Err: err}
	}
	m, err := measure.ReadTransformer(string(text))
	if err != nil {
		return nil, Errorf("--mfu %s: %v", o.Model, err)
	}
	return &m, nil
}

// load parses the load.
func (o *LogInfo) load() (map[string]float64, error) {
	at := map[string]float64{}
	for _, text := range o.At {
		key, value, _ := strings.Cut(text, "=")
		x, err := strconv.ParseFloat(value, 64)
		_, twice := at[key]
		switch {
		case !slices.Contains(extract.Coordinates, key):
			return nil, &Error{Err: fmt.Errorf("--at %q: want a coordinate of the load, like threads=4; there are %s", text, strings.Join(extract.Coordinates, ", ")), Hint: study.SpellingHint(key, extract.Coordinates)}
		case err != nil:
			return nil, Errorf("--at %s: %q is not a number", key, value)
		case twice:
			return nil, Errorf("--at gives %s twice", key)
		}
		at[key] = x
	}
	return at, nil
}

// ReadLog reads one file by an extractor.
func ReadLog(e extract.Extractor, path string, o extract.Options) (extract.Content, error) {
	f, err := os.Open(path)
	if err != nil {
		return extract.Content{}, &Error{Err: err}
	}
	defer f.Close()
	text := io.Reader(f)
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		o.Bytes = info.Size()
		text = io.LimitReader(f, info.Size()) // a program may append faster than this reads
	}
	r, err := e.Extract(text, o)
	if err != nil {
		hint := ""
		if errors.Is(err, extract.ErrNothing) {
			hint = "Is it the right file, complete, and in that format? `scalebench extract LOG --from FORMAT --dry-run` tries another."
		}
		return r, &Error{Err: err, Hint: hint}
	}
	return r, nil
}

// Extractors returns the extractors of the study's first point that has any.
func (k *Work) Extractors() ([]extract.Extractor, error) {
	for _, p := range k.Plan.Points {
		if list, err := framework.Extractors(p.Point); err != nil {
			return nil, &Error{Err: err}
		} else if len(list) > 0 {
			return list, nil
		}
	}
	return nil, nil
}
