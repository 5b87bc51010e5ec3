package summary

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
)

// gradientsOf returns the gradient norms of two ranks in one epoch: batches of 2 on each rank, 4 in total.
func gradientsOf(epoch int) []RankGradients {
	return []RankGradients{
		{0, metrics.Gradients{Epoch: epoch, Step: 4 * epoch, Samples: 2, GlobalSamples: 4, Steps: []int{3, 1}, Own: []float64{4, 8}, Averaged: []float64{3, 5}}},
		{1, metrics.Gradients{Epoch: epoch, Step: 4 * epoch, Samples: 2, GlobalSamples: 4, Steps: []int{3, 1}, Own: []float64{6, 6}, Averaged: []float64{3, 5}}},
	}
}

// The ranks' own norms are averaged: blocks of 5 and 3 over 3 steps, 7 and 5
// over 1. tr(Σ) = (5−3)/(1/2−1/4) = 8 in all steps; |G|² = (4·3−2·5)/2 = 1 in
// three and (4·5−2·7)/2 = 3 in one, 1.5 on average.
func TestNoiseScale(t *testing.T) {
	in := twoRanks()
	in.Gradients = append(gradientsOf(1), gradientsOf(2)...)
	r := Summarize(in)
	if len(r.NoiseScales) != 2 || r.NoiseScaleWhy != "" || r.Warnings != nil {
		t.Fatalf("%+v, %q, warnings %q", r.NoiseScales, r.NoiseScaleWhy, r.Warnings)
	}
	for i, s := range r.NoiseScales {
		if s.Epoch != i+1 || s.Step != 4*(i+1) || s.Batch != 2 || s.GlobalBatch != 4 || s.Steps != 4 ||
			s.Noise != 8 || s.GradientSquared != 1.5 || s.Samples == nil || *s.Samples < 5.333 || *s.Samples > 5.334 {
			t.Errorf("epoch %d: %+v", i+1, s)
		}
	}
}

// Records that cannot come from one run give no figure, and a warning that names them.
func TestNoiseScaleWarnings(t *testing.T) {
	for want, spoil := range map[string]func([]RankGradients) []RankGradients{
		"1 of 2 ranks recorded":               func(g []RankGradients) []RankGradients { return g[1:] },
		"rank 0 recorded the norms":           func(g []RankGradients) []RankGradients { g[1].Rank = 0; return g },
		"different steps or batches":          func(g []RankGradients) []RankGradients { g[1].Samples = 1; return g },
		"ranks 0 and 1 recorded gradients of": func(g []RankGradients) []RankGradients { g[1].Steps = []int{2, 2}; return g },
		"differ in the norm of the averaged":  func(g []RankGradients) []RankGradients { g[1].Averaged = []float64{3, 5.1}; return g },
		"too large to compute with": func(g []RankGradients) []RankGradients {
			g[0].Own = []float64{1e308, 1e308}
			g[1].Own = g[0].Own
			return g
		},
	} {
		in := twoRanks()
		in.Gradients = append(spoil(gradientsOf(1)), gradientsOf(2)...)
		r := Summarize(in)
		if len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], "no gradient noise scale for epoch 1: ") || !strings.Contains(r.Warnings[0], want) {
			t.Errorf("warnings %q, want %q", r.Warnings, want)
		}
		if len(r.NoiseScales) != 2 || r.NoiseScales[0].Samples != nil || r.NoiseScales[0].Why == "" || r.NoiseScales[1].Samples == nil {
			t.Errorf("%s: %+v", want, r.NoiseScales)
			continue
		}
		// The run's value is that of the last epoch with a value.
		if got := r.Known("noise_scale"); got == nil || *got != *r.NoiseScales[1].Samples {
			t.Errorf("%s: noise_scale is %v, want %g", want, got, *r.NoiseScales[1].Samples)
		}
	}
}

func TestNoNoiseScale(t *testing.T) {
	for want, change := range map[string]func(*Input){
		"the program did not record": func(in *Input) {},
		"one worker has only one":    func(in *Input) { in.World, in.Ranks = 1, in.Ranks[:1] },
		"synchronised batch norm":    func(in *Input) { in.BatchNorm = "sync" },
		"no training step":           func(in *Input) { in.Steps = nil },
	} {
		in := twoRanks()
		change(&in)
		if r := Summarize(in); !strings.Contains(r.NoiseScaleWhy, want) || r.NoiseScales != nil {
			t.Errorf("%q, want %q", r.NoiseScaleWhy, want)
		}
	}
}
