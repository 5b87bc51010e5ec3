package train

import (
	"errors"
	"fmt"
	"math"

	"github.com/scalebench/scalebench/launcher/study"
)

// A schedule gives the learning rate of each step. It rises linearly from the
// unscaled rate to the peak over the warm-up (Goyal et al. 2017, section 2.2),
// and then decays.
type schedule struct {
	start, peak float64
	warmup      float64 // steps
	decay       string
	drops       []int   // for "step": the milestones
	divisor     float64 // by which each drop divides the rate
	total       int     // for "cosine": steps in the whole run
}

func newSchedule(p study.Point, stepsPerEpoch int) (schedule, error) {
	t := p.Workload.Train
	s := schedule{start: t.LearningRate, peak: p.LearningRate, warmup: t.WarmupEpochs * float64(stepsPerEpoch), decay: t.Decay}
	switch {
	case !(s.peak > 0) || math.IsInf(s.peak, 0):
		return s, fmt.Errorf("learning_rate after scaling is %g; want a number above 0", s.peak)
	case !(s.start > 0) || math.IsInf(s.start, 0):
		return s, fmt.Errorf("workload.learning_rate is %g; want a number above 0", s.start)
	case !(t.WarmupEpochs >= 0):
		return s, fmt.Errorf("workload.warmup_epochs is %g; want 0 or more", t.WarmupEpochs)
	}
	switch s.decay {
	case "", "none":
	case "step":
		s.divisor = 1 / t.DecayFactor // for a factor of 0.1 it is exactly 10
		if t.DecayFactor == 0 {       // a point of a version without this key
			s.divisor = 10
		}
		for _, e := range t.DecayEpochs {
			s.drops = append(s.drops, e*stepsPerEpoch)
		}
	case "cosine":
		s.total = t.Epochs * stepsPerEpoch
		if s.total == 0 || (t.MaxSteps > 0 && t.MaxSteps < s.total) {
			s.total = t.MaxSteps
		}
		if s.total == 0 {
			return s, errors.New(`workload.decay = "cosine" needs to know where the run ends; give workload.epochs or workload.max_steps`)
		}
	default:
		return s, fmt.Errorf(`workload.decay is %q; want "none", "step" or "cosine"`, s.decay)
	}
	return s, nil
}

// at returns the learning rate of a step, 0-based over the whole run.
func (s schedule) at(step int) float64 {
	at := float64(step)
	if at < s.warmup {
		return s.start + (s.peak-s.start)*at/s.warmup
	}
	switch s.decay {
	case "step":
		rate := s.peak
		for _, drop := range s.drops {
			if step >= drop {
				rate /= s.divisor
			}
		}
		return rate
	case "cosine":
		// Half a cosine from the end of the warm-up to the end of the run
		// (Loshchilov and Hutter 2017, without restarts).
		done := min((at-s.warmup)/max(float64(s.total)-s.warmup, 1), 1)
		return s.peak * (1 + math.Cos(math.Pi*done)) / 2
	}
	return s.peak
}
