package scaling

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// p-values by hand: if all of one sample is above the other, 2 of the C(2n, n) arrangements are as
// extreme.
func TestCompare(t *testing.T) {
	for _, tt := range []struct {
		name   string
		xs, ys []float64
		ratio  float64
		p      float64 // NaN: no p-value
		why    string
	}{
		{"apart", []float64{5, 6, 7, 8}, []float64{1, 2, 3, 4}, 6.5 / 2.5, 2.0 / 70, ""},
		{"apart, the other way", []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2.5 / 6.5, 2.0 / 70, ""},
		{"five a side", []float64{6, 7, 8, 9, 10}, []float64{1, 2, 3, 4, 5}, 8.0 / 3, 2.0 / 252, ""},
		{"one pair swapped", []float64{4, 6, 7, 8}, []float64{1, 2, 3, 5}, 6.5 / 2.5, 4.0 / 70, ""},
		{"too few", []float64{5, 6, 7}, []float64{1, 2, 3, 4}, 6 / 2.5, math.NaN(), "too few runs for a test (3 of 4 needed)"},
		{"alike", []float64{2, 2, 2, 2}, []float64{2, 2, 2, 2}, 1, math.NaN(), "same value"},
	} {
		c, err := Compare(tt.xs, tt.ys, 0)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if math.Abs(c.Ratio.Value-tt.ratio) > 1e-12 || !strings.Contains(c.WhyNoP, tt.why) || (c.P == nil) != math.IsNaN(tt.p) || c.P != nil && math.Abs(*c.P-tt.p) > 1e-12 {
			t.Errorf("%s: %+v, p %v; want ratio %g, p %g", tt.name, c, c.P, tt.ratio, tt.p)
		}
	}
	for name, xs := range map[string][]float64{"nothing": nil, "zero": {0}, "not a number": {math.NaN()}, "endless": {math.Inf(1)}} {
		if _, err := Compare(xs, []float64{1, 2, 3, 4}, 0); err == nil {
			t.Errorf("%s was compared", name)
		}
	}
	if _, err := Compare([]float64{1}, []float64{1}, 95); err == nil {
		t.Error("a confidence of 95 was taken")
	}
}

// For equal distributions, the test rejects no more often than its level. It detects a difference
// of three standard deviations.
func TestCompareRejects(t *testing.T) {
	const trials = 4000
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{6, 10, 20} {
		wrong, seen := 0, 0
		for range trials {
			xs, ys, zs := lognormal(r, n, 100, 0.1), lognormal(r, n, 100, 0.1), lognormal(r, n, 140, 0.1)
			if c, err := Compare(xs, ys, 0.95); err != nil {
				t.Fatal(err)
			} else if *c.P <= 0.05 {
				wrong++
			}
			if c, err := Compare(zs, ys, 0.95); err != nil {
				t.Fatal(err)
			} else if *c.P <= 0.05 {
				seen++
			}
		}
		if limit := 0.05 + 4*math.Sqrt(0.05*0.95/trials); float64(wrong) > limit*trials {
			t.Errorf("n = %d: equal samples differ in %d of %d trials", n, wrong, trials)
		}
		if seen < trials*95/100 {
			t.Errorf("n = %d: a difference of 40 %% is seen in %d of %d trials", n, seen, trials)
		}
	}
}
