package report

import (
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/metrics/summary"
	"github.com/scalebench/scalebench/metrics/table"
)

// telemetryWindow returns the time range for which a run's telemetry is shown: the training, if its
// times are known, else the node's samples. It returns false if neither is known.
func telemetryWindow(d *store.Details, n *summary.SampledNode) (summary.Window, bool) {
	if d.TrainingClock.Seconds() > 0 {
		return d.TrainingClock, true
	}
	return n.Span()
}

// telemetryRows returns a table of the telemetry of each node: the increase and the rate of a
// counter, the mean and the maximum of a gauge.
func telemetryRows(d *store.Details) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "node", ID: true}, {Key: "quantity", ID: true}, {Key: "of"}, {Key: "unit"}, {Key: "total"},
		{Key: "mean", Head: "mean, or per second"}, {Key: "most"}, {Key: "samples", Data: true}, {Key: "source"}}}
	for i := range d.Telemetry {
		n := &d.Telemetry[i]
		w, ok := telemetryWindow(d, n)
		if !ok {
			continue
		}
		for j := range n.Series {
			s := &n.Series[j]
			var total, mean, most any
			if s.Counter {
				if v, err := s.Rise(w); err == nil {
					total, mean = v, v/w.Seconds()
				}
			} else {
				if v, err := s.Mean(w); err == nil {
					mean = v
				}
				if len(s.Samples) > 0 {
					most = s.Max()
				}
			}
			t.Add(n.Host, s.Name, table.NonZero(s.Of), table.NonZero(s.Unit), total, mean, most, len(s.Samples), s.Source)
		}
	}
	if len(t.Rows) > 0 {
		of := "the programs' time: no training clock was recorded"
		if w := d.TrainingClock; w.Seconds() > 0 {
			of = "the training clock's " + number.Seconds(w.Seconds())
		}
		t.Notes = []string{"Totals and means over " + of + "; the most of all samples."}
	}
	return t
}

// energyRows returns a table of each device's energy, from its counter and from the integral of
// its power, and of the energy in the scheduler's accounting. The latter covers a different time
// and is never added to the others.
func energyRows(d *store.Details) *table.Table {
	t := &table.Table{Columns: []table.Column{{Key: "node"}, {Key: "of"}, {Key: "counter", Head: "by counter", Unit: "J"},
		{Key: "area", Head: "by area under the power", Unit: "J"}, {Key: "counts", Head: "in the sum"}, {Key: "source"}}}
	for i := range d.Telemetry {
		n := &d.Telemetry[i]
		w, ok := telemetryWindow(d, n)
		if !ok {
			continue
		}
		e, err := n.Energy(w)
		if err != nil {
			continue
		}
		for _, p := range e.Parts {
			t.Add(n.Host, p.Of, p.Counter, p.Area, !p.Inside, p.Source)
		}
	}
	for _, f := range d.Figures { // whole-run figures, in addition to the nodes'
		if f.Name == measure.SlurmJoules {
			v := f.Value
			t.Add("all", "whole nodes", &v, nil, false, f.Note)
		}
	}
	return t
}
