package figure

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/sensitivity"
)

// The sufficient amount is ringed, a possible one thinly; an amount that ran out of memory
// is crossed out; words are columns.
func TestNeeds(t *testing.T) {
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	at := func(n float64) scaling.Value { return scaling.Value{Number: n} }
	level := func(v scaling.Value, ratio, low, high float64, verdict sensitivity.Verdict) sensitivity.Level {
		return sensitivity.Level{At: v, Ratio: &scaling.Estimate{Value: ratio, Runs: 6, Interval: &scaling.Interval{Low: low, High: high, Level: 0.97}}, Verdict: verdict, Runs: 6, Gains: []float64{low, high}}
	}
	full := func(v scaling.Value) sensitivity.Level {
		return sensitivity.Level{At: v, Verdict: sensitivity.Enough, Runs: 6, Gains: []float64{1}}
	}
	four, ssd := at(4), scaling.Value{Word: "ssd"}
	a := sensitivity.Answer{Series: "native", Measure: throughput, Epsilon: 0.05, Value: &scaling.Estimate{Value: 1000, Runs: 6}, Factors: []sensitivity.Factor{
		{Key: "resources.cpus_per_worker", Reference: at(8), Ordered: true, Enough: &four,
			Levels: []sensitivity.Level{full(at(8)), level(at(4), 0.99, 0.97, 1.01, sensitivity.Enough), level(at(2), 0.93, 0.9, 0.97, sensitivity.Undecided), {At: at(1), Verdict: sensitivity.TooLittle}}},
		{Key: "variant", Reference: ssd, Levels: []sensitivity.Level{level(scaling.Value{Word: "hdd"}, 0.5, 0.4, 0.6, sensitivity.TooLittle), full(ssd)}},
	}}
	f, err := Draw("needs", Data{Resources: []sensitivity.Answer{a}, Amount: func(_ string, v scaling.Value) string { return v.String() }}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rings := 0
	for _, m := range f.Marks() {
		// From left: 1, 2, 4 and 8 cores.
		if m.Kind == Bend {
			rings++
			if len(m.Points) != 2 || m.Points[0] != (XY{1, 0.93}) || m.Points[1] != (XY{2, 0.99}) {
				t.Errorf("rings at %v, want 2 cores (may be) and 4", m.Points)
			}
		}
		if m.Kind == Missed && m.Points[0].X != 0 {
			t.Errorf("memory ran out at %v, want the least", m.Points)
		}
	}
	if rings != 1 || count(f, Block) != 2 || count(f, Missed) != 1 || count(f, Line) != 1 || !strings.Contains(f.Caption(), "All of it: throughput 1000 samples/s (6 runs).") {
		t.Errorf("%d rings, %d columns, %d crosses, %d lines: %s", rings, count(f, Block), count(f, Missed), count(f, Line), f.Caption())
	}
	if _, err := Draw("needs", Data{}, Options{}); err == nil {
		t.Error("nothing was drawn")
	}
}
