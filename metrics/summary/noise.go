package summary

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// RankGradients holds the gradient norms that one rank recorded in an epoch.
type RankGradients struct {
	Rank int
	metrics.Gradients
}

// A NoiseScale is the gradient noise scale over one epoch, or over the part of it that
// was trained.
type NoiseScale struct {
	Epoch       int // 1-based
	Step        int // steps done by its end
	Batch       int // samples in a rank's gradient
	GlobalBatch int // samples in the averaged gradient
	NoiseScaleEstimate
}

// sameNorm is the largest relative difference that is allowed between the ranks' norms of the
// averaged gradient. The gradient is the same on all ranks; only the order of summation differs.
const sameNorm = 1e-4

// noise computes the gradient noise scale of each epoch. It uses the mean of the ranks' squared
// gradient norms, which estimates the norm for the small batch more precisely than a single rank's.
func (r *Outcome) noise(in Input) {
	if len(in.Gradients) == 0 {
		r.NoiseScaleWhy = noNoiseScale(in)
		return
	}
	for from := 0; from < len(in.Gradients); {
		to := from + 1
		for to < len(in.Gradients) && in.Gradients[to].Epoch == in.Gradients[from].Epoch {
			to++
		}
		ranks := in.Gradients[from:to]
		from = to
		first := ranks[0]
		scale := NoiseScale{Epoch: first.Epoch, Step: first.Step, Batch: first.Samples, GlobalBatch: first.GlobalSamples}
		blocks, err := together(ranks, in.World)
		if err == nil {
			scale.NoiseScaleEstimate, err = EstimateNoiseScale(blocks, scale.Batch, scale.GlobalBatch)
		}
		if err != nil {
			r.warn("no gradient noise scale for epoch %d: %v", first.Epoch, err)
			scale.NoiseScaleEstimate = NoiseScaleEstimate{Why: err.Error()}
		}
		r.NoiseScales = append(r.NoiseScales, scale)
		if scale.Samples != nil {
			r.Values[measure.NoiseScale] = *scale.Samples
		}
	}
}

// noNoiseScale returns the reason why no rank recorded its gradients; "" if no rank recorded
// anything.
func noNoiseScale(in Input) string {
	switch {
	case len(in.Ranks) == 0:
		return ""
	case len(in.Steps) == 0:
		return "no training step was recorded"
	case in.World == 1:
		return "it compares gradients of two batch sizes, and one worker has only one"
	case in.BatchNorm == "sync":
		return "with synchronised batch norm, no rank has a gradient that depends only on its own samples"
	}
	return "the program did not record the norms of its gradients"
}

// together merges the blocks of an epoch that the ranks recorded.
func together(ranks []RankGradients, world int) ([]NoiseBlock, error) {
	first := &ranks[0]
	if len(ranks) != world {
		return nil, fmt.Errorf("only %d of %s recorded the norms of their gradients", len(ranks), number.Count(world, "rank"))
	}
	blocks := make([]NoiseBlock, len(first.Steps))
	for i := range ranks {
		g := &ranks[i]
		switch {
		case i > 0 && g.Rank == ranks[i-1].Rank:
			return nil, fmt.Errorf("rank %d recorded the norms of its gradients twice", g.Rank)
		case g.Samples != first.Samples || g.GlobalSamples != first.GlobalSamples || !slices.Equal(g.Steps, first.Steps):
			return nil, fmt.Errorf("ranks %d and %d recorded gradients of different steps or batches", first.Rank, g.Rank)
		}
		for k := range blocks {
			a, b := g.Averaged[k], first.Averaged[k]
			if math.Abs(a-b) > sameNorm*max(a, b) {
				return nil, fmt.Errorf("ranks %d and %d differ in the norm of the averaged gradient (%g and %g): they did not train one model", first.Rank, g.Rank, math.Sqrt(b), math.Sqrt(a))
			}
			blocks[k].Steps = g.Steps[k]
			blocks[k].Small += g.Own[k] / float64(world)
			blocks[k].Large += a / float64(world)
		}
	}
	return blocks, nil
}
