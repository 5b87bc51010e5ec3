package metrics

// Gradients records squared gradient norms of one rank, from which the gradient noise scale is
// computed. Every rank writes its own after each epoch, or part of an epoch, so that no extra
// communication is needed. Runs with one rank write none, nor do programs whose ranks have no local
// gradient.
//
// The gradient is that of the mean loss with respect to all trainable parameters, before momentum
// and weight decay. Own comes from the samples of this rank in the step. Averaged comes from the
// samples of all ranks, and is therefore the same on every rank. Both are squared 2-norms, averaged
// over blocks of the sampled steps, in order.
type Gradients struct {
	Epoch         int       `json:"epoch"`          // 1-based epoch of the steps
	Step          int       `json:"step"`           // steps done so far
	Samples       int       `json:"samples"`        // per step on this rank
	GlobalSamples int       `json:"global_samples"` // per step over all ranks
	Steps         []int     `json:"steps"`          // number of sampled steps in each block
	Own           []float64 `json:"own"`            // mean squared norm of each block, own gradient
	Averaged      []float64 `json:"averaged"`       // the same for the averaged gradient
}

// Computing the norms takes two passes over the gradient, which slows small models down noticeably.
// So in long epochs only every eighth step is sampled, and in shorter ones as many as give about
// gradientBlocks blocks.
const (
	gradientBlocks = 20
	gradientsEvery = 8
)

// GradientSums adds up the squared norms of an epoch, step by step. The zero
// value is not usable; see NewGradientSums.
type GradientSums struct {
	every    int
	perBlock int
	of       Gradients
}

// NewGradientSums returns sums for epochs of the given number of steps; samples and globalSamples
// are those of a step, on this rank and on all ranks.
func NewGradientSums(stepsPerEpoch, samples, globalSamples int) *GradientSums {
	every := min(max(stepsPerEpoch/gradientBlocks, 1), gradientsEvery)
	return &GradientSums{
		every:    every,
		perBlock: max(1, stepsPerEpoch/every/gradientBlocks),
		of:       Gradients{Samples: samples, GlobalSamples: globalSamples},
	}
}

// Every returns the sampling interval: norms are computed at every Every-th step, at the same steps
// on all ranks.
func (s *GradientSums) Every() int { return s.every }

// Add adds the squared norms of one step.
func (s *GradientSums) Add(own, averaged float64) {
	g := &s.of
	n := len(g.Steps)
	if n == 0 || g.Steps[n-1] == s.perBlock {
		g.Steps, g.Own, g.Averaged = append(g.Steps, 0), append(g.Own, 0), append(g.Averaged, 0)
		n++
	}
	g.Steps[n-1]++
	g.Own[n-1] += own
	g.Averaged[n-1] += averaged
}

// Take returns the event for the steps added so far, which belong to the given epoch, and resets
// the sums. It returns nil if no steps were added, or if a norm is not finite: the training has
// then diverged, which is reported elsewhere.
func (s *GradientSums) Take(epoch, step int) *Gradients {
	g := s.of
	s.of = Gradients{Samples: g.Samples, GlobalSamples: g.GlobalSamples}
	g.Epoch, g.Step = epoch, step
	for i, n := range g.Steps {
		g.Own[i] /= float64(n)
		g.Averaged[i] /= float64(n)
	}
	if len(g.Steps) == 0 || g.validate() != nil {
		return nil
	}
	return &g
}
