package advice

import (
	"math"
	"testing"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*max(1, math.Abs(want)) }

// Three runs of 10 s on 1, 2 and 4 workers spend 6, 4 and 4 s outside steps. The normal
// equations of a + b/n are [3 1.75; 1.75 1.3125]·[a b] = [14 9], so that a = 3 and
// b = 20/7; the residuals are 1/7, −3/7 and 2/7 s.
func TestOverheadLawByHand(t *testing.T) {
	runs := []runOverhead{{1, 6, 10}, {2, 4, 10}, {4, 4, 10}}
	counts := map[float64]bool{1: true, 2: true, 4: true}
	f := fitOverheadLaw(runs, counts, overheadShapes[0])
	for name, c := range map[string][2]float64{
		"a": {f.a, 3}, "b": {f.b, 20.0 / 7}, "misfit": {f.misfit, 3.0 / 70}, "squares": {f.squares, 14.0 / 4900},
		"sigma": {f.sigma, math.Sqrt(14.0 / 4900)}, "at 8": {f.at(8), 3 + 20.0/56},
		// The inverse of the normal matrix, whose weights are 1/100: its determinant is 0.875.
		"aa": {f.aa, 100 * 1.3125 / 0.875}, "ab": {f.ab, -100 * 1.75 / 0.875}, "bb": {f.bb, 100 * 3 / 0.875},
	} {
		if !near(c[0], c[1]) {
			t.Errorf("%s is %g, want %g", name, c[0], c[1])
		}
	}
	if f.dof != 1 {
		t.Errorf("%d degrees of freedom, want 1", f.dof)
	}
	// Two runs at one count: the constant part is their mean.
	f = fitOverheadLaw([]runOverhead{{4, 3, 10}, {4, 5, 10}}, map[float64]bool{4: true}, overheadShapes[0])
	if !near(f.a, 4) || f.b != 0 || f.misfit != 0 || f.dof != 1 || !near(f.sigma, math.Sqrt(0.02)) {
		t.Errorf("one count: %+v, want a = 4 and σ = 0.1·√2", f)
	}
	// For times that fall faster than 1/n, the constant part is 0: b = Σ(y/n)/Σ(1/n²).
	f = fitOverheadLaw([]runOverhead{{1, 8, 10}, {2, 2, 10}}, map[float64]bool{1: true, 2: true}, overheadShapes[0])
	if f.a != 0 || !near(f.b, 9/1.25) || f.aa != 0 || !near(f.bb, 100/1.25) {
		t.Errorf("falling fast: %+v, want b = 7.2 alone", f)
	}
	// For times that grow, the shared part is 0 and the constant part is their mean.
	f = fitOverheadLaw([]runOverhead{{1, 2, 10}, {2, 4, 10}}, map[float64]bool{1: true, 2: true}, overheadShapes[0])
	if !near(f.a, 3) || f.b != 0 || f.bb != 0 || !near(f.aa, 50) {
		t.Errorf("growing: %+v, want a = 3 alone", f)
	}
}

// Beyond the largest count, the interval contains both a constant time and a shared one.
func TestOverheadPrediction(t *testing.T) {
	none := fitOverhead(nil, 0.95)
	if e := none.predict(4, 100); e.Value != 0 || *e.Low != 0 || *e.High != 0 {
		t.Errorf("without runs: %+v, want 0", e)
	}
	// As many runs as coefficients: a value without an interval.
	two := fitOverhead([]runOverhead{{1, 6, 10}, {2, 5, 10}}, 0.95)
	if e := two.predict(4, 100); !near(e.Value, 4.5) || e.Low != nil || e.High != nil { // a = 4, b = 2
		t.Errorf("two runs: %+v, want 4.5 without an interval", e)
	}
	// Two runs of 3 and 5 s on one count: their mean has an error of 1 s, and t of one degree
	// of freedom is 12.7062.
	scattered := fitOverhead([]runOverhead{{4, 3, 10}, {4, 5, 10}}, 0.95)
	if e := scattered.predict(4, 100); !near(e.Value, 4) || *e.Low != 0 || math.Abs(*e.High-16.7062) > 1e-4 {
		t.Errorf("two runs of one count: %g [%g, %g], want 4 [0, 16.7062]", e.Value, *e.Low, *e.High)
	}
	// Without any scatter the interval at a measured count is a point.
	runs := []runOverhead{{1, 6, 10}, {1, 6, 10}, {2, 5, 10}, {2, 5, 10}}
	exact := fitOverhead(runs, 0.95)
	if e := exact.predict(2, 100); !near(e.Value, 5) || !near(*e.Low, 5) || !near(*e.High, 5) {
		t.Errorf("at a measured count: %g [%g, %g], want 5", e.Value, *e.Low, *e.High)
	}
	if e := exact.predict(4, 100); !near(e.Value, 4.5) || !near(*e.Low, 2.5) || !near(*e.High, 5) {
		t.Errorf("beyond: %g [%g, %g], want 4.5 [2.5, 5]", e.Value, *e.Low, *e.High)
	}
}

// Fisher's tests of tables whose probabilities are counted: 3 of 3 and 0 of 3 are 2 of
// 20 ways to choose 3 of 6; of tasting tea, 3 of 4 and 1 of 4, 34 of 70.
func TestFisher(t *testing.T) {
	for _, c := range []struct {
		k, n, l, m int
		want       float64
	}{{3, 3, 0, 3, 0.1}, {0, 3, 3, 3, 0.1}, {3, 4, 1, 4, 34.0 / 70}, {2, 4, 2, 4, 1}, {1, 1, 0, 3, 0.25}, {0, 5, 0, 2, 1}} {
		if got := fisher(c.k, c.n, c.l, c.m); !near(got, c.want) {
			t.Errorf("%d of %d and %d of %d: %g, want %g", c.k, c.n, c.l, c.m, got, c.want)
		}
	}
}
