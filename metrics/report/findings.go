package report

import (
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/extract"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

// Findings returns a table of what was found in logs, with at most most rows.
func Findings(contents []extract.Content, notes []string, most int) *table.Table {
	var list []extract.Finding
	found := 0
	for i := range contents {
		found += contents[i].Found()
		for f := range contents[i].Findings() {
			if len(list) == most {
				break
			}
			list = append(list, f)
		}
	}
	t := &table.Table{Columns: []table.Column{
		{Key: "figure"}, {Key: "value", Show: number.Exact}, {Key: "unit"}, {Key: "plus_minus", Head: "±", Show: number.Exact}, {Key: "at"},
		{Key: "time", Show: number.Seconds}, {Key: "line", Show: number.Exact}, {Key: "reduction"}, {Key: "values", Show: number.Exact}, {Key: "note"}, {Key: "plus_minus_is", Data: true},
	}, Notes: notes}
	for _, f := range list {
		var at any
		if f.Event.Time > 0 {
			at = f.Event.Time
		}
		line := table.NonZero(f.Line)
		switch e := f.Event; {
		case e.Train != nil:
			t.Add("start of training", nil, nil, nil, nil, at, line, nil, nil, nil, nil)
		case e.Evaluation != nil:
			t.Add("accuracy", e.Evaluation.Accuracy, "fraction", nil, evaluatedAt(e.Evaluation), at, line, nil, len(f.Values), nil, nil)
		case e.Figure != nil:
			g := e.Figure
			t.Add(g.Name, g.Value, table.NonZero(unitOf(*g)), g.PlusMinus, table.NonZero(placeText(g.At)), at, line, table.NonZero(g.Reduce), len(f.Values), table.NonZero(g.Note), table.NonZero(g.PlusMinusIs))
		}
	}
	for _, f := range list {
		if g := f.Event.Figure; g != nil && g.PlusMinusIs != "" {
			t.Notes = append(t.Notes, fmt.Sprintf("± of %s: %s", g.Name, g.PlusMinusIs))
		}
	}
	if more := found - len(list); more > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("and %d more; --format csv or json prints all", more))
	}
	return t
}

func evaluatedAt(e *metrics.Evaluation) any {
	var parts []string
	if e.Epoch > 0 {
		parts = append(parts, fmt.Sprintf("epoch %d", e.Epoch))
	}
	if e.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", e.Step))
	}
	return table.NonZero(strings.Join(parts, ", "))
}
