package metrics

// Gradients is how large the gradients of an epoch's steps were on one rank, for
// the gradient noise scale. Every rank writes its own, after the epoch or the
// part of it that it trained, so that nothing needs to be sent between ranks; a
// run of one rank, or one whose ranks have no gradient of their own, writes
// none.
//
// Gradients are those of the mean loss with respect to all trainable
// parameters, before momentum and weight decay. Own is of the loss over the
// samples that this rank had in the step, Averaged of the loss over those of all
// ranks, and so the same on every rank. Both are squared 2-norms, averaged over
// each block of steps: those of an epoch that were looked at, in their order.
type Gradients struct {
	Epoch         int       `json:"epoch"`          // 1-based, that the steps belong to
	Step          int       `json:"step"`           // steps done so far
	Samples       int       `json:"samples"`        // of a step, on this rank
	GlobalSamples int       `json:"global_samples"` // of a step, over all ranks
	Steps         []int     `json:"steps"`          // looked at, in each block
	Own           []float64 `json:"own"`            // mean squared norm in each block
	Averaged      []float64 `json:"averaged"`       // likewise
}

// Taking norms costs two passes over the gradient, which in a small model's step
// can be felt. Of an epoch with many steps only every eighth is looked at, and of
// others as many as give about gradientBlocks.
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

// NewGradientSums is for epochs of so many steps, and steps of so many samples
// on this rank and over all.
func NewGradientSums(stepsPerEpoch, samples, globalSamples int) *GradientSums {
	every := min(max(stepsPerEpoch/gradientBlocks, 1), gradientsEvery)
	return &GradientSums{
		every:    every,
		perBlock: max(1, stepsPerEpoch/every/gradientBlocks),
		of:       Gradients{Samples: samples, GlobalSamples: globalSamples},
	}
}

// Every is how many steps there are to each one whose norms are to be taken. The
// same steps on all ranks.
func (s *GradientSums) Every() int { return s.every }

// Add takes a step's squared norms.
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

// Take returns the event of the steps added so far, which belong to that epoch,
// and begins anew; nil when there were none, or when a norm was no number: such
// a training has diverged, and says so elsewhere.
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
