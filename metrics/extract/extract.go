// Package extract reads other programs' logs into metrics' events.
//
// A log states figures; it does not say how they were made. So what comes out
// of here is the log's statement, with the line that it stands in and a note on
// what it really is (one rank's rate times N, a ± of 1.96 σ), and never passes
// for a measurement of ours. A value is taken from a whole line of the exact
// form that the program writes, or not at all: a log that was cut off, or holds
// two runs, is an error or gives fewer values, never other ones. A log in which
// nothing is found is an error.
package extract

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// Extractor reads logs of one format.
type Extractor struct {
	Name  string // as users write it: "horovod-synthetic"
	Kind  string // of workload that such a log is of, as studies name it; "" where any may be
	Reads string // what it reads, in a line
	// Apart: the format is of a file of its own, not of what a program prints.
	Apart bool
	read  func(l *log, r io.Reader) error
}

// allFormats are the named formats, by name.
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

// Find returns the extractor of that name.
func Find(name string) (Extractor, error) {
	for _, e := range allFormats {
		if e.Name == name {
			return e, nil
		}
	}
	return Extractor{}, fmt.Errorf("unknown extractor %q; valid: %s", name, strings.Join(Names(), ", "))
}

// Names are those of All.
func Names() []string {
	var names []string
	for _, e := range allFormats {
		names = append(names, e.Name)
	}
	return names
}

// globalBatch is the samples of a step over all ranks; 0: not known.
func (o Options) globalBatch() float64 { return o.rankBatch() * float64(o.Workers) }

// rankBatch is a rank's part of them.
func (o Options) rankBatch() float64 { return float64(o.WorkerBatch) / float64(max(1, o.Sharing)) }

// Options are what a log may not say of itself.
type Options struct {
	File        string  // the log's name in errors and figures
	Bytes       int64   // size of the log, which is refused unread where it is too much; 0: not known
	Workers     int     // ranks of the run; 0: not known
	Nodes       int     // that they are on; 0: not known
	Decimal     Decimal // how a table writes its numbers; "": they must mean the same to everybody
	Sum         string  // the column of a table in which the parts of one run differ, whose rates add up; "" for none
	Scaling     string  // "weak" or "strong", as the user says; "": not known
	WorkerBatch int     // samples a rank trains on in a step; 0: not known
	Sharing     int     // ranks that share one WorkerBatch, since they hold one model together; 0: each has its own
	// At are coordinates of the load that a log of a service may not state: how many
	// requests were in flight, or the rate, and the samples in each.
	At map[string]float64
	// Model is what was trained, and on which device, for an MFU by each convention;
	// nil: not known.
	Model *measure.Transformer
	// FirstEpoch is the number that the log gives to the first epoch; nil for
	// what the format usually has.
	FirstEpoch *int
	// Columns are the log's names for what it can name as it likes (CSV columns,
	// TensorBoard tags), by ours: "accuracy" to "val_acc".
	Columns map[string]string
	// AccuracyUnit is that of accuracies under such a name, "%" or "".
	AccuracyUnit string
	// Given are our names of what is known without the table that Runs reads: a
	// column that happens to have one of these names is not taken for it.
	Given []string
	// Say is told what is worth knowing of a table as a whole; nil: it is not said.
	Say func(string)
}

// Value is a number as it stands in a log.
type Value struct {
	Number float64 // in the log's unit
	Line   int     // 1-based; 0 in formats without lines
}

// Content is what a log holds.
type Content struct {
	Kind      string  // of workload that it is of, as studies name it; "" where it may be any
	Workers   int     // ranks that the log speaks of; 0: it does not say
	WorkersBy string  // what in the log states Workers; "" if nothing states it for sure
	StartUnix float64 // when the log says it began, seconds since the Unix epoch; 0: it does not say
	// Position is the run's place in the order in which a table says that its runs were
	// made, from 1 on, and Block the block of runs that it is of; 0: it does not say.
	Position float64
	Block    int
	Notes    []string // on the log as a whole
	// Labels are what the log says of the training, by TOML path where a study
	// has a key for it: "workload.model".
	Labels map[string]any
	Failed string // why the run failed, as the log says; "" where it does not say so
	Lines  int    // that something was taken from

	findings findings
}

// Findings are in the order of their times; train, epoch, evaluation, figure and
// stop events. Times count from the start of the run as the log has it, and are 0
// where it states none; there is then no train event. Each is made when its turn
// comes: a million take the memory of what they differ in. They are not to be changed.
func (r *Content) Findings() iter.Seq[Finding] { return r.findings.all() }

// Found is how many findings there are.
func (r *Content) Found() int { return r.findings.len() }

// Events are the notes and findings as events, to follow a start event with
// Ranks set to all ranks.
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

// Run are the events of a run that has nothing else: those of its log between a
// start and a stop.
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

// ErrNothing: the log has none of the lines that were looked for.
var ErrNothing = errors.New("nothing found")

