package extract

import (
	"github.com/scalebench/scalebench/metrics"
)

// modelFigures are what a column of a table of trainings of language models can be
// mapped to. Of the epochs of one run they are reduced as its throughput.
var modelFigures = []metrics.Figure{
	{Name: tokensPerSecond, Unit: "tokens/s", Better: "higher"},
	{Name: tokensPerGPU, Unit: "tokens/s"},
	{Name: stepSeconds, Unit: "s"},
	{Name: reportedMFU},
}

// models adds the figures of a language model. The rate of all devices is that of one
// times the workers, where the table has only the latter.
func (t *table) models(columns map[string]Column, cell func(row int, ours string) (Value, float64, bool, error)) error {
	l := t.l
	for _, f := range modelFigures {
		name := f.Name
		var values []Value
		scale := 1.0
		for row := range t.rows {
			v, by, ok, err := cell(row, name)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			switch x := v.Number * by; {
			case x <= 0:
				return l.errorAt(v.Line, "%s is %g; want more than 0", name, v.Number)
			case name == reportedMFU && x > 1:
				return l.errorAt(v.Line, "%s is %g; it is a share: for percent write %s", name, v.Number, mapping(name, columns[name].Name, "%"))
			}
			values, scale = append(values, v), by
		}
		if len(values) == 0 {
			continue
		}
		note := t.from(name)
		if _, epochs := columns["epoch"]; epochs {
			values, note = steadyEpochs(values, note)
		}
		f.Reduce, f.Note = "median", note
		if err := l.reduce(f, scale, values); err != nil {
			return err
		}
		if _, mapped := columns[tokensPerSecond]; name != tokensPerGPU || mapped {
			continue
		}
		n, err := t.counts(0, perDevice)
		if err != nil {
			return err
		}
		all := modelFigures[0]
		all.Reduce, all.Note = "median", note+", a device's rate times the workers"
		if err := l.reduce(all, scale*n, values); err != nil {
			return err
		}
	}
	return nil
}

// steadyEpochs are the rates of a run's epochs without the first, in which programs
// compile and fill caches, where there are others.
func steadyEpochs(rates []Value, note string) ([]Value, string) {
	if len(rates) > 1 {
		return rates[1:], note + ", the median of the epochs without the first"
	}
	return rates, note + ", of one epoch"
}
