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
				return l.errorAt(v.Line, "%s is %g; it is a share: for percent write %s=%s:%%", name, v.Number, name, columns[name].Name)
			}
			values, scale = append(values, v), by
		}
		if len(values) == 0 {
			continue
		}
		note := "from column " + columns[name].Name
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
		n, err := t.workers(columns, cell)
		if err != nil {
			return err
		}
		if n == 0 {
			l.note("%s needs the number of devices, which the table does not have: map its column as workers, or give --workers", tokensPerSecond)
			continue
		}
		all := modelFigures[0]
		all.Reduce, all.Note = "median", note+", a device's rate times the workers"
		if err := l.reduce(all, scale*n, values); err != nil {
			return err
		}
	}
	return nil
}

// workers are those of the rows, which are one run's; 0 where that is not known.
func (t *table) workers(columns map[string]Column, cell func(row int, ours string) (Value, float64, bool, error)) (float64, error) {
	for _, ours := range []string{"workers", "replicas"} {
		if v, _, ok, err := cell(0, ours); err != nil || ok {
			return v.Number, err
		}
	}
	return float64(t.l.o.Workers), nil
}

// steadyEpochs are the rates of a run's epochs without the first, in which programs
// compile and fill caches, where there are others.
func steadyEpochs(rates []Value, note string) ([]Value, string) {
	if len(rates) > 1 {
		return rates[1:], note + ", the median of the epochs without the first"
	}
	return rates, note + ", of one epoch"
}
