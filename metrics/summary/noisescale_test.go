package summary

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// gaussian draws steps of a training whose per-sample gradients are normal with
// mean g in every one of d dimensions and variance s in each, independent: |G|²
// = d·g², tr(Σ) = d·s. A step has ranks batches of small samples.
func gaussian(r *rand.Rand, blocks, perBlock, d, ranks, small int, g, s float64) []NoiseBlock {
	list := make([]NoiseBlock, blocks)
	for i := range list {
		list[i].Steps = perBlock
		for range perBlock {
			own := make([]float64, d)
			total := make([]float64, d)
			for range ranks {
				for k := range own {
					// The mean of small samples has variance s/small.
					own[k] = g + math.Sqrt(s/float64(small))*r.NormFloat64()
					total[k] += own[k] / float64(ranks)
				}
				list[i].Small += squared(own) / float64(perBlock*ranks)
			}
			list[i].Large += squared(total) / float64(perBlock)
		}
	}
	return list
}

func squared(x []float64) (sum float64) {
	for _, v := range x {
		sum += v * v
	}
	return sum
}

// With normal gradients of a known G and Σ the estimates are unbiased, and the
// interval holds the true value in 95 of 100 trainings: of 1000 within 4
// standard deviations of the binomial, 922 to 978.
func TestGaussianGradients(t *testing.T) {
	const d, small, trials = 10, 8, 1000
	for name, c := range map[string]struct {
		ranks int
		g, s  float64
	}{
		"two ranks, much noise":   {2, 0.1, 4}, // true noise scale: 400 samples
		"two ranks, little noise": {2, 1, 4},   // true noise scale: 4 samples
		"eight ranks":             {8, 0.2, 4}, // true noise scale: 100 samples
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			want := c.s / (c.g * c.g)
			var within int
			var noise, gradient, noise2, gradient2 float64
			for range trials {
				e, err := EstimateNoiseScale(gaussian(r, 20, 5, d, c.ranks, small, c.g, c.s), small, small*c.ranks)
				if err != nil {
					t.Fatal(err)
				}
				if e.Steps != 100 {
					t.Fatalf("%d steps, want 100", e.Steps)
				}
				if (e.Low == nil || *e.Low <= want) && (e.High == nil || want <= *e.High) {
					within++
				}
				noise, noise2 = noise+e.Noise, noise2+e.Noise*e.Noise
				gradient, gradient2 = gradient+e.GradientSquared, gradient2+e.GradientSquared*e.GradientSquared
			}
			if within < 922 || within > 978 {
				t.Errorf("the interval holds the true value in %d of %d trainings", within, trials)
			}
			unbiased := func(what string, sum, squares, want float64) {
				mean := sum / trials
				if se := math.Sqrt((squares/trials - mean*mean) / trials); math.Abs(mean-want) > 4*se {
					t.Errorf("%s is %g ± %g on average, want %g", what, mean, se, want)
				}
			}
			unbiased("tr(Σ)", noise, noise2, d*c.s)
			unbiased("|G|²", gradient, gradient2, d*c.g*c.g)
		})
	}
}

