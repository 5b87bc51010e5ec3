package extract

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// A tableFormat declares a CSV format with the epochs, evaluations or steps of one training.
// Users can replace the names of columns by Options.Columns.
type tableFormat struct {
	separators string
	// epoch and step are the names of the columns with the number of the epoch and of the step.
	// firstEpoch and firstStep are the numbers of the first ones.
	epoch, step           string
	firstEpoch, firstStep int
	// epochs is true if each row is an epoch and none may be missing.
	epochs   bool
	accuracy []string // possible names of the accuracy column
	losses   []string // columns with the loss of an evaluation
	// rate lists possible names of the column with the rate in samples/s. A name that ends with
	// ofDevice is the rate of one device.
	rate     []string
	seconds  []string // possible names of the column with the seconds since training began
	samples  []string // possible names of the column with one rank's samples since training began
	rateNote string   // description of the rate
	needs    string   // what a file without an accuracy and a rate lacks, for the error
}

// ofDevice is how the names of columns end that have the rate of one device.
const ofDevice = "device/samples_per_sec"

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

// read reads a whole file.
func (f *tableFormat) read(l *log, r io.Reader) error {
	t, err := l.table(r, f.separators)
	if err != nil || len(t.at) == 0 {
		return err
	}
	if _, has := t.at[f.epoch]; f.epochs && !has {
		return l.errorAt(1, "no column %s; the format has it first. The file has %s", f.epoch, t.names())
	}
	run := &tableRun{table: t, format: f, before: -1}
	for _, c := range []struct {
		ours  string
		names []string
		into  *string
	}{{"accuracy", f.accuracy, &run.accuracy}, {"throughput", f.rate, &run.rated}, {"elapsed", f.seconds, &run.seconds}} {
		if *c.into, err = t.column(c.ours, c.names...); err != nil {
			return err
		}
	}
	if run.accuracy == "" && run.rated == "" {
		l.note(f.needs, t.names())
	}
	for row := range t.rows {
		if err := run.row(row); err != nil {
			return err
		}
	}
	if run.last.Line > 0 {
		l.figure("train_seconds", "s", nil, run.last, "from the first training batch of rank 0 to the last that ThroughputMonitor logged")
	}
	return run.rate()
}

// row reads one row.
func (t *tableRun) row(row int) error {
	e := metrics.Evaluation{}
	var err error
	if e.Epoch, e.Step, err = t.numbered(row); err != nil {
		return err
	}
	v, ok, err := t.value(row, t.accuracy)
	if err == nil && ok {
		err = t.l.namedAccuracy(metrics.Event{Evaluation: &e}, v, t.accuracy)
	}
	if err != nil {
		return err
	}
	for _, column := range t.format.losses {
		v, ok, err := t.value(row, column)
		if err != nil {
			return err
		}
		if ok {
			t.l.figure(column, "", map[string]any{"epoch": float64(e.Epoch)}, v, "")
		}
	}
	if v, ok, err = t.value(row, t.rated); err != nil {
		return err
	}
	if ok {
		t.rates = append(t.rates, v)
	}
	return t.clock(row)
}

// numbered returns the epoch and the step of a row, both counted from 1.
func (t *tableRun) numbered(row int) (epoch, step int, err error) {
	epoch, has, err := t.whole(row, t.format.epoch)
	switch {
	case err != nil:
		return 0, 0, err
	case t.format.epochs && t.before >= 0 && epoch != t.before+1:
		return 0, 0, t.l.errorAt(t.line[row], "epoch %d follows epoch %d: rows are missing, or a second run was appended. One file is one run", epoch, t.before)
	case has:
		t.before = epoch
		epoch = t.l.epoch(epoch, t.format.firstEpoch)
	}
	step, has, err = t.whole(row, t.format.step)
	if has {
		step += 1 - t.format.firstStep
	}
	return epoch, step, err
}

// whole returns the integer in a cell; has is false if the cell is empty. If each row is an
// epoch, the cell with its number must not be empty.
func (t *tableRun) whole(row int, column string) (n int, has bool, err error) {
	if t.format.epochs && column == t.format.epoch {
		n, err = t.l.whole(t.line[row], t.rows[row][t.at[column]])
		return n, err == nil, err
	}
	v, has, err := t.value(row, column)
	if err == nil && has && (v.Number < 0 || v.Number != float64(int(v.Number)) || v.Number > 1<<40) {
		err = t.l.errorAt(t.line[row], "column %s: %g is not a count", column, v.Number)
	}
	return int(v.Number), has && err == nil, err
}

// clock reads the time of a row, and the samples trained on up to it.
func (t *tableRun) clock(row int) error {
	v, ok, err := t.value(row, t.seconds)
	if err != nil || !ok {
		return err
	}
	if v.Number < t.last.Number {
		return t.l.errorAt(v.Line, "column %s: the time goes back from %g s to %g s. One file is one run: split it", t.seconds, t.last.Number, v.Number)
	}
	t.last = v
	for _, name := range t.format.samples {
		samples, ok, err := t.value(row, name)
		if err != nil {
			return err
		}
		if ok {
			t.counted = append(t.counted, ownCount{samples.Number, v.Number})
		}
	}
	return nil
}

// rate adds the run's throughput, the median of the rows' rates.
func (t *tableRun) rate() error {
	l := t.l
	if len(t.rates) == 0 {
		return nil
	}
	scale, note := 1.0, t.format.rateNote
	if strings.HasSuffix(t.rated, ofDevice) {
		n := l.o.Workers
		if n == 0 {
			return fmt.Errorf("%s: column %s is the rate of one device; give the number of workers", l.o.File, t.rated)
		}
		scale, note = float64(n), fmt.Sprintf("rank 0's rate times %d, not a measured aggregate; the median of ThroughputMonitor's windows", n)
	} else if !slices.Contains(t.format.rate, t.rated) || l.o.Columns["throughput"] != "" {
		note = "the median of the rows of column " + t.rated
	}
	for _, v := range t.rates {
		if v.Number < metrics.MinRate {
			return l.errorAt(v.Line, "column %s: a throughput of %g samples/s; want more than 0", t.rated, v.Number)
		}
	}
	return l.rate("median", scale, t.rates, note, ownOf(t.counted, float64(l.o.Workers)), "rank 0's samples over its time, times the number of workers")
}
