package predict

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// recipes are ways in which the samples to a target depend on the global batch, in units of one
// worker's batch. They were fixed before the fitted formulas were chosen.
var recipes = []struct {
	name string
	of   func(r *rand.Rand) func(batch float64) float64
}{
	{"hyperbola", func(r *rand.Rand) func(float64) float64 {
		critical := 4 * math.Exp(3*r.Float64())
		return func(b float64) float64 { return 1 + b/critical }
	}},
	{"bends early", func(r *rand.Rand) func(float64) float64 {
		critical, p := 4*math.Exp(3*r.Float64()), 0.5+0.5*r.Float64()
		return func(b float64) float64 { return math.Pow(1+math.Pow(b/critical, p), 1/p) }
	}},
	{"bends late", func(r *rand.Rand) func(float64) float64 {
		critical, p := 4*math.Exp(3*r.Float64()), 1+3*r.Float64()
		return func(b float64) float64 { return math.Pow(1+math.Pow(b/critical, p), 1/p) }
	}},
	{"root of the square", func(r *rand.Rand) func(float64) float64 {
		critical := 4 * math.Exp(3*r.Float64())
		return func(b float64) float64 { return math.Sqrt(1 + b*b/critical/critical) }
	}},
	{"steeper than linear", func(r *rand.Rand) func(float64) float64 {
		critical, p := 6*math.Exp(2*r.Float64()), 1.2+0.8*r.Float64()
		return func(b float64) float64 { return 1 + math.Pow(b/critical, p) }
	}},
	{"flatter than linear", func(r *rand.Rand) func(float64) float64 {
		critical, p := 4*math.Exp(3*r.Float64()), 0.5+0.4*r.Float64()
		return func(b float64) float64 { return 1 + math.Pow(b/critical, p) }
	}},
	{"none extra up to a batch", func(r *rand.Rand) func(float64) float64 {
		critical := 2 * math.Exp(3*r.Float64())
		return func(b float64) float64 { return max(1, b/critical) }
	}},
	{"falls, then rises", func(r *rand.Rand) func(float64) float64 {
		best, p := 2*math.Exp(1.5*r.Float64()), 0.3+0.5*r.Float64()
		return func(b float64) float64 { return math.Pow(best/b, p) + math.Pow(b/best, p) }
	}},
}

// For batches that were not measured, the true samples to the target are in at least 95 % of the
// intervals: between the measured batches, and at twice and four times the largest.
//
// With -short a tenth of the studies are played.
func TestTruthOfSamples(t *testing.T) {
	studies := 400
	if testing.Short() {
		studies /= 10
	}
	for i, recipe := range recipes {
		t.Run(recipe.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 2043))
			at := []float64{3, 6, 12, 32, 64}
			asked, given, inside := map[float64]int{}, map[float64]int{}, map[float64]int{}
			width := map[float64]float64{}
			for range studies {
				of, spread, n := recipe.of(r), 0.01*math.Exp(2.3*r.Float64()), 5+r.IntN(6)
				var runs []ToTarget
				for _, b := range []float64{1, 2, 4, 8, 16} {
					for range n {
						runs = append(runs, ToTarget{Batch: 32 * b, Samples: 1e6 * of(b) * math.Exp(spread*r.NormFloat64())})
					}
				}
				c, err := FitConvergence(runs, 0.95)
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range at {
					asked[b]++
					p, err := c.Predict(32 * b)
					var refusal *Refusal
					if errors.As(err, &refusal) {
						continue
					} else if err != nil {
						t.Fatal(err)
					}
					given[b]++
					width[b] += math.Log(p.High / p.Low)
					if truth := 1e6 * of(b); p.Low <= truth && truth <= p.High {
						inside[b]++
					}
				}
			}
			between, within := given[3]+given[6]+given[12], inside[3]+inside[6]+inside[12]
			share := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
			t.Logf("between: inside %.1f %% of %d; at 2 times: given %.0f %%, inside %.1f %%, width %.0f %%; at 4 times: given %.0f %%, inside %.1f %%, width %.0f %%",
				share(within, between), between, share(given[32], asked[32]), share(inside[32], given[32]), 100*width[32]/float64(max(1, given[32])),
				share(given[64], asked[64]), share(inside[64], given[64]), 100*width[64]/float64(max(1, given[64])))
			least := 0.95 - 3*math.Sqrt(0.05*0.95/float64(studies))
			if float64(within) < least*float64(between) || float64(inside[32]) < least*float64(given[32]) || float64(inside[64]) < least*float64(given[64]) {
				t.Error("inside in fewer than 95 %")
			}
		})
	}
}