// By hand: batches of 2 and 4, mean squared norms 5 and 3 over 3 steps and 7 and
// 5 over 1. tr(Σ) = (5−3)/(1/2−1/4) = 8 in all of them; |G|² = (12−10)/2 = 1 in
// three and (20−14)/2 = 3 in one: 6/4 on average. 8/1.5 samples.
func TestByHand(t *testing.T) {
	e, err := EstimateNoiseScale([]NoiseBlock{{3, 5, 3}, {1, 7, 5}}, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	if e.Noise != 8 || e.GradientSquared != 1.5 || e.Samples == nil || math.Abs(*e.Samples-16.0/3) > 1e-12 || e.Steps != 4 {
		t.Errorf("%+v", e)
	}
	if e.Low != nil || e.High != nil || !strings.Contains(e.Why, "an interval needs 6 blocks of steps; there are 2") {
		t.Errorf("an interval from two blocks: %+v", e)
	}
}

// Six blocks whose tr(Σ) scatters and whose |G|² does not: the interval is that
// of the mean, by Student's t with 5 degrees of freedom (2.570582 at 97.5 %).
// tr(Σ) is 1…6 (batches of 1 and 2, so that the factor is 2), |G|² = 1: from
// 2·large − small = 1 and 2·(small − large) = k follow small = k+1, large = k/2+1.
func TestIntervalByHand(t *testing.T) {
	var blocks []NoiseBlock
	for k := 1.0; k <= 6; k++ {
		blocks = append(blocks, NoiseBlock{1, k + 1, k/2 + 1})
	}
	e, err := EstimateNoiseScale(blocks, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	half := 2.570582 * math.Sqrt(3.5/6) // variance of 1…6 is 3.5
	if e.Why != "" || *e.Samples != 3.5 || math.Abs(*e.Low-(3.5-half)) > 1e-5 || math.Abs(*e.High-(3.5+half)) > 1e-5 {
		t.Errorf("%g, %g to %g (%s), want 3.5 ± %g", *e.Samples, *e.Low, *e.High, e.Why, half)
	}
}

// If the gradient is lost in its noise, the noise scale is unknown; there is only a lower
// bound. The true value is infinite.
func TestGradientLostInNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var unbounded, without int
	for range 200 {
		e, err := EstimateNoiseScale(gaussian(r, 20, 5, 10, 2, 8, 0, 4), 8, 16)
		if err != nil {
			t.Fatal(err)
		}
		if e.High == nil {
			unbounded++
			if e.Why == "" {
				t.Fatalf("no reason for no upper bound: %+v", e)
			}
		}
		if (e.Samples == nil) != (e.GradientSquared <= 0) {
			t.Fatalf("%+v", e)
		}
		if e.Samples == nil {
			without++
		}
	}
	// With |G|² = 0, about half of the estimates are negative, and about 1 in 40 (half of 5
	// %) is significant.
	if unbounded < 180 || without < 60 || without > 140 {
		t.Errorf("of 200: %d without upper bound, %d without figure", unbounded, without)
	}
}

// Equal gradients on all ranks have no noise: 0, which is a measurement.
func TestNoNoise(t *testing.T) {
	blocks := make([]NoiseBlock, 8)
	for i := range blocks {
		blocks[i] = NoiseBlock{1, 2, 2}
	}
	e, err := EstimateNoiseScale(blocks, 4, 8)
	if err != nil {
		t.Fatal(err)
	}
	if e.Samples == nil || *e.Samples != 0 || *e.Low != 0 || *e.High != 0 || e.Why != "" {
		t.Errorf("%+v", e)
	}
}

func TestRefusals(t *testing.T) {
	good := []NoiseBlock{{1, 2, 1}}
	for name, c := range map[string]struct {
		blocks       []NoiseBlock
		small, large int
		want         string
	}{
		"no steps":      {nil, 1, 2, "no steps"},
		"one rank":      {good, 8, 8, "batches of 8 and 8 samples"},
		"no batch":      {good, 0, 8, "batches of 0 and 8"},
		"empty block":   {[]NoiseBlock{{0, 2, 1}}, 1, 2, "block 0: 0 steps"},
		"negative":      {[]NoiseBlock{{1, -2, 1}}, 1, 2, "block 0"},
		"not a number":  {[]NoiseBlock{{1, math.NaN(), 1}}, 1, 2, "block 0"},
		"infinite":      {[]NoiseBlock{{1, math.Inf(1), 1}}, 1, 2, "too large"},
		"sum overflows": {[]NoiseBlock{{1, math.MaxFloat64, 1}, {1, math.MaxFloat64, 1}}, 1, 2, "too large"},
	} {
		if _, err := EstimateNoiseScale(c.blocks, c.small, c.large); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// With eight blocks of u = 1 and v = ±1, whose sum is 0, the inequality is
// −t²·(8/7)·8·R² + 64 ≤ 0: all beyond R = 8/√(t²·64/7), with t = 2.364624 of 7 degrees
// of freedom. Without noise, no bound exists.
func TestLostGradientByHand(t *testing.T) {
	u, v := make([]float64, 8), make([]float64, 8)
	for i := range u {
		u[i], v[i] = 1, float64(1-2*(i%2))
	}
	want := math.Sqrt(7) / 2.364624
	if low, high := fieller(u, v); low == nil || math.Abs(*low/want-1) > 1e-5 || high != nil {
		t.Errorf("got %v and %v, want %g and no upper end", low, high, want)
	}
	for i := range u {
		u[i] = -1
	}
	if low, high := fieller(u, v); low != nil || high != nil {
		t.Errorf("less noise than none: got %v and %v, want neither", low, high)
	}
}
