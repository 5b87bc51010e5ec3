package summary

import (
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// 8192 tokens/s with 512 tokens per sample give 16 samples/s, if the log states them for the
// whole training and has neither a rate of samples nor steps.
func TestTokensBecomeSamplesOnlyOfAWholeTraining(t *testing.T) {
	stated := func(f metrics.Figure) Input {
		return Input{Kind: "train", Workers: 2, World: 2, Figures: []metrics.Figure{f}, SampleTokens: 512}
	}
	tokens := metrics.Figure{Name: measure.TokensPerSecond, Unit: "tokens/s", Value: 8192}
	for _, c := range []struct {
		name   string
		change func(in *Input)
		want   float64 // samples/s; 0 for no throughput
	}{
		{"as it is", func(*Input) {}, 16},
		{"one token a sample", func(in *Input) { in.SampleTokens = 1 }, 8192},
		{"less than a token a sample", func(in *Input) { in.SampleTokens = 0.5 }, 0},
		{"another unit", func(in *Input) { in.Figures[0].Unit = "ktok/s" }, 0},
		{"at a place", func(in *Input) { in.Figures[0].At = map[string]any{"epoch": 1.0} }, 0},
		{"a service", func(in *Input) { in.Kind = "serve" }, 0},
		{"a step, too few for a rate", func(in *Input) {
			in.Steps = []Step{{Duration: 0.05, Mean: 0.05, Samples: 8}}
		}, 0},
	} {
		in := stated(tokens)
		c.change(&in)
		got, known := Summarize(in).Values[measure.Throughput]
		if got != c.want || known != (c.want > 0) {
			t.Errorf("%s: %g samples/s (known: %v), want %g", c.name, got, known, c.want)
		}
	}
}

// 64 samples/s give 64 × 128 tokens/s if the program states 128 tokens per sample, in the unit
// tokens and for the whole run. The number must be at least 1.
func TestTokensOfASampleOfTheWholeRun(t *testing.T) {
	for _, c := range []struct {
		name string
		each metrics.Figure
		want float64
	}{
		{"128", metrics.Figure{Unit: "tokens", Value: 128}, 64 * 128},
		{"1", metrics.Figure{Unit: "tokens", Value: 1}, 64},
		{"less than 1", metrics.Figure{Unit: "tokens", Value: 0.5}, 0},
		{"another unit", metrics.Figure{Unit: "words", Value: 128}, 0},
		{"at a place", metrics.Figure{Unit: "tokens", Value: 128, At: map[string]any{"epoch": 1.0}}, 0},
	} {
		c.each.Name = measure.TokensPerSample
		r := Summarize(Input{Kind: "train", Workers: 2, World: 2, Figures: []metrics.Figure{{Name: measure.Throughput, Unit: "samples/s", Value: 64}, c.each}})
		if got := r.Values[measure.TokensPerSecond]; got != c.want {
			t.Errorf("%s: %g tokens/s, want %g", c.name, got, c.want)
		}
	}
}
