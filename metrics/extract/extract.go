// Package extract reads other programs' logs and turns the figures in them into events of package
// metrics. A figure is a measured number with a name and a unit.
//
// A log states figures but not how they were measured. So each event carries the line from which
// it was read, and a note on what the figure is (one rank's rate multiplied by N, a ± of 1.96 σ).
// Reports never present it as our own measurement.
//
// Values are read only from complete lines in the exact form that the program writes. A log that
// was cut off, or that contains two runs, gives an error or fewer values, but never wrong ones. A
// log without any match is an error.
package extract

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// An Extractor reads logs of one format.
type Extractor struct {
	Name  string // as users write it: "horovod-synthetic"
	Kind  string // kind of workload that writes such logs, as in a study; "" for any
	Reads string // one line that describes what it reads
	// Apart is true if a separate file has the format, and not a program's output.
	Apart bool
	read  func(l *log, r io.Reader)
}

// allFormats lists the formats, sorted by name.
var allFormats = []Extractor{
	aiperf,
	deepSpeed,
	dlio,
	hey,
	horovodSynthetic,
	hfTrainer,
	hfTrainerState,
	kerasCSVLogger,
	lightningCSV,
	llamaFactory,
	maxText,
	megatron,
	mlperf,
	mlperfLoadgen,
	nanoGPT,
	ncclTests,
	ncclTestsJSON,
	nemo,
	perfAnalyzer,
	tensorboard,
	tfCNNBenchmarks,
	timm,
	torchtitan,
	vllmBench,
	wrk,
}

// Find returns the extractor with this name.
func Find(name string) (Extractor, error) {
	for _, e := range allFormats {
		if e.Name == name {
			return e, nil
		}
	}
	return Extractor{}, fmt.Errorf("unknown extractor %q; valid: %s", name, strings.Join(Names(), ", "))
}

// Names returns the names of all formats.
func Names() []string {
	var names []string
	for _, e := range allFormats {
		names = append(names, e.Name)
	}
	return names
}

// globalBatch returns the samples per step of all ranks; 0 if unknown.
func (o Options) globalBatch() float64 { return o.rankBatch() * float64(o.Workers) }

// rankBatch returns one rank's share of the global batch; 0 if unknown.
func (o Options) rankBatch() float64 { return float64(o.WorkerBatch) / float64(max(1, o.Sharing)) }

// Options supply what a log may not state.
type Options struct {
	File        string  // the log's name in errors and figures
	Bytes       int64   // size of the log, so that one that is too large is refused before it is read; 0: unknown
	Workers     int     // ranks of the run; 0: unknown
	Nodes       int     // nodes of the run; 0: unknown
	Decimal     Decimal // decimal separator of a table; "": numbers must be unambiguous
	Sum         string  // column with the part of a run that a row describes; the rates of all parts are added up. "" for none
	Scaling     string  // "weak" or "strong", as the user states; "": unknown
	WorkerBatch int     // samples per rank and step; 0: unknown
	Sharing     int     // ranks that hold one model together and share a WorkerBatch; 0: each has its own batch
	// At are coordinates of the load that the log of a load generator may not state: the requests
	// in flight or the request rate, and the samples per request.
	At map[string]float64
	// Model describes the model and the device, from which the MFU is computed; nil: unknown.
	Model *measure.Transformer
	// FirstEpoch is the number of the log's first epoch; nil: the number that the format usually
	// has.
	FirstEpoch *int
	// Columns maps our names to the names in the log, for formats in which users choose them (CSV
	// columns, TensorBoard tags): "accuracy" to "val_acc".
	Columns map[string]string
	// AccuracyUnit is the unit of accuracies in such columns, "%" or "".
	AccuracyUnit string
	// Given lists the keys that the user states by other means. A column of the table that has
	// one of these names is ignored.
	Given []string
	// Say receives remarks on a table as a whole; nil: they are dropped.
	Say func(string)
}

// A Value is a number in a log.
type Value struct {
	Number float64 // in the log's unit
	Line   int     // 1-based; 0 in formats without lines
}

// A Content holds the figures and warnings read from a log.
type Content struct {
	Kind      string  // kind of workload, as in a study; "" if it may be any
	Workers   int     // ranks that the log mentions; 0: none mentioned
	WorkersBy string  // what in the log states Workers; "" if the number is a guess
	StartUnix float64 // start of the run according to the log, in seconds since the Unix epoch; 0: not stated
	// Position is the run's position, from 1, in the order in which the runs of a table were
	// made. Block is the number of its block of runs. Both are 0 if the table does not state
	// them.
	Position float64
	Block    int
	Notes    []string // remarks on the whole log
	// Labels are the settings and facts that the log states about the training. A key that
	// studies also have is written as its TOML path: "workload.model".
	Labels map[string]any
	Failed string // why the run failed according to the log; "" if it states no failure
	Lines  int    // number of lines that gave a value

	findings findings
}

