package extract

import (
	"fmt"

	"github.com/scalebench/scalebench/metrics"
)

// rowsOfRun is the parser's state while it reads the rows of one training, from top to bottom.
type rowsOfRun struct {
	*table
	columns map[string]Column
	row     int // the current row

	timed, summed  bool    // times come from the column elapsed, or are added up from epoch_seconds
	before         float64 // the previous row's epoch; -1: none
	elapsed        Value
	epochSeconds   []Value
	secondsScale   float64
	throughputs    []Value
	rateScale      float64
	epoch, step    Value
	evaluationTime float64 // seconds since training began
}

// run adds the events of all rows of the table, which belong to one run.
func (t *table) run(columns map[string]Column) error {
	r := &rowsOfRun{table: t, columns: columns, before: -1}
	r.timed, r.summed = r.has("elapsed"), r.has("epoch_seconds")
	if r.timed || r.summed {
		t.l.add(metrics.Event{Train: &metrics.Train{}}, 1)
	}
	for r.row = range t.rows {
		for _, read := range []func() error{r.place, r.clock, r.accuracy, r.loss, r.throughput, r.last} {
			if err := read(); err != nil {
				return err
			}
		}
	}
	if err := r.trainSeconds(); err != nil {
		return err
	}
	if err := t.models(columns, r.at); err != nil {
		return err
	}
	return r.rate()
}

func (r *rowsOfRun) has(ours string) bool { _, ok := r.columns[ours]; return ok }

// cell returns the current row's number for the key ours; ok is false if the cell is empty.
func (r *rowsOfRun) cell(ours string) (v Value, scale float64, ok bool, err error) {
	return r.at(r.row, ours)
}

func (r *rowsOfRun) at(row int, ours string) (v Value, scale float64, ok bool, err error) {
	v, scale, ok, err = r.table.cell(row, ours)
	if err == nil && ok && v.Number < 0 && ours != "loss" {
		err = r.l.errorAt(v.Line, "%s is %g; want 0 or more", ours, v.Number)
	}
	return v, scale, ok, err
}

// wrong returns an error that names the line of the current row.
func (r *rowsOfRun) wrong(format string, a ...any) error {
	return r.l.errorAt(r.line[r.row], format, a...)
}

// needed is like cell, but returns an error if the cell is empty; what describes the number.
func (r *rowsOfRun) needed(ours, what string) (v Value, scale float64, err error) {
	v, scale, ok, err := r.cell(ours)
	if err == nil && !ok {
		err = r.wrong("no number in column %s, %s", r.columns[ours].Name, what)
	}
	return v, scale, err
}

// place reads the epoch and the step of the current row.
func (r *rowsOfRun) place() (err error) {
	if r.epoch, _, _, err = r.cell("epoch"); err != nil {
		return err
	}
	if r.step, _, _, err = r.cell("step"); err != nil {
		return err
	}
	for _, v := range []Value{r.epoch, r.step} {
		if v.Number != float64(int(v.Number)) || v.Number > 1<<40 {
			return r.wrong("%g as the number of an epoch or a step; want a whole number", v.Number)
		}
	}
	if !r.has("epoch") {
		return nil
	}
	now, before := r.epoch.Number, r.before
	switch {
	case r.epoch.Line == 0:
		return r.wrong("no number in column %s, the epoch", r.columns["epoch"].Name)
	case now <= before:
		return r.wrong("epoch %g follows epoch %g of the same run; tell the runs apart by a column that differs between them: --label seed for repeats, any other label for runs of another series", now, before)
	// If times are added up from epoch_seconds, no epoch may be missing, because its time is
	// unknown.
	case r.summed && before >= 0 && now != before+1:
		return r.wrong("epoch %g follows epoch %g; epoch_seconds needs a row for every epoch", now, before)
	}
	if n := r.l.epoch(int(now), 1); r.summed && before < 0 && n > 1 {
		return r.wrong("the first epoch is %g; epoch_seconds needs a row for every epoch (--first-epoch, if the log counts from another number)", now)
	}
	r.before = now
	return nil
}