// Extract reads a log. Errors begin with the file and, where there is one, the
// line.
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
		return Content{}, fmt.Errorf("%s: %s is no format of a load; --at is for those", o.File, e.Name)
	}
	if e.Name == Any.Name {
		return anyFormat(r, o)
	}
	l := newLog(o)
	if err := e.read(l, r); err != nil {
		return Content{}, err
	}
	if l.invalid != nil {
		return Content{}, l.invalid
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

// log is one reading of one log.
type log struct {
	o       Options
	res     Content
	lines   lineSet // that something was taken from
	found   bool    // an evaluation or a figure
	invalid error   // what the reader of events would refuse first
	// sizes are those that were stated of each operation, a bit for out of place and
	// one for in place.
	sizes  map[string]map[float64]uint8
	unsaid int // notes beyond maxNotes
	// utilised: an MFU was looked for, of which the notes say more.
	utilised bool
	// loads are those that a service was under, by measure.Key, and their line.
	loads map[string]int
}

func newLog(o Options) *log {
	l := &log{o: o}
	l.res.findings.file = o.File
	return l
}

// workersAre takes the number of workers, which by states in a line of the log.
func (l *log) workersAre(n int, by string, line int) {
	l.res.Workers, l.res.WorkersBy = n, fmt.Sprintf("%s, line %d", by, line)
}

// lineSet is a set of line numbers, from 1 on.
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

// errorAt is an error in a line.
func (l *log) errorAt(line int, format string, args ...any) error {
	return &metrics.LineError{File: l.o.File, Line: line, Err: fmt.Errorf(format, args...)}
}

// validate notes what the reader of events would refuse.
func (l *log) validate(f *Finding) {
	if l.invalid != nil {
		return
	}
	err := f.Event.Validate()
	switch {
	case err != nil && f.Line > 0:
		l.invalid = l.errorAt(f.Line, "%w", err)
	case err != nil:
		l.invalid = fmt.Errorf("%s: %w", l.o.File, err)
	}
}

// maxNotes is how many notes are kept of a log: a benchmark of a million sizes
// can have something to say of each.
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

// add appends an event made of values, whose numbers times scale are the event's.
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
	l.validate(&f)
	l.res.findings.add(f)
}

// label notes what the log says of the training.
func (l *log) label(key string, value any) {
	if l.res.Labels == nil {
		l.res.Labels = map[string]any{}
	}
	l.res.Labels[key] = value
}

// scaled is x in another unit. A part of a unit divides by how many make one, so
// that 20006 µs are 0.020006 s to the last digit.
func scaled(x, scale float64) float64 {
	if parts := math.Round(1 / scale); scale < 1 && 1/parts == scale {
		return x / parts
	}
	return x * scale
}

// figure appends a figure that the log states as it is; at is what it is of, nil
// for the run.
func (l *log) figure(name, unit string, at map[string]any, v Value, note string) {
	l.add(metrics.Event{Figure: &metrics.Figure{Name: name, Value: v.Number, Unit: unit, At: at, Note: note}}, 1, v)
}

// reduced appends a figure made of several values.
func (l *log) reduced(name, unit, reduce string, scale float64, values []Value, note string) error {
	return l.reduce(metrics.Figure{Name: name, Unit: unit, Reduce: reduce, Note: note}, scale, values)
}

// reduce appends a figure whose value is made of several, as its Reduce says.
func (l *log) reduce(f metrics.Figure, scale float64, values []Value) error {
	x, err := reduceBy(f.Reduce, numbers(values))
	if err != nil {
		return err
	}
	if x = scaled(x, scale); !finite(x) {
		return l.errorAt(values[len(values)-1].Line, "the %s of %d values of %s is not a finite number", f.Reduce, len(values), f.Name)
	}
	f.Value = x
	if len(values) == 1 {
		f.Reduce = ""
	}
	l.add(metrics.Event{Figure: &f}, scale, values...)
	return nil
}

// namedAccuracy is accuracy of what the log names as it likes, and has in what unit the
// user says.
func (l *log) namedAccuracy(e metrics.Event, v Value, name string) error {
	scale := units[l.o.AccuracyUnit].scale
	err := l.accuracy(e, scale, v)
	if err != nil && scale == 1 {
		err = fmt.Errorf("%w; for percent write %s", err, mapping("accuracy", name, "%"))
	}
	return err
}

// accuracy appends an evaluation; scale is 0.01 for percent. A value outside 0
// to 1 is an error: it is then no accuracy.
func (l *log) accuracy(e metrics.Event, scale float64, v Value) error {
	e.Evaluation.Accuracy = scaled(v.Number, scale)
	if err := e.Validate(); err != nil {
		want := "a fraction from 0 to 1"
		if scale != 1 {
			want = "0 to 100 %"
		}
		return l.errorAt(v.Line, "accuracy %g; want %s", v.Number, want)
	}
	l.add(e, scale, v)
	return nil
}

// reductions are the ways to make one number of several.
var reductions = []string{"last", "mean", "median", "max", "min", "sum"}

// reduceBy makes one number of several, by one of Reductions.
func reduceBy(how string, values []float64) (float64, error) {
	if len(values) == 0 {
		return 0, errors.New("no values to reduce")
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	switch how {
	case "last":
		return values[len(values)-1], nil
	case "mean":
		return sum / float64(len(values)), nil
	case "sum":
		return sum, nil
	case "max":
		return slices.Max(values), nil
	case "min":
		return slices.Min(values), nil
	case "median":
		sorted := slices.Sorted(slices.Values(values))
		n := len(sorted)
		return sorted[(n-1)/2]/2 + sorted[n/2]/2, nil
	}
	return 0, fmt.Errorf("unknown reduction %q; valid: %s", how, strings.Join(reductions, ", "))
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