// Findings yields train, epoch, evaluation, figure and stop events in time order. Times are
// counted from the start of the run. If the log has no times, they are 0 and the log has no train
// event. Each Finding is built when it is yielded, to save memory. Do not modify it.
func (r *Content) Findings() iter.Seq[Finding] { return r.findings.all() }

// Found returns the number of findings.
func (r *Content) Found() int { return r.findings.len() }

// Events yields the notes and then the findings as events. A caller must write a start event
// before them, whose Ranks covers all ranks.
func (r *Content) Events() iter.Seq[metrics.Event] {
	return func(yield func(metrics.Event) bool) {
		for _, n := range r.Notes {
			if !yield(metrics.Event{Note: &metrics.Note{Text: n}}) {
				return
			}
		}
		for f := range r.Findings() {
			if !yield(f.Event) {
				return
			}
		}
	}
}

// Run yields all events of a run of which there is only this log: a start event, the events of
// the log, and a stop event.
func (r *Content) Run(run metrics.Run) iter.Seq[metrics.Event] {
	return func(yield func(metrics.Event) bool) {
		start := metrics.Start{Format: metrics.FormatVersion, Unix: run.CreatedUnix, Writer: "rank",
			Framework: run.Framework, WorldSize: run.Workers, Ranks: run.Workers}
		if !yield(metrics.Event{Start: &start}) {
			return
		}
		end := metrics.Stop{Status: metrics.StopDone}
		if r.Failed != "" {
			end.Status, end.Cause = metrics.StopFailed, r.Failed
		}
		last := 0.0
		for e := range r.Events() {
			last = max(last, e.Time)
			if e.Evaluation != nil {
				end.Epochs = max(end.Epochs, e.Evaluation.Epoch)
			}
			if !yield(e) {
				return
			}
		}
		yield(metrics.Event{Time: last, Stop: &end})
	}
}

// ErrNothing means that the log has no line of the format.
var ErrNothing = errors.New("nothing found")

// Extract reads a log and returns its content. Errors begin with the name of the file and, if
// known, the line.
func (e Extractor) Extract(r io.Reader, o Options) (Content, error) {
	if o.File == "" {
		o.File = "log"
	}
	if o.Workers < 0 || o.WorkerBatch < 0 {
		return Content{}, fmt.Errorf("%d workers with a batch of %d each; both are 1 or more, or 0 if not known", o.Workers, o.WorkerBatch)
	}
	if err := checkAt(o.At); err != nil {
		return Content{}, err
	}
	if len(o.At) > 0 && !measure.KindOf(e.Kind).Loads {
		return Content{}, fmt.Errorf("%s: --at needs the log of a load generator, and %s is not such a format", o.File, e.Name)
	}
	if e.Name == Any.Name {
		return anyFormat(r, o)
	}
	l := newLog(o)
	if err := try(func() { e.read(l, r) }); err != nil {
		return Content{}, err
	}
	if !l.found {
		hint := ""
		if len(l.res.Notes) > 0 {
			hint = " (" + strings.Join(l.res.Notes, "; ") + ")"
		}
		return Content{}, fmt.Errorf("%s: %w that %s writes: %s%s", o.File, ErrNothing, e.Name, e.Reads, hint)
	}
	if l.res.Failed != "" {
		l.note("the run failed: %s. Its figures are on no curve", l.res.Failed)
	}
	if l.res.Workers != 0 && o.Workers != 0 && l.res.Workers != o.Workers {
		l.note("the log reports %s, the run has %s", number.Count(l.res.Workers, "rank"), number.Count(o.Workers, "worker"))
	}
	if o.Model != nil && !l.utilised {
		l.note("no MFU: the log does not give tokens/s of a device, by itself or with --workers")
	}
	if l.unsaid > 0 {
		l.res.Notes = append(l.res.Notes, "and "+number.Count(l.unsaid, "more note"))
	}
	l.res.Kind, l.res.Lines = e.Kind, l.lines.n
	l.res.findings.arrange()
	return l.res, nil
}

// log is the parser's state while it reads one log.
type log struct {
	o      Options
	res    Content
	lines  lineSet // the lines from which a value was read
	found  bool    // an evaluation or a figure was found
	unsaid int     // number of notes beyond maxNotes
	// utilised is true once the MFU was added, or a note that says why it is unknown.
	utilised bool
	// loads maps each load, by measure.Key, to the line that states it.
	loads map[string]int
}

