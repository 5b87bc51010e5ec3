package summary

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// Stated figures stand in for results where no step was recorded, and nowhere
// else; two of a kind give none.
func TestStatedFigures(t *testing.T) {
	spread := 4.9
	stated := metrics.Figure{Name: metrics.FigureThroughput, Value: 432.8, Unit: "samples/s", PlusMinus: &spread, PlusMinusIs: "1.96 σ", Note: "rank 0's rate times 4", File: "h.log", Line: 12}
	r := Summarize(Input{Workers: 4, Figures: []metrics.Figure{stated,
		{Name: metrics.FigureThroughput, Value: 9, Unit: "samples/s", At: map[string]any{"epoch": 1.0}},
		{Name: metrics.FigureEndToEnd, Value: 400, Unit: "samples/s"}, {Name: metrics.FigureTrainSeconds, Value: 60, Unit: "s"}}})
	if r.Throughput == nil || *r.Throughput != 432.8 || r.ThroughputWhy != "" || *r.EndToEnd != 400 || *r.TrainSeconds != 60 {
		t.Errorf("%+v", r)
	}
	if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, "stated at h.log:12, not measured here: rank 0's rate times 4; ±4.9 samples/s is 1.96 σ") {
		t.Error(all)
	}
	other := stated
	other.Line, other.Value = 20, 1
	r = Summarize(Input{Workers: 4, Figures: []metrics.Figure{stated, other}})
	if r.Throughput != nil || !strings.Contains(r.ThroughputWhy, "the logs state 2, at h.log:12 and h.log:20") {
		t.Errorf("throughput %v, why %q", r.Throughput, r.ThroughputWhy)
	}
	in := Input{Workers: 1, Figures: []metrics.Figure{stated}}
	for i := range 20 {
		in.Steps = append(in.Steps, Step{Index: i, Duration: 1, Mean: 1, Samples: 8})
	}
	in.Ranks = []Rank{{}}
	if r = Summarize(in); r.Throughput == nil || *r.Throughput != 8 {
		t.Errorf("throughput %v, where steps of 8 samples last a second", r.Throughput)
	}
	stated.Unit = "tokens/s"
	if r = Summarize(Input{Figures: []metrics.Figure{stated}}); r.Throughput != nil {
		t.Error("tokens/s were taken for samples/s")
	}
}
