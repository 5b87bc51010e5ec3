package extract

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// A tableFormat declares a CSV format with the epochs, evaluations or steps of one training.
// Users can replace the names of columns by Options.Columns.
type tableFormat struct {
	separators string
	// epoch and step are the names of the columns with the number of the epoch and of the step,
	// which count from 0.
	epoch, step string
	// epochs is true if each row is an epoch and none may be missing.
	epochs   bool
	accuracy []string // possible names of the accuracy column
	losses   []string // columns with the loss of an evaluation
	// rate lists possible names of the column with the rate in samples/s. A name that ends with
	// ofDevice is the rate of one device.
	rate        []string
	seconds     []string // possible names of the column with the seconds since training began
	samples     []string // possible names of the column with one rank's samples since training began
	rateNote    string   // description of the rate
	secondsNote string   // what the seconds of the last row cover
	needs       string   // names what is missing in a file without accuracy and rate, for the error
}

// ofDevice is the ending of names of columns with the rate of one device. The separator may be |.
const ofDevice = "device/samples_per_sec"

func isDeviceRate(name string) bool {
	return strings.HasSuffix(strings.ReplaceAll(name, "|", "/"), ofDevice)
}

// A tableRun is the parser's state while it reads one file.
type tableRun struct {
	*table
	format                   *tableFormat
	accuracy, rated, seconds string // names of columns; "": the file has none
	before                   int    // the previous row's epoch; -1: none
	rates                    []Value
	last                     Value // the latest number in the column seconds
	counted                  []ownCount
}

func (f *tableFormat) read(l *log, r io.Reader) {
	t := l.table(r, f.separators)
	if len(t.at) == 0 {
		return
	}
	if _, has := t.at[f.epoch]; f.epochs && !has {
		l.fail(1, "no column %s; the format has it first. The file has %s", f.epoch, t.names())
	}
	run := &tableRun{table: t, format: f, before: -1}
	rates := slices.Clone(f.rate)
	if slices.ContainsFunc(rates, func(name string) bool { _, has := t.at[name]; return has && !isDeviceRate(name) }) {
		rates = slices.DeleteFunc(rates, isDeviceRate)
	}
	run.accuracy, run.rated, run.seconds = t.column("accuracy", f.accuracy...), t.column("throughput", rates...), t.column("elapsed", f.seconds...)
	if run.accuracy == "" && run.rated == "" {
		l.note(f.needs, t.names())
	}
	run.unread()
	for row := range t.rows {
		run.row(row)
	}
	if run.last.Line > 0 {
		l.figure("train_seconds", "s", nil, run.last, f.secondsNote)
	}
	run.rate()
}

// unread adds a note that names columns with rates if none is read.
func (t *tableRun) unread() {
	var rates []string
	for _, name := range t.ordered() {
		if h := headingOf(name); t.rated == "" && (len(h.dims) > 0 && strings.HasSuffix(h.dims[0].base, "/s") && !h.dims[0].each || rateNames.MatchString(name)) {
			rates = append(rates, name)
		}
	}
	if len(rates) > 0 {
		t.l.note("no rate is read; columns %s seem to have one: write %s for samples/s of all devices", listed(rates), mapping("throughput", "COLUMN", ""))
	}
}

// rateNames matches names of columns with rates that state no unit.
var rateNames = regexp.MustCompile(`(?i)throughput|(?:^|[^a-z])(?:tps|ips|sps|wps|speed|mfu|flops)(?:[^a-z]|$)`)

func (t *tableRun) row(row int) {
	e := metrics.Evaluation{}
	e.Epoch, e.Step = t.numbered(row)
	if v, ok := t.value(row, t.accuracy); ok {
		t.l.namedAccuracy(metrics.Event{Evaluation: &e}, v, t.accuracy)
	}
	for _, column := range t.format.losses {
		v, ok := t.value(row, column)
		if ok {
			t.l.figure(column, "", map[string]any{"epoch": float64(e.Epoch)}, v, "")
		}
	}
	if v, ok := t.value(row, t.rated); ok {
		t.rates = append(t.rates, v)
	}
	t.clock(row)
}

// numbered returns the epoch and the step of a row, both counted from 1.
func (t *tableRun) numbered(row int) (epoch, step int) {
	epoch, has := t.whole(row, t.format.epoch)
	switch {
	case t.format.epochs && t.before >= 0 && epoch != t.before+1:
		t.l.fail(t.line[row], "epoch %d follows epoch %d: rows are missing, or a second run was appended. One file is one run", epoch, t.before)
	case has:
		t.before = epoch
		epoch = t.l.epoch(epoch, 0)
	}
	if step, has = t.whole(row, t.format.step); has {
		step++
	}
	return epoch, step
}

// whole returns the integer in a cell; has is false if the cell is empty. If each row is an
// epoch, the cell with its number must not be empty.
func (t *tableRun) whole(row int, column string) (n int, has bool) {
	if t.format.epochs && column == t.format.epoch {
		return t.l.whole(t.line[row], strings.TrimSpace(t.rows[row][t.at[column]])), true
	}
	v, has := t.value(row, column)
	if has && (v.Number < 0 || v.Number != float64(int(v.Number)) || v.Number > 1<<40) {
		t.l.fail(t.line[row], "column %s: %g is not a count", column, v.Number)
	}
	return int(v.Number), has
}

// clock reads the time of a row, and the samples trained on up to it.
func (t *tableRun) clock(row int) {
	v, ok := t.value(row, t.seconds)
	if !ok {
		return
	}
	if v.Number < t.last.Number {
		t.l.fail(v.Line, "column %s: the time goes back from %g s to %g s. One file is one run: split it", t.seconds, t.last.Number, v.Number)
	}
	t.last = v
	for _, name := range t.format.samples {
		if samples, ok := t.value(row, name); ok {
			t.counted = append(t.counted, ownCount{samples.Number, v.Number})
		}
	}
}

// rate adds the run's throughput, the median of the rows' rates.
func (t *tableRun) rate() {
	l := t.l
	if len(t.rates) == 0 {
		return
	}
	scale, note := 1.0, t.format.rateNote
	if isDeviceRate(t.rated) {
		n := l.o.Workers
		if n == 0 {
			l.fail(0, "column %s is the rate of one device; give the number of workers", t.rated)
		}
		scale, note = float64(n), fmt.Sprintf("rank 0's rate times %d, not a measured aggregate; the median of ThroughputMonitor's windows", n)
	} else if !slices.Contains(t.format.rate, t.rated) || l.o.Columns["throughput"] != "" {
		note = "the median of the rows of column " + t.rated
	}
	l.positive("column "+t.rated+": ", t.rates)
	l.rate("median", scale, t.rates, note, ownOf(t.counted, float64(l.o.Workers)), "rank 0's samples over its time, times the number of workers")
}
