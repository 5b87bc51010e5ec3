package report

import (
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/table"
)

// Timing returns a table of a command's run time at each worker count with its speedup, and of
// its throughput and accuracy if the program reports them. Cells are medians over runs, with
// intervals in brackets, or with a dash if none exists.
func Timing(curves []scaling.Curve) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "workers", Right: true}, {Key: "runs"},
		{Key: measure.RunSeconds, Head: title(measure.RunSeconds), Right: true}, {Key: "speedup", Right: true}}}
	several := len(curves) > 1 // other versions of the program, or other machines
	if several {
		t.Columns = slices.Insert(t.Columns, 0, table.Column{Key: "series"})
	}
	var more []measure.Measure
	for _, name := range []string{measure.Throughput, measure.FinalAccuracy} {
		if m, err := measure.Find(name); err == nil && slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Measured(name) }) {
			more = append(more, m)
			t.Columns = append(t.Columns, table.Column{Key: m.Name, Head: m.Title, Unit: m.Unit, Right: true})
		}
	}
	var why reasons
	for _, c := range curves {
		for _, p := range c.Points {
			x, cells := p.Of(measure.RunSeconds), []any{p.At.String(), len(p.Runs)}
			if several {
				cells = slices.Insert(cells, 0, any(c.Series))
			}
			atBase := c.Base != nil && p.At == c.Base.At
			cells = append(cells, estimate(x.Median, number.Seconds, false), estimate(x.Gain(), number.Significant, atBase))
			for _, m := range more {
				show := number.Significant
				if m.Show == measure.Percent {
					show = number.Percent
				}
				cells = append(cells, estimate(p.Of(m.Name).Median, show, false))
			}
			t.Add(cells...)
			why.add(x.Median, x.Gain())
		}
	}
	t.Notes = append(driftNotes(curves, measure.RunSeconds), sameWork)
	t.Notes = append(t.Notes, why.notes("")...)
	t.Notes = append(t.Notes, decisiveNotes(curves)...)
	return t
}
