package summary

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/number"
)

// This file estimates the simple gradient noise scale of a training: the batch size,
// in samples, at which the noise in a step's gradient equals the gradient. Up to about
// this size, a larger batch saves steps in proportion; far beyond it, hardly any.
//
// B_simple = tr(Σ) / |G|²
//
// G is the gradient of the loss over all data and Σ the covariance of single-sample
// gradients (McCandlish, Kaplan, Amodei et al., "An Empirical Model of Large-Batch
// Training", 2018). Data-parallel training computes both inputs anyway: each rank's
// small-batch gradient, and their average, the large-batch gradient (appendix A.1).
//
// The caller decides which steps belong together and whether a program's gradients
// satisfy the formulas.

// NoiseScaleLevel is the confidence level of the intervals.
const NoiseScaleLevel = 0.95

// minNoiseBlocks is the number of blocks that an interval needs. With fewer, the scatter of the
// blocks cannot be estimated well enough.
const minNoiseBlocks = 6

// A NoiseBlock holds mean squared norms over neighbouring steps. Blocks reduce an epoch of any
// length to a few numbers, and remove most of the dependence between neighbouring steps.
type NoiseBlock struct {
	Steps int     // number of steps averaged
	Small float64 // mean |g|² over small batches
	Large float64 // mean |g|² of the large batch that they form
}

// A NoiseScaleEstimate is the noise scale over some steps.
type NoiseScaleEstimate struct {
	// Samples is B_simple; nil if the noise or the gradient cannot be distinguished from 0 (see
	// Why).
	Samples *float64
	// Low and High are the ends of the interval for Samples. If only High is nil, there is no
	// upper bound, because the gradient may be 0 within its error. Without an interval, both are
	// nil and Why gives the reason.
	Low, High *float64
	Why       string // "" if Samples and both ends are known

	// GradientSquared and Noise are the estimates of |G|² and tr(Σ), in the squared
	// unit of the loss per parameter. As unbiased estimates, they may be negative if
	// the true value is near 0.
	GradientSquared, Noise float64
	Steps                  int
}

// EstimateNoiseScale estimates the noise scale from blocks of steps with batches of small and
// large samples. For every step (McCandlish et al., A.1)
//
//	|G|²  ≈ (large·|g_large|² − small·|g_small|²) / (large − small)
//	tr(Σ) ≈ (|g_small|² − |g_large|²) / (1/small − 1/large)
//
// are unbiased. Both are averaged over the steps before the ratio is taken: the ratio of
// one step's estimates is biased and, because its denominator may be near 0, has infinite
// variance.
//
// The interval is Fieller's for a ratio of means (1954), over the blocks: the values R for
// which the sum of tr(Σ) − R·|G|² does not differ from 0 by more than Student's t allows.
// Unlike a jackknife interval, it is also valid if |G|² is hardly larger than its error; it
// then has no upper end. Changes over the steps count as scatter and widen it.
func EstimateNoiseScale(blocks []NoiseBlock, small, large int) (NoiseScaleEstimate, error) {
	var e NoiseScaleEstimate
	switch {
	case len(blocks) == 0:
		return e, errors.New("no steps to estimate a noise scale from")
	case small < 1 || large <= small:
		return e, fmt.Errorf("batches of %d and %d samples; want two sizes, the smaller 1 or more", small, large)
	}
	b, l := float64(small), float64(large)
	// Sums over the steps of each block: u of tr(Σ), v of |G|².
	u, v := make([]float64, len(blocks)), make([]float64, len(blocks))
	var sumU, sumV float64
	for i, block := range blocks {
		if block.Steps < 1 || !(block.Small >= 0) || !(block.Large >= 0) {
			return e, fmt.Errorf("block %d: %d steps with mean squared norms of %g and %g; want 1 step or more, and norms that are not negative", i, block.Steps, block.Small, block.Large)
		}
		n := float64(block.Steps)
		u[i] = n * (block.Small - block.Large) / (1/b - 1/l)
		v[i] = n * (l*block.Large - b*block.Small) / (l - b)
		sumU, sumV = sumU+u[i], sumV+v[i]
		e.Steps += block.Steps
	}
	e.Noise, e.GradientSquared = sumU/float64(e.Steps), sumV/float64(e.Steps)
	if math.IsInf(e.Noise, 0) || math.IsInf(e.GradientSquared, 0) || math.IsNaN(e.Noise+e.GradientSquared) {
		return NoiseScaleEstimate{}, errors.New("the squared norms of the gradients are too large to compute with")
	}
	switch {
	case e.GradientSquared <= 0:
		e.Why = fmt.Sprintf("over %s the gradient cannot be distinguished from its noise", number.Count(int(e.Steps), "step"))
	case e.Noise < 0:
		e.Why = fmt.Sprintf("over %s the gradient shows no noise", number.Count(int(e.Steps), "step"))
	default:
		e.Samples = knownNoise(sumU / sumV)
	}
	if len(blocks) < minNoiseBlocks {
		if e.Why == "" {
			e.Why = fmt.Sprintf("an interval needs %d blocks of steps; there are %d", minNoiseBlocks, len(blocks))
		}
		return e, nil
	}
	e.Low, e.High = fieller(u, v)
	if e.Why == "" && e.High == nil {
		e.Why = fmt.Sprintf("over %s the gradient is barely larger than its error, so there is no upper bound", number.Count(int(e.Steps), "step"))
	}
	return e, nil
}

// fieller returns the interval for the ratio of the expectations of the paired u and v. A
// nil end means 0 below, or no bound above.
//
// (U − R·V)² ≤ t²·var(U − R·V) is a quadratic inequality in R:
//
//	(V² − t²·vv)·R² − 2·(U·V − t²·uv)·R + (U² − t²·uu) ≤ 0
func fieller(u, v []float64) (low, high *float64) {
	n := float64(len(u))
	// Divide by the largest entry, so that no square overflows.
	unitU, unitV := unit(u), unit(v)
	var sumU, sumV float64
	for i := range u {
		sumU, sumV = sumU+u[i]/unitU, sumV+v[i]/unitV
	}
	var uu, uv, vv float64 // variances and covariance of the sums
	for i := range u {
		du, dv := u[i]/unitU-sumU/n, v[i]/unitV-sumV/n
		uu, uv, vv = uu+du*du, uv+du*dv, vv+dv*dv
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 + NoiseScaleLevel) / 2)
	factor := t * t * n / (n - 1)
	a, h, c := sumV*sumV-factor*vv, sumU*sumV-factor*uv, sumU*sumU-factor*uu
	root := math.Sqrt(max(h*h-a*c, 0))
	scale := unitU / unitV
	switch {
	case a > 0 && sumV > 0: // the gradient is significant
		low, high = knownNoise(max((h-root)/a, 0)*scale), knownNoise(max((h+root)/a, 0)*scale)
	case a < 0 && c > 0 && sumU > 0:
		// The noise is significant, but not the gradient. The interval has no upper end: it
		// includes everything above the positive root. It also includes negative values,
		// which a noise scale cannot have.
		low = knownNoise(max((h-root)/a, (h+root)/a) * scale)
	}
	return low, high
}

// unit returns the largest absolute value in x; 1 if all are 0.
func unit(x []float64) float64 {
	var largest float64
	for _, v := range x {
		largest = max(largest, math.Abs(v))
	}
	if largest == 0 {
		return 1
	}
	return largest
}

func knownNoise(v float64) *float64 { return &v }