func newLog(o Options) *log {
	l := &log{o: o}
	l.res.findings.file = o.File
	return l
}

// workersAre sets the number of workers; by names the text on the line that states it.
func (l *log) workersAre(n int, by string, line int) {
	l.res.Workers, l.res.WorkersBy = n, fmt.Sprintf("%s, line %d", by, line)
}

// lineSet is a set of 1-based line numbers.
type lineSet struct {
	bits map[int]uint64 // 64 lines each
	n    int
}

func (s *lineSet) add(line int) {
	if s.bits == nil {
		s.bits = map[int]uint64{}
	}
	if bit := uint64(1) << (line % 64); s.bits[line/64]&bit == 0 {
		s.bits[line/64] |= bit
		s.n++
	}
}

// errorAt returns an error that names the file and the line, if it is not 0.
func (l *log) errorAt(line int, format string, args ...any) error {
	if line == 0 {
		return fmt.Errorf("%s: %w", l.o.File, fmt.Errorf(format, args...))
	}
	return &metrics.LineError{File: l.o.File, Line: line, Err: fmt.Errorf(format, args...)}
}

// maxNotes limits the notes on a log, because a benchmark of a million sizes may cause a note for
// each of them.
const maxNotes = 100

func (l *log) note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	switch {
	case slices.Contains(l.res.Notes, n):
	case len(l.res.Notes) < maxNotes:
		l.res.Notes = append(l.res.Notes, n)
	default:
		l.unsaid++
	}
}

// add appends an event that was made from values in the log. scale is the factor from their unit
// to the event's.
func (l *log) add(e metrics.Event, scale float64, values ...Value) {
	f := Finding{Event: e, Scale: scale, Values: values}
	for _, v := range values {
		f.Line = v.Line
		if v.Line > 0 {
			l.lines.add(v.Line)
		}
	}
	if g := e.Figure; g != nil {
		g.File, g.Line = l.o.File, f.Line
		if g.Reduce != "" {
			g.Of = len(values)
		}
	}
	l.found = l.found || e.Evaluation != nil || e.Figure != nil
	if err := e.Validate(); err != nil { // metrics.Reader would refuse it
		l.fail(f.Line, "%w", err)
	}
	l.res.findings.add(f)
}

func (l *log) label(key string, value any) {
	if l.res.Labels == nil {
		l.res.Labels = map[string]any{}
	}
	l.res.Labels[key] = value
}

// figure appends a figure with the value and unit that the log states. at are its coordinates
// (epoch, load, ...); nil for a figure of the whole run.
func (l *log) figure(name, unit string, at map[string]any, v Value, note string) {
	l.add(metrics.Event{Figure: &metrics.Figure{Name: name, Value: v.Number, Unit: unit, At: at, Note: note}}, 1, v)
}

// reduced appends one figure computed from several values, like their median. scale is the factor
// from their unit to the figure's.
func (l *log) reduced(name, unit, reduce string, scale float64, values []Value, note string) {
	l.reduce(metrics.Figure{Name: name, Unit: unit, Reduce: reduce, Note: note}, scale, values)
}

// reduce appends the figure f. It computes the value from several by the method f.Reduce.
func (l *log) reduce(f metrics.Figure, scale float64, values []Value) {
	f.Value = scaled(must(reduceBy(f.Reduce, numbers(values))), scale)
	if len(values) == 1 {
		f.Reduce = ""
	}
	l.add(metrics.Event{Figure: &f}, scale, values...)
}

// namedAccuracy appends an evaluation with an accuracy from a column that the user named, in the
// unit that the user gave.
func (l *log) namedAccuracy(e metrics.Event, v Value, name string) {
	l.accuracy(e, units[l.o.AccuracyUnit].scale, v, func() string { return "write " + mapping("accuracy", name, "%") })
}

// accuracy appends an evaluation; scale is 0.01 for percent. It fails if the accuracy is outside
// 0 to 1; percent, if not nil, says how to declare percentages.
func (l *log) accuracy(e metrics.Event, scale float64, v Value, percent func() string) {
	e.Evaluation.Accuracy = scaled(v.Number, scale)
	if e.Validate() != nil {
		want := "a fraction from 0 to 1"
		if scale != 1 {
			want = "0 to 100 %"
		} else if percent != nil {
			want += "; for percent " + percent()
		}
		l.fail(v.Line, "accuracy %g; want %s", v.Number, want)
	}
	l.add(e, scale, v)
}
