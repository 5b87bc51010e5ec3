package summary

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// Each rank's supervisor reports how long its program ran, and the run took as long as the
// slowest. A log's statement counts only without these.
func TestRunSeconds(t *testing.T) {
	figure := func(seconds float64, file string) metrics.Figure {
		return metrics.Figure{Name: metrics.FigureRunSeconds, Value: seconds, Unit: "s", Better: "lower", File: file}
	}
	for _, test := range []struct {
		figures []metrics.Figure
		want    float64
		warned  bool
	}{
		{[]metrics.Figure{figure(2, ""), figure(3, ""), figure(2.5, "")}, 3, false},
		{[]metrics.Figure{figure(2, ""), figure(9, "x.log")}, 2, true},
		{[]metrics.Figure{figure(9, "x.log")}, 9, false},
	} {
		r := Summarize(Input{Kind: "train", Workers: 3, Figures: test.figures})
		if warned := strings.Contains(strings.Join(r.Warnings, "\n"), "run_seconds"); r.Values["run_seconds"] != test.want || warned != test.warned || len(r.Reported) > 0 {
			t.Errorf("%v: %v, %q, %v", test.figures, r.Values, r.Warnings, r.Reported)
		}
	}
}

// Stated figures replace results only if no step was recorded; two of the same kind give
// none.
func TestStatedFigures(t *testing.T) {
	spread := 4.9
	stated := metrics.Figure{Name: metrics.FigureThroughput, Value: 432.8, Unit: "samples/s", PlusMinus: &spread, PlusMinusIs: "1.96 σ", Note: "rank 0's rate times 4", File: "h.log", Line: 12}
	r := Summarize(Input{Kind: "train", Workers: 4, Figures: []metrics.Figure{stated,
		{Name: metrics.FigureThroughput, Value: 9, Unit: "samples/s", At: map[string]any{"epoch": 1.0}},
		{Name: metrics.FigureEndToEnd, Value: 400, Unit: "samples/s"}, {Name: metrics.FigureTrainSeconds, Value: 60, Unit: "s"}}})
	if r.Values["throughput"] != 432.8 || r.Why["throughput"] != "" || r.Values["end_to_end"] != 400 || r.Values["train_seconds"] != 60 {
		t.Errorf("%+v", r)
	}
	if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, "throughput is stated by a log, not measured here: rank 0's rate times 4; its ± is 1.96 σ") {
		t.Error(all)
	}
	other := stated
	other.Line, other.Value = 20, 1
	r = Summarize(Input{Kind: "train", Workers: 4, Figures: []metrics.Figure{stated, other}})
	if r.Known("throughput") != nil || !strings.Contains(r.Why["throughput"], "the logs state 2 values, the first at h.log:12 and h.log:20") {
		t.Errorf("%v, why %q", r.Values, r.Why)
	}
	in := Input{Kind: "train", Workers: 1, Figures: []metrics.Figure{stated}}
	for i := range 20 {
		in.Steps = append(in.Steps, Step{Index: i, Duration: 1, Mean: 1, Samples: 8})
	}
	in.Ranks = []Rank{{}}
	if r = Summarize(in); r.Values["throughput"] != 8 {
		t.Errorf("throughput %v, where steps of 8 samples last a second", r.Values)
	}
	stated.Unit = "tokens/s"
	if r = Summarize(Input{Kind: "train", Figures: []metrics.Figure{stated}}); r.Known("throughput") != nil || r.Reported != nil {
		t.Error("tokens/s were taken for samples/s")
	}
}

// The program's own target is reached, missed or unknown. If a log states both, it is
// unknown.
func TestProgramsOwnTarget(t *testing.T) {
	reached := metrics.Figure{Name: metrics.FigureToTarget, Value: 365, Unit: "s"}
	missed := metrics.Figure{Name: metrics.FigureMissedTarget, Value: 400, Unit: "s"}
	for _, tt := range []struct {
		name    string
		figures []metrics.Figure
		want    map[string]float64
	}{
		{"reached", []metrics.Figure{reached}, map[string]float64{"to_target": 365}},
		{"missed", []metrics.Figure{missed}, map[string]float64{"to_target": math.Inf(1)}},
		{"both", []metrics.Figure{reached, missed}, map[string]float64{}},
		{"neither", nil, map[string]float64{}},
		{"of an epoch", []metrics.Figure{{Name: metrics.FigureToTarget, Value: 9, Unit: "s", At: map[string]any{"epoch": 1.0}}}, map[string]float64{}},
	} {
		r := Summarize(Input{Kind: "train", Workers: 4, Figures: tt.figures})
		if diff := cmp.Diff(tt.want, r.Values); diff != "" || r.Reported != nil {
			t.Errorf("%s: %s, reported %v", tt.name, diff, r.Reported)
		}
	}
}

// A target that an evaluation reached is not a miss just because the time is unknown.
func TestReachedWithoutAClock(t *testing.T) {
	r := Summarize(Input{Kind: "train", Workers: 1, Targets: []measure.Target{measure.Accuracy(0.7), measure.Accuracy(0.9)}, Ranks: []Rank{{}},
		Evaluations: []Evaluation{{Epoch: 1, Accuracy: 0.8}}})
	_, known := r.Values["to_0.7"]
	if known || !strings.Contains(r.Why["to_0.7"], "no training clock") || !math.IsInf(r.Values["to_0.9"], 1) {
		t.Errorf("%v, why %q", r.Values, r.Why)
	}
}

// A figure of the whole run becomes a measure with its name and unit. Figures of epochs, and
// figures that are stated twice, do not.
func TestReportedFigures(t *testing.T) {
	r := Summarize(Input{Kind: "train", Figures: []metrics.Figure{
		{Name: "tokens_per_second", Value: 7, Unit: "tokens/s"},
		{Name: "perplexity", Value: 9, At: map[string]any{"epoch": 1.0}},
		{Name: "loss", Value: 1}, {Name: "loss", Value: 2, Unit: "nats"},
		{Name: "skew", Value: 1}}})
	want := []measure.Measure{measure.Reported("tokens_per_second", "tokens/s", measure.Neither), measure.Reported("loss", "", measure.Neither)}
	if diff := cmp.Diff(want, r.Reported); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]float64{"tokens_per_second": 7}, r.Values); diff != "" || !strings.Contains(r.Why["loss"], "the logs state 2 values") {
		t.Error(diff, r.Why)
	}
}