// clock reads the time at which the epoch of the current row ended.
func (r *rowsOfRun) clock() error {
	if r.timed {
		v, scale, err := r.needed("elapsed", "the time elapsed")
		if err != nil {
			return err
		}
		if v.Number < r.elapsed.Number {
			return r.l.errorAt(v.Line, "elapsed goes back from %g to %g; it counts from the start of training", r.elapsed.Number, v.Number)
		}
		r.elapsed, r.secondsScale = v, scale
	}
	if r.summed {
		v, scale, err := r.needed("epoch_seconds", "the seconds of the epoch")
		if err != nil {
			return err
		}
		r.epochSeconds, r.secondsScale = append(r.epochSeconds, v), scale
		r.elapsed.Number += v.Number
	}
	if r.timed || r.summed {
		r.evaluationTime = scaled(r.elapsed.Number, r.secondsScale)
	}
	return nil
}

func (r *rowsOfRun) accuracy() error {
	v, scale, ok, err := r.cell("accuracy")
	if err != nil || !ok {
		return err
	}
	e := metrics.Event{Time: r.evaluationTime, Evaluation: &metrics.Evaluation{Step: int(r.step.Number)}}
	if r.epoch.Line > 0 {
		e.Evaluation.Epoch = r.l.epoch(int(r.epoch.Number), 1)
	}
	if err = r.l.accuracy(e, scale, v); err != nil && scale == 1 {
		return fmt.Errorf("%w; for percent write %s", err, mapping("accuracy", r.columns["accuracy"].Name, "%"))
	}
	return err
}

func (r *rowsOfRun) loss() error {
	v, _, ok, err := r.cell("loss")
	if err != nil || !ok {
		return err
	}
	var at map[string]any
	if r.before >= 0 {
		at = map[string]any{"epoch": r.epoch.Number}
	}
	r.l.figure("loss", "", at, v, "")
	return nil
}

func (r *rowsOfRun) throughput() error {
	v, scale, ok, err := r.cell("throughput")
	if ok && err == nil {
		r.throughputs, r.rateScale = append(r.throughputs, v), scale
	}
	return err
}

// last adds the figures of the whole run, which are in the last row.
func (r *rowsOfRun) last() error {
	for _, name := range []string{"end_to_end", "train_seconds"} {
		v, scale, ok, err := r.cell(name)
		if err != nil {
			return err
		}
		if !ok || r.row < len(r.rows)-1 {
			continue
		}
		f := &metrics.Figure{Name: name, Value: r.reads[name].times(v.Number, scale), Note: r.from(name)}
		f.Unit, _ = baseUnit(name)
		if name == "train_seconds" {
			f.Name = r.secondsName()
		}
		r.l.add(metrics.Event{Time: r.evaluationTime, Figure: f}, scale, v)
	}
	return nil
}

// secondsName returns the name under which the training time is stored.
func (r *rowsOfRun) secondsName() string {
	if r.weak {
		return weakSeconds
	}
	return metrics.FigureTrainSeconds
}

// trainSeconds adds the training time if no column states it: the last value of elapsed, or the
// sum of epoch_seconds.
func (r *rowsOfRun) trainSeconds() error {
	if r.has("train_seconds") {
		return nil
	}
	if r.timed {
		seconds := scaled(r.elapsed.Number, r.secondsScale)
		f := &metrics.Figure{Name: r.secondsName(), Value: seconds, Unit: "s", Note: "the last of column " + r.columns["elapsed"].Name}
		r.l.add(metrics.Event{Time: seconds, Figure: f}, r.secondsScale, r.elapsed)
	}
	if r.summed {
		return r.l.reduced(r.secondsName(), "s", "sum", r.secondsScale, r.epochSeconds, "the sum of column "+r.columns["epoch_seconds"].Name)
	}
	return nil
}

// rate adds the median of the rows' throughputs.
func (r *rowsOfRun) rate() error {
	rates, note := r.throughputs, r.from("throughput")
	if len(rates) == 0 {
		return nil
	}
	if r.has("epoch") {
		rates, note = steadyEpochs(rates, note)
	}
	for _, v := range rates {
		if v.Number < metrics.MinRate {
			return r.l.errorAt(v.Line, "a throughput of %g; want %g or more", v.Number, metrics.MinRate)
		}
	}
	x, err := reduceValues("median", rates, r.reads["throughput"].each)
	if err != nil {
		return err
	}
	f := metrics.Figure{Name: metrics.FigureThroughput, Value: scaled(x, r.rateScale), Unit: "samples/s", Note: note}
	if len(rates) > 1 {
		f.Reduce = "median"
	}
	if !finite(f.Value) {
		return r.l.errorAt(rates[0].Line, "the throughput is not a finite number")
	}
	r.l.add(metrics.Event{Figure: &f}, r.rateScale, rates...)
	return nil
}
