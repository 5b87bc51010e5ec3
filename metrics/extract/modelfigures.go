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
func (t *table) models(columns map[string]Column, cell func(row int, ours string) (Value, float64, bool)) {
	_, epochs := columns["epoch"]
	_, totals := columns[tokensPerSecond]
	for _, f := range modelFigures {
		values, scale := t.modelValues(f.Name, columns, cell)
		if len(values) == 0 {
			continue
		}
		note := t.from(f.Name)
		if epochs {
			values, note = steadyEpochs(values, note)
		}
		f.Reduce, f.Note = "median", note
		t.l.reduce(f, scale, values)
		if f.Name != tokensPerGPU || totals {
			continue
		}
		n := t.counts(0, number.PerDevice)
		all := modelFigures[0]
		all.Reduce, all.Note = "median", note+", a device's rate times the workers"
		t.l.reduce(all, scale*n, values)
	}
}

// modelValues returns the numbers in the cells of a figure, and the factor to the figure's unit.
func (t *table) modelValues(name string, columns map[string]Column, cell func(row int, ours string) (Value, float64, bool)) (values []Value, scale float64) {
	for row := range t.rows {
		v, by, ok := cell(row, name)
		if !ok {
			continue
		}
		switch x := v.Number * by; {
		case x <= 0:
			t.l.fail(v.Line, "%s is %g; want more than 0", name, v.Number)
		case name == reportedMFU && x > 1:
			t.l.fail(v.Line, "%s is %g; it is a share: for percent write %s", name, v.Number, mapping(name, columns[name].Name, "%"))
		}
		values, scale = append(values, v), by
	}
	return values, scale
}

// steadyEpochs returns the rates without that of the first epoch, if there are several, because
// programs compile and fill caches then. It also returns the note with this added.
func steadyEpochs(rates []Value, note string) ([]Value, string) {
	if len(rates) > 1 {
		return rates[1:], note + ", the median of the epochs without the first"
	}
	return rates, note + ", of one epoch"
}
