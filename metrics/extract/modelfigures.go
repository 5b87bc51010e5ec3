package extract

import (
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
)

// modelFigures lists the figures of language-model trainings to which a column of a table can be
// mapped. If rows are epochs, they are reduced over the epochs like the throughput.
var modelFigures = []metrics.Figure{
	{Name: tokensPerSecond, Unit: "tokens/s", Better: "higher"},
	{Name: tokensPerGPU, Unit: "tokens/s"},
	{Name: stepSeconds, Unit: "s"},
	{Name: reportedMFU},
}

// medians adds the figures that are medians over the rows: those of a language model, and the
// throughput. If the table has only the rate per device, the rate of all devices is computed from
// it and the number of workers.
func (r *rowsOfRun) medians() {
	for _, f := range slices.Concat(modelFigures, []metrics.Figure{{Name: metrics.FigureThroughput, Unit: "samples/s"}}) {
		values, scale := r.values(f.Name)
		if len(values) == 0 {
			continue
		}
		f.Note = r.from(f.Name)
		if r.has("epoch") {
			values, f.Note = steadyEpochs(values, f.Note)
		}
		r.median(f, scale, values)
		if f.Name == tokensPerGPU && !r.has(tokensPerSecond) {
			all := modelFigures[0]
			all.Note = f.Note + ", a device's rate times the workers"
			r.median(all, scale*r.counts(0, number.PerDevice), values)
		}
	}
}

// values returns the numbers in the cells of a figure, and the factor to the figure's unit.
func (r *rowsOfRun) values(name string) (values []Value, scale float64) {
	for row := range r.rows {
		v, by, ok := r.at(row, name)
		if !ok {
			continue
		}
		switch x := v.Number * by; {
		case name == metrics.FigureThroughput: // its first epoch may be 0
		case x <= 0:
			r.l.fail(v.Line, "%s is %g; want more than 0", name, v.Number)
		case name == reportedMFU && x > 1:
			r.l.fail(v.Line, "%s is %g; it is a share: for percent write %s", name, v.Number, mapping(name, r.columns[name].Name, "%"))
		}
		values, scale = append(values, v), by
	}
	return values, scale
}

// median adds the figure f with the median of values.
func (r *rowsOfRun) median(f metrics.Figure, scale float64, values []Value) {
	for _, v := range values {
		if f.Name == metrics.FigureThroughput && v.Number < metrics.MinRate {
			r.l.fail(v.Line, "a throughput of %g; want %g or more. If the run failed, leave the cell empty or delete the row", v.Number, metrics.MinRate)
		}
	}
	f.Value = r.reads[f.Name].times(median(values), scale)
	if len(values) > 1 {
		f.Reduce = "median"
	}
	r.l.add(metrics.Event{Figure: &f}, scale, values...)
}

// steadyEpochs returns the rates of all epochs but the first, if there are several, because
// programs compile and fill caches then. It also returns the note with this added.
func steadyEpochs(rates []Value, note string) ([]Value, string) {
	if len(rates) > 1 {
		return rates[1:], note + ", the median of the epochs without the first"
	}
	return rates, note + ", of one epoch"
}
