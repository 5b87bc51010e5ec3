package summary

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// repeat returns n times v.
func repeat(n int, v float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = v
	}
	return list
}

func join(parts ...[]float64) []float64 {
	var all []float64
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestWarmup(t *testing.T) {
	ramp := make([]float64, 100)
	for i := range ramp {
		ramp[i] = float64(100 - i)
	}
	hiccup := repeat(200, 1)
	hiccup[140] = 1000
	tests := []struct {
		name      string
		durations []float64
		want      int
		why       string
	}{
		{"even", repeat(100, 0.05), 0, ""},
		{"one slow first step", join([]float64{30}, repeat(99, 0.05)), 1, ""},
		{"two slow first steps", join([]float64{30, 9}, repeat(98, 0.05)), 2, ""},
		// The first 20 steps are exactly four batches at another level.
		{"a slower start", join(repeat(20, 2), repeat(80, 1)), 20, ""},
		{"a faster start", join(repeat(20, 1), repeat(80, 2)), 20, ""},
		// 22: four batches and two steps, which the outer fence takes.
		{"a start that ends within a batch", join(repeat(22, 2), repeat(78, 1)), 22, ""},
		{"one late hiccup is not warm-up", hiccup, 0, ""},
		{"a change behind the middle", join(repeat(60, 2), repeat(40, 1)), 0, "still changing at step 60 of 100, by -50 %"},
		// 4 % is what a shared machine does: even enough, nothing to drop.
		{"a small drift behind the middle", join(repeat(60, 1.04), repeat(40, 1)), 0, ""},
		{"a small drift behind a slow start", join(repeat(20, 2), repeat(50, 1.04), repeat(30, 1)), 20, ""},
		{"ever faster", ramp, 0, "still changing"},
		{"nothing", nil, 0, "0 steps"},
		{"too few", repeat(9, 1), 0, "9 steps were reported by every rank, at least 10 are needed"},
		{"just enough", repeat(10, 1), 0, ""},
		{"too few behind the warm-up", join([]float64{9}, repeat(9, 1)), 0, "at least 10 others are needed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Warmup(test.durations)
			switch {
			case test.why == "" && err != nil:
				t.Fatalf("no steady state: %v", err)
			case test.why != "" && (err == nil || !strings.Contains(err.Error(), test.why)):
				t.Fatalf("error = %v, want one with %q", err, test.why)
			case got != test.want:
				t.Errorf("warm-up = %d steps, want %d", got, test.want)
			}
		})
	}
}

// An even run with noise must not lose its steady state by chance, nor much of
// its length. Bounds, not figures: 1 in 200 and a third of the steps.
func TestWarmupOfNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs, n = 400, 1000
	lost, dropped := 0, 0
	for range runs {
		x := make([]float64, n)
		for i := range x {
			x[i] = 0.05 * (1 + 0.02*rng.NormFloat64())
			if rng.IntN(200) == 0 {
				x[i] *= 5 // a hiccup now and then
			}
		}
		w, err := Warmup(x)
		if err != nil {
			lost++
		}
		dropped += w
	}
	if lost > runs/200 {
		t.Errorf("%d of %d even runs were said to have no steady state", lost, runs)
	}
	if mean := float64(dropped) / runs; mean > n/3 {
		t.Errorf("on average %.0f of %d even steps were dropped", mean, n)
	}
	t.Logf("lost %d of %d; dropped %.1f of %d on average", lost, runs, float64(dropped)/runs, n)
}

func FuzzWarmup(f *testing.F) {
	f.Add([]byte{200, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Fuzz(func(t *testing.T, data []byte) {
		x := make([]float64, len(data))
		for i, b := range data {
			x[i] = float64(b)
		}
		w, err := Warmup(x)
		if err == nil && (w < 0 || 2*w > len(x) || len(x)-w < minSteady) {
			t.Errorf("warm-up of %d in %d steps", w, len(x))
		}
	})
}
