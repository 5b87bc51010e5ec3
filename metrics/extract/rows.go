package extract

import "github.com/scalebench/scalebench/metrics"

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
	epoch, step    Value
	evaluationTime float64 // seconds since training began
}

// run adds the events of all rows of the table, which belong to one run.
func (t *table) run(columns map[string]Column) {
	r := &rowsOfRun{table: t, columns: columns, before: -1}
	r.timed, r.summed = r.has("elapsed"), r.has("epoch_seconds")
	if r.timed || r.summed {
		t.l.add(metrics.Event{Train: &metrics.Train{}}, 1)
	}
	for r.row = range t.rows {
		for _, read := range []func(){r.place, r.clock, r.accuracy, r.loss, r.last} {
			read()
		}
	}
	r.trainSeconds()
	r.medians()
}

func (r *rowsOfRun) has(ours string) bool { _, ok := r.columns[ours]; return ok }

// cell returns the current row's number for the key ours; ok is false if the cell is empty.
func (r *rowsOfRun) cell(ours string) (v Value, scale float64, ok bool) {
	return r.at(r.row, ours)
}

func (r *rowsOfRun) at(row int, ours string) (v Value, scale float64, ok bool) {
	v, scale, ok = r.table.cell(row, ours)
	if ok && v.Number < 0 && ours != "loss" {
		r.l.fail(v.Line, "%s is %g; want 0 or more", ours, v.Number)
	}
	return v, scale, ok
}

// wrong ends the reading with an error that names the line of the current row.
func (r *rowsOfRun) wrong(format string, a ...any) { r.l.fail(r.line[r.row], format, a...) }

// needed is like cell, but fails if the cell is empty; what describes the number.
func (r *rowsOfRun) needed(ours, what string) (v Value, scale float64) {
	v, scale, ok := r.cell(ours)
	if !ok {
		r.wrong("no number in column %s, %s", r.columns[ours].Name, what)
	}
	return v, scale
}

// place reads the epoch and the step of the current row.
func (r *rowsOfRun) place() {
	r.epoch, _, _ = r.cell("epoch")
	r.step, _, _ = r.cell("step")
	for _, v := range []Value{r.epoch, r.step} {
		if v.Number != float64(int(v.Number)) || v.Number > 1<<40 {
			r.wrong("%g as the number of an epoch or a step; want a whole number", v.Number)
		}
	}
	if !r.has("epoch") {
		return
	}
	now, before := r.epoch.Number, r.before
	switch {
	case r.epoch.Line == 0:
		r.wrong("no number in column %s, the epoch", r.columns["epoch"].Name)
	case now <= before:
		r.wrong("epoch %g follows epoch %g of the same run; tell the runs apart by a column that differs between them: --label seed for repeats, any other label for runs of another series", now, before)
	// If times are added up from epoch_seconds, no epoch may be missing, because its time is
	// unknown.
	case r.summed && before >= 0 && now != before+1:
		r.wrong("epoch %g follows epoch %g; epoch_seconds needs a row for every epoch", now, before)
	}
	if n := r.l.epoch(int(now), 1); r.summed && before < 0 && n > 1 {
		r.wrong("the first epoch is %g; epoch_seconds needs a row for every epoch (--first-epoch, if the log counts from another number)", now)
	}
	r.before = now
}

// clock reads the time at which the epoch of the current row ended.
func (r *rowsOfRun) clock() {
	if r.timed {
		v, scale := r.needed("elapsed", "the time elapsed")
		if v.Number < r.elapsed.Number {
			r.l.fail(v.Line, "elapsed goes back from %g to %g; it counts from the start of training", r.elapsed.Number, v.Number)
		}
		r.elapsed, r.secondsScale = v, scale
	}
	if r.summed {
		v, scale := r.needed("epoch_seconds", "the seconds of the epoch")
		r.epochSeconds, r.secondsScale = append(r.epochSeconds, v), scale
		r.elapsed.Number += v.Number
	}
	if r.timed || r.summed {
		r.evaluationTime = scaled(r.elapsed.Number, r.secondsScale)
	}
}

func (r *rowsOfRun) accuracy() {
	v, scale, ok := r.cell("accuracy")
	if !ok {
		return
	}
	e := metrics.Event{Time: r.evaluationTime, Evaluation: &metrics.Evaluation{Step: int(r.step.Number)}}
	if r.epoch.Line > 0 {
		e.Evaluation.Epoch = r.l.epoch(int(r.epoch.Number), 1)
	}
	r.l.accuracy(e, scale, v, func() string { return "write " + mapping("accuracy", r.columns["accuracy"].Name, "%") })
}

func (r *rowsOfRun) loss() {
	v, _, ok := r.cell("loss")
	if !ok {
		return
	}
	var at map[string]any
	if r.before >= 0 {
		at = map[string]any{"epoch": r.epoch.Number}
	}
	r.l.figure("loss", "", at, v, "")
}

// last adds the figures of the whole run, which are in the last row.
func (r *rowsOfRun) last() {
	for _, name := range []string{"end_to_end", "train_seconds"} {
		v, scale, ok := r.cell(name)
		if !ok || r.row < len(r.rows)-1 {
			continue
		}
		f := &metrics.Figure{Name: name, Value: r.reads[name].times(v.Number, scale), Note: r.from(name)}
		f.Unit = tableUnits[name]
		if name == "train_seconds" {
			f.Name = r.secondsName()
		}
		r.l.add(metrics.Event{Time: r.evaluationTime, Figure: f}, scale, v)
	}
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
func (r *rowsOfRun) trainSeconds() {
	if r.has("train_seconds") {
		return
	}
	if r.timed {
		seconds := scaled(r.elapsed.Number, r.secondsScale)
		f := &metrics.Figure{Name: r.secondsName(), Value: seconds, Unit: "s", Note: "the last of column " + r.columns["elapsed"].Name}
		r.l.add(metrics.Event{Time: seconds, Figure: f}, r.secondsScale, r.elapsed)
	}
	if r.summed {
		r.l.reduced(r.secondsName(), "s", "sum", r.secondsScale, r.epochSeconds, "the sum of column "+r.columns["epoch_seconds"].Name)
	}
}
