package summary

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// 4 workers train on 8 sequences of 128 tokens per step of 50 ms: 160 sequences/s, or 20480
// tokens/s, 5120 for each worker.
func TestTokens(t *testing.T) {
	in := Input{Kind: "train", Workers: 4, World: 4, Restarts: []int{0}, Device: "cpu",
		Figures: []metrics.Figure{{Name: measure.TokensPerSample, Value: 128, Unit: "tokens"}}}
	for i := range 200 {
		in.Steps = append(in.Steps, Step{Index: i, Duration: 0.05, Mean: 0.05, Samples: 8})
	}
	for rank := range 4 {
		in.Ranks = append(in.Ranks, Rank{Rank: rank, World: 4})
	}
	check := func(what string, in Input, want map[string]float64) {
		t.Helper()
		r := Summarize(in)
		for name, x := range want {
			if got, ok := r.Values[name]; ok != (x > 0) || math.Abs(got-x) > 1e-9*x {
				t.Errorf("%s: %s is %g, want %g", what, name, got, x)
			}
		}
		for _, m := range r.Reported {
			if what != "stated" && m.Name == measure.TokensPerSecond && m.Better != measure.Higher {
				t.Errorf("%s: %+v", what, m)
			}
		}
	}
	per := measure.TokensPerSecond + "_per_worker"
	check("sequences", in, map[string]float64{measure.Throughput: 160, measure.TokensPerSecond: 20480, per: 5120, measure.TokensPerGPU: 0})
	gpu := in
	gpu.Device = "gpu"
	check("GPUs", gpu, map[string]float64{measure.TokensPerSecond: 20480, per: 0, measure.TokensPerGPU: 5120})
	images := in
	images.Figures = nil
	check("images", images, map[string]float64{measure.Throughput: 160, measure.TokensPerSecond: 0})
	stated := in
	stated.Figures = append([]metrics.Figure{{Name: measure.TokensPerSecond, Value: 7, Unit: "tokens/s"}}, in.Figures...)
	check("stated", stated, map[string]float64{measure.TokensPerSecond: 7, per: 0})
	short := in
	short.Steps = in.Steps[:3]
	check("no steady state", short, map[string]float64{measure.TokensPerSecond: 0, per: 0})
	if r := Summarize(short); r.Why[measure.TokensPerSecond] == "" {
		t.Error("no reason why there are no tokens/s")
	}
}

// 64 samples/s of 2048 tokens are 131072 tokens/s, 16384 on each of 8 workers. The
// program's number of tokens per sample takes precedence over the study's.
func TestTokensOfASampleThatTheStudyDeclares(t *testing.T) {
	run := func(parameters map[string]any, more ...metrics.Figure) Outcome {
		figures := append(more, metrics.Figure{Name: measure.Throughput, Unit: "samples/s", Value: 64})
		return Summarize(Input{Kind: "train", Workers: 8, World: 8, Device: "gpu", Figures: figures, SampleTokens: SampleTokens(parameters)})
	}
	for want, parameters := range map[float64]map[string]any{
		131072: {"sample.tokens": int64(2048)},
		65536:  {"workload.sample": "sequence", "workload.sequence": int64(1024)},
		64:     {"workload.sample": "token"},
		0:      {"workload.sample": "image", "workload.sequence": int64(1024)},
	} {
		r := run(parameters)
		if r.Values[measure.TokensPerSecond] != want || r.Values[measure.TokensPerGPU] != want/8 {
			t.Errorf("%v: %v", parameters, r.Values)
		}
	}
	r := run(map[string]any{"workload.sample": "token"}, metrics.Figure{Name: measure.TokensPerSample, Unit: "tokens", Value: 256})
	if r.Values[measure.TokensPerSecond] != 64*256 || !strings.Contains(strings.Join(r.Warnings, "\n"), "the program reports 256 tokens per sample, the study 1 (") {
		t.Error(r.Values, r.Warnings)
	}
}

// 131072 tokens/s in a log give a throughput of 64 sequences/s of 2048 tokens, or of as many
// samples/s if a sample is a token. They give none if the sample is unknown, or if the log
// states a throughput.
func TestThroughputOfTokensThatALogStates(t *testing.T) {
	tokens := metrics.Figure{Name: measure.TokensPerSecond, Unit: "tokens/s", Value: 131072, Note: "of all"}
	for _, tt := range []struct {
		each    float64
		figures []metrics.Figure
		want    float64
		warning string
	}{
		{2048, []metrics.Figure{tokens}, 64, "throughput is stated by a log, not measured here: tokens_per_second over the 2048 tokens of a sample; of all"},
		{1, []metrics.Figure{tokens}, 131072, "throughput is stated by a log, not measured here: of all"},
		{0, []metrics.Figure{tokens}, 0, ""},
		{1, []metrics.Figure{tokens, tokens}, 0, ""}, // ambiguous
		{2048, []metrics.Figure{tokens, {Name: measure.Throughput, Unit: "samples/s", Value: 60}}, 60, "throughput is stated by a log, not measured here"},
	} {
		r := Summarize(Input{Kind: "train", Workers: 8, World: 8, Figures: tt.figures, SampleTokens: tt.each})
		if r.Values[measure.Throughput] != tt.want || (r.Why[measure.Throughput] == "") != (tt.want > 0) || !strings.Contains(strings.Join(r.Warnings, "\n"), tt.warning) {
			t.Errorf("%g tokens a sample, %d figures: %v, %q, %q", tt.each, len(tt.figures), r.Values, r.Why, r.Warnings)
		}
	}
}
