package report

import (
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
	"github.com/scalebench/scalebench/metrics/table"
)

// PredictionSentence returns a sentence for people with a prediction, or why none exists.
func PredictionSentence(a *predict.Answer) string {
	what := number.Count(a.Workers, "worker")
	if text := predict.Text(a.Layout); text != "" {
		what += " (" + text + ")"
	}
	doubts := ""
	if len(a.Caveats) > 0 {
		doubts = " Doubtful: " + strings.Join(a.Caveats, "; ") + "."
	}
	switch {
	case a.Refused != "":
		next := ""
		if a.Next != "" {
			next = " Measure next: " + a.Next + "."
		}
		return fmt.Sprintf("Nothing is predicted for %s: %s.%s", what, a.Refused, next)
	case a.Step != nil:
		return fmt.Sprintf("A step takes %s on %s with a global batch of %s: %s %s (%s intervals).%s",
			ofFigure(a.Step, number.Seconds), what, number.Exact(*a.GlobalBatch), ofFigure(a.Rate, number.Significant), a.Unit, level(a), doubts)
	}
	return fmt.Sprintf("%s do %s %s (%s interval).%s", what, ofFigure(a.Rate, number.Significant), a.Unit, level(a), doubts)
}

func level(a *predict.Answer) string { return number.ExactPercent(a.Confidence) }

func ofFigure(f *predict.Estimate, show func(float64) string) string {
	show = number.Alike(show, f.Value, f.Low, f.High)
	return show(f.Value) + " [" + show(f.Low) + ", " + show(f.High) + "]"
}

// Prediction returns a table for people of the measured points and the predicted one.
func Prediction(a *predict.Answer) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "workers"}, {Key: "basis"}, {Key: "runs"}, {Key: "global_batch", Right: true, Optional: true},
		{Key: "step_seconds", Head: "step time", Right: true, Optional: true}, {Key: "rate", Head: "rate", Unit: a.Unit, Right: true}}}
	for _, r := range a.Measured {
		var batch, step any
		if r.Step != nil {
			batch, step = number.Exact(*r.GlobalBatch), number.Seconds(*r.Step)
		}
		t.Add(r.Workers, "measured", r.Runs, batch, step, number.Significant(r.Rate))
	}
	if a.Rate != nil {
		var batch, step any
		if a.Step != nil {
			batch, step = number.Exact(*a.GlobalBatch), ofFigure(a.Step, number.Seconds)
		}
		t.Add(a.Workers, "predicted", nil, batch, step, ofFigure(a.Rate, number.Significant))
		t.Notes = append(t.Notes, fmt.Sprintf("Measured: medians over runs. In brackets: %s intervals, of the median that would be measured.", level(a)))
	}
	if n := len(a.Measured); n > 0 {
		if a.HoldOut != nil {
			measured := a.Measured[n-1]
			t.Notes = append(t.Notes, fmt.Sprintf("Hold-out: fitted to the smaller counts, the law predicts %s %s at %d workers, and %s were measured: %+.1f %% off.",
				ofFigure(a.HeldOut, number.Significant), a.Unit, measured.Workers, number.Significant(measured.Rate), 100**a.HoldOut))
		} else if a.Rate != nil {
			t.Notes = append(t.Notes, "Hold-out: none; that takes three worker counts.")
		}
	}
	switch {
	case a.Memory != nil:
		t.Notes = append(t.Notes, fmt.Sprintf("Memory of a worker: at most %s (%s at the most workers that were measured).", number.Bytes(*a.Memory), a.MemoryMeasure))
	case a.Rate != nil:
		t.Notes = append(t.Notes, "Memory of a worker: not measured, so it is unknown whether the step fits.")
	}
	return t
}

// PredictionData returns a table for programs of every worker count of every series.
func PredictionData(list []*predict.Answer) *table.Table {
	t := &table.Table{Columns: table.Keys("series", "layout", "workers", "basis", "runs", "global_batch", "step_seconds", "step_seconds_low", "step_seconds_high",
		"rate", "rate_low", "rate_high", "rate_unit", "hold_out", "memory_bytes", "refused", "next")}
	for _, a := range list {
		layout := predict.Text(a.Layout)
		for _, r := range a.Measured {
			t.Add(a.Series, layout, r.Workers, "measured", r.Runs, r.GlobalBatch, r.Step, nil, nil, r.Rate, nil, nil, a.Unit, nil, nil, "", "")
		}
		cells := []any{a.Series, layout, a.Workers, "predicted", nil, a.GlobalBatch}
		for _, f := range []*predict.Estimate{a.Step, a.Rate} {
			if f == nil {
				cells = append(cells, nil, nil, nil)
				continue
			}
			cells = append(cells, f.Value, f.Low, f.High)
		}
		t.Add(append(cells, a.Unit, a.HoldOut, a.Memory, a.Refused, a.Next)...)
	}
	return t
}
