package model

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// ToTarget is how many samples one run trained on until it reached the target.
type ToTarget struct {
	Batch   float64 // global, samples a step
	Samples float64
}

// Convergence is how many samples a target takes by global batch,
// E(B) = E_min·(1 + B/B_c) (McCandlish et al. 2018; steps are E/B). The batches
// all ran with the study's own recipe, so it holds for that recipe (Shallue et
// al. 2019 show how much retuning for each batch changes).
type Convergence struct {
	Least float64 // E_min, samples
	// Critical is the batch, in samples, at which a target takes twice the
	// least; nil when no batch that was measured costs extra samples, and with
	// one batch only.
	Critical *float64

	level    float64
	a, b     float64 // samples = a + b·batch
	runs     int
	batches  []float64 // measured, ascending
	sigma    float64   // relative, of a run; 0 with one run
	dof      int
	aa       [3]float64 // (AᵀA)⁻¹ of the weighted design: aa, ab, bb
	perBatch map[float64][]float64
}

// Samples is a prediction of samples to the target and its interval; the
// interval is NaN where there are too few runs for one.
type Samples struct {
	Value, Low, High float64
}

// FitConvergence fits the law to runs, by relative least squares with both
// coefficients non-negative. Level is that of the intervals.
func FitConvergence(runs []ToTarget, level float64) (*Convergence, error) {
	c := &Convergence{level: level, runs: len(runs), perBatch: map[float64][]float64{}}
	if len(runs) == 0 {
		return nil, &Refusal{Why: "no run reached the target"}
	}
	for _, r := range runs {
		if !(r.Batch > 0) || !(r.Samples > 0) || math.IsInf(r.Batch, 1) || math.IsInf(r.Samples, 1) {
			return nil, fmt.Errorf("a run with a batch of %g that took %g samples cannot be", r.Batch, r.Samples)
		}
		if c.perBatch[r.Batch] == nil {
			c.batches = append(c.batches, r.Batch)
		}
		c.perBatch[r.Batch] = append(c.perBatch[r.Batch], r.Samples)
	}
	slices.Sort(c.batches)
	// Weighted normal equations of samples = a + b·batch, each run divided by
	// its own samples.
	var s11, s1b, sbb, y1, yb float64
	for _, r := range runs {
		u, v := 1/r.Samples, r.Batch/r.Samples
		s11, s1b, sbb = s11+u*u, s1b+u*v, sbb+v*v
		y1, yb = y1+u, yb+v
	}
	slope := false
	if det := s11*sbb - s1b*s1b; len(c.batches) > 1 && det > 0 {
		a, b := (y1*sbb-yb*s1b)/det, (yb*s11-y1*s1b)/det
		switch {
		case b > 0 && a > 0:
			c.a, c.b, slope = a, b, true
			c.aa = [3]float64{sbb / det, -s1b / det, s11 / det}
		case b > 0: // a target that takes as many steps whatever the batch
			c.b, slope = yb/sbb, true
			c.aa = [3]float64{0, 0, 1 / sbb}
		}
	}
	if !slope {
		c.a = y1 / s11
		c.aa = [3]float64{1 / s11, 0, 0}
	}
	c.Least = c.a
	parameters := 1
	if c.a > 0 && c.b > 0 {
		parameters = 2
		critical := c.a / c.b
		c.Critical = &critical
	}
	c.dof = len(runs) - parameters
	if c.dof > 0 {
		var rss float64
		for _, r := range runs {
			e := (c.a+c.b*r.Batch)/r.Samples - 1
			rss += e * e
		}
		c.sigma = math.Sqrt(rss / float64(c.dof))
	}
	return c, nil
}

// Scatter is the standard deviation of a run's samples about the law, relative to
// them; 0 with one run.
func (c *Convergence) Scatter() float64 { return c.sigma }

// Batches are the measured global batches, ascending.
func (c *Convergence) Batches() []float64 { return c.batches }

// Predict is how many samples the target takes at a global batch. A measured
// batch has the mean of its own runs. Others are refused with one batch only,
// and beyond 4 times the largest.
func (c *Convergence) Predict(batch float64) (Samples, error) {
	if own := c.perBatch[batch]; own != nil {
		return ownSamples(own, c.level), nil
	}
	largest := c.batches[len(c.batches)-1]
	switch {
	case !(batch > 0):
		return Samples{}, fmt.Errorf("a batch of %g; give 1 or more", batch)
	case len(c.batches) < 2:
		return Samples{}, &Refusal{Why: fmt.Sprintf("all runs that reached the target had a global batch of %g, which says nothing of %g", largest, batch)}
	case batch > Farthest*largest:
		return Samples{}, &Refusal{Why: fmt.Sprintf("a global batch of %g is more than %d times the largest that reached the target, %g", batch, Farthest, largest)}
	}
	s := Samples{Value: c.a + c.b*batch, Low: math.NaN(), High: math.NaN()}
	if c.dof > 0 {
		se := c.sigma * math.Sqrt(c.aa[0]+2*c.aa[1]*batch+c.aa[2]*batch*batch)
		half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(c.dof)}.Quantile((1+c.level)/2) * se
		s.Low, s.High = max(s.Value-half, s.Value/10), s.Value+half
	}
	return s, nil
}

// ownSamples is the mean of a batch's own runs with its t interval.
func ownSamples(xs []float64, level float64) Samples {
	var mean, squares float64
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	s := Samples{Value: mean, Low: math.NaN(), High: math.NaN()}
	if n := float64(len(xs)); n > 1 {
		half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1+level)/2) * math.Sqrt(squares/(n-1)/n)
		s.Low, s.High = max(mean-half, mean/10), mean+half
	}
	return s
}
