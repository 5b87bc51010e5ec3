package extract

import (
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

// models adds the figures of a language model. If the table has only the rate per device, the
// rate of all devices is computed from it and the number of workers.
func (r *rowsOfRun) models() {
	for _, f := range modelFigures {
		values, scale := r.modelValues(f.Name)
		if len(values) == 0 {
			continue
		}
		f.Reduce, f.Note = "median", r.from(f.Name)
		if r.has("epoch") {
			values, f.Note = steadyEpochs(values, f.Note)
		}
		r.l.reduce(f, scale, values)
		if f.Name == tokensPerGPU && !r.has(tokensPerSecond) {
			all := modelFigures[0]
			all.Reduce, all.Note = "median", f.Note+", a device's rate times the workers"
			r.l.reduce(all, scale*r.counts(0, number.PerDevice), values)
		}
	}
}

// modelValues returns the numbers in the cells of a figure, and the factor to the figure's unit.
func (r *rowsOfRun) modelValues(name string) (values []Value, scale float64) {
	for row := range r.rows {
		v, by, ok := r.at(row, name)
		if !ok {
			continue
		}
		switch x := v.Number * by; {
		case x <= 0:
			r.l.fail(v.Line, "%s is %g; want more than 0", name, v.Number)
		case name == reportedMFU && x > 1:
			r.l.fail(v.Line, "%s is %g; it is a share: for percent write %s", name, v.Number, mapping(name, r.columns[name].Name, "%"))
		}
		values, scale = append(values, v), by
	}
	return values, scale
}

// steadyEpochs returns the rates of all epochs but the first, if there are several, because
// programs compile and fill caches then. It also returns the note with this added.
func steadyEpochs(rates []Value, note string) ([]Value, string) {
	if len(rates) > 1 {
		return rates[1:], note + ", the median of the epochs without the first"
	}
	return rates, note + ", of one epoch"
}
