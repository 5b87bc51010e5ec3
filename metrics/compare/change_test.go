package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// noise returns n values around mean with a standard deviation of 1.
func noise(rng *rand.Rand, n int, mean float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = mean + rng.NormFloat64()
	}
	return xs
}

// The expected energy statistic is computed by hand, pair by pair.
func TestSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		values := noise(rng, 8+rng.IntN(20), 0)
		best, want := math.Inf(-1), 0
		for at := shortest; at <= len(values)-shortest; at++ {
			mean := func(xs, ys []float64, same bool) float64 {
				sum, pairs := 0.0, 0.0
				for i, x := range xs {
					for j, y := range ys {
						if !same || i != j {
							sum += math.Abs(x - y)
							pairs++
						}
					}
				}
				return sum / pairs
			}
			x, y := values[:at], values[at:]
			n, m := float64(len(x)), float64(len(y))
			if e := n * m / (n + m) * (2*mean(x, y, false) - mean(x, x, true) - mean(y, y, true)); e > best+1e-12 {
				best, want = e, at
			}
		}
		if got := split(values); got != want {
			t.Errorf("split at %d, want %d of %v", got, want, values)
		}
	}
}

func TestChangesOfSpecialSequences(t *testing.T) {
	step := func(before, after int) []float64 {
		return slices.Concat(slices.Repeat([]float64{1}, before), slices.Repeat([]float64{2}, after))
	}
	for _, test := range []struct {
		name   string
		values []float64
		want   []int
	}{
		{"nothing", nil, nil},
		{"one", []float64{1}, nil},
		{"alike", slices.Repeat([]float64{3}, 60), nil},
		{"too few to tell: 2 of C(8,4) = 70 arrangements", step(4, 4), nil},
		{"2 of C(14,7) = 3432 arrangements", step(7, 7), []int{7}},
		{"far apart", step(200, 300), []int{200}},
		{"twice", slices.Concat(step(40, 40), step(40, 40)[:40]), []int{40, 80}},
	} {
		if diff := cmp.Diff(test.want, changePoints(test.values), cmp.Comparer(func(a, b []int) bool { return slices.Equal(a, b) })); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func BenchmarkChanges(b *testing.B) {
	values := noise(rand.New(rand.NewPCG(3, 4)), 100_000, 100)
	for b.Loop() {
		changePoints(values)
	}
}
