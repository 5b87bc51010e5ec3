package scaling

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func newAnalysis(confidence float64) *analysis {
	return &analysis{confidence: confidence, tests: map[[2]int]cut{}}
}

// Ranks from tables of the sign test; levels are 1 − 2·Σ C(n,i)/2ⁿ, i < rank.
func TestMedianInterval(t *testing.T) {
	for _, tt := range []struct {
		n, low int // 1-based rank of the lower end; 0: no interval
		level  float64
	}{
		{1, 0, 0}, {5, 0, 0},
		{6, 1, 1 - 2.0/64},
		{8, 1, 1 - 2.0/256},
		{9, 2, 1 - 2*10.0/512},
		{10, 2, 1 - 2*11.0/1024},
		{20, 6, 1 - 2*21700.0/1048576}, // 1+20+190+1140+4845+15504
		{100, 40, 0.9647998},
	} {
		xs := make([]float64, tt.n)
		for i := range xs {
			xs[i] = float64(i + 1)
		}
		in, why := newAnalysis(0.95).medianInterval(xs)
		if tt.low == 0 {
			if in != nil || why == "" {
				t.Errorf("n = %d: interval %v, %q; want none and a reason", tt.n, in, why)
			}
			continue
		}
		if in == nil || in.Low != float64(tt.low) || in.High != float64(tt.n+1-tt.low) || math.Abs(in.Level-tt.level) > 1e-6 {
			t.Errorf("n = %d: %+v, want ranks %d to %d at %.7f", tt.n, in, tt.low, tt.n+1-tt.low, tt.level)
		}
	}
	if _, why := newAnalysis(0.99).medianInterval([]float64{1, 2, 3}); why != "insufficient runs for an interval (3 of 8)" {
		t.Errorf("99 %%: %q", why) // 2/2⁷ = 1.6 %, 2/2⁸ = 0.8 %
	}
}

// The rank is one more than the critical value in tables of the two-sided
// Mann–Whitney test at 0.05; levels are counted arrangements.
func TestMannWhitneyCut(t *testing.T) {
	for _, tt := range []struct {
		n, m, critical int
		level          float64 // 0: not checked
	}{
		{4, 4, 0, 1 - 2.0/70},
		{5, 5, 2, 1 - 8.0/252},
		{4, 8, 4, 0},
		{6, 6, 5, 0},
		{8, 8, 13, 0},
		{10, 10, 23, 0},
		{8, 20, 41, 0},
		{20, 20, 127, 0},
	} {
		c := mannWhitneyCut(tt.n, tt.m, 0.95)
		if c.rank != tt.critical+1 || c.level < 0.95 || tt.level != 0 && math.Abs(c.level-tt.level) > 1e-12 {
			t.Errorf("%d × %d: %+v, want rank %d", tt.n, tt.m, c, tt.critical+1)
		}
		if r := mannWhitneyCut(tt.m, tt.n, 0.95); r.rank != c.rank {
			t.Errorf("%d × %d: rank %d, mirrored %d", tt.n, tt.m, c.rank, r.rank)
		}
	}
	// Where the exact distribution hands over to the normal one, the rank does
	// not jump: neighbouring sizes add about as many arrangements.
	before, at, after := mannWhitneyCut(49, 50, 0.95).rank, mannWhitneyCut(50, 50, 0.95).rank, mannWhitneyCut(51, 50, 0.95).rank
	if step := at - before; after-at < step-1 || after-at > step+1 {
		t.Errorf("ranks %d, %d, %d across the hand-over", before, at, after)
	}
	for confidence, want := range map[float64]int{0.9: 3, 0.95: 4, 0.99: 5} { // 2/C(2n,n) is 10, 2.9 and 0.8 %
		if got := minRatioRuns(alpha(confidence)); got != want {
			t.Errorf("%g: %d runs a side, want %d", confidence, got, want)
		}
		if c := mannWhitneyCut(want, want, confidence); c.rank != 1 {
			t.Errorf("%g: rank %d for the fewest runs, want 1", confidence, c.rank)
		}
	}
}

func TestRatioIntervalNeedsFour(t *testing.T) {
	an := newAnalysis(0.95)
	if in, why := an.ratioInterval([]float64{1, 2, 3}, []float64{1, 2, 3, 4, 5, 6, 7, 8}); in != nil || why != "insufficient runs for an interval (3 of 4)" {
		t.Errorf("%v, %q", in, why)
	}
	// 4 × 4 attains 95 % only with all ratios: 3/8 to 6/2.
	in, _ := an.ratioInterval([]float64{3, 4, 5, 6}, []float64{2, 4, 6, 8})
	if in == nil || in.Low != 3.0/8 || in.High != 3 {
		t.Errorf("%+v, want 0.375 to 3", in)
	}
}

// The intervals cover the truth as often as they say: within four standard
// errors of the level attained, for a skewed distribution. A one-rank error in
// either direction fails this.
func TestCoverage(t *testing.T) {
	const trials = 20000
	r := rand.New(rand.NewPCG(7, 8))
	an := newAnalysis(0.95)
	check := func(name string, n, covered int, level float64) {
		got := float64(covered) / trials
		if tolerance := 4 * math.Sqrt(level*(1-level)/trials); math.Abs(got-level) > tolerance || level < 0.95 {
			t.Errorf("%s, n = %d: covers %.4f, says %.4f (tolerance %.4f)", name, n, got, level, tolerance)
		}
	}
	sample := func(n int, median float64) []float64 {
		xs := lognormal(r, n, median, 0.3)
		slices.Sort(xs)
		return xs
	}
	for _, n := range []int{6, 10, 20} {
		covered, level := 0, 0.0
		for range trials {
			in, _ := an.medianInterval(sample(n, 100))
			level = in.Level
			if in.Low <= 100 && 100 <= in.High {
				covered++
			}
		}
		check("median", n, covered, level)
	}
	for _, n := range []int{5, 6, 10, 20} {
		covered, level := 0, 0.0
		for range trials {
			in, _ := an.ratioInterval(sample(n, 180), sample(n, 100))
			level = in.Level
			if in.Low <= 1.8 && 1.8 <= in.High {
				covered++
			}
		}
		check("speedup", n, covered, level)
	}
}
