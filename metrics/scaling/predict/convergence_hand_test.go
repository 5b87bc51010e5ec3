package predict

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func close6(got, want float64) bool { return math.Abs(got-want) <= 1e-6*max(1, math.Abs(want)) }

func unity(float64) float64    { return 1 }
func itself(b float64) float64 { return b }

// The samples of two formulas by hand. Errors are relative to the samples, and each batch counts
// as often as it has runs.
func TestFitBatchLaw(t *testing.T) {
	for _, test := range []struct {
		name                  string
		batches               []measuredBatch
		second                func(float64) float64
		a, b, squares, misfit float64
	}{
		// 3 + 2·B at 1, 2 and 4.
		{"exact", []measuredBatch{{1, 5, 2}, {2, 7, 3}, {4, 11, 1}}, itself, 3, 2, 0, 0},
		// The line through both is 7 − 3·B. Growth cannot be negative: a alone is
		// (1/4 + 1)/(1/16 + 1) = 20/17; its relative errors are −12/17 and 3/17.
		{"falling", []measuredBatch{{1, 4, 1}, {2, 1, 1}}, itself, 20.0 / 17, 0, 153.0 / 289, math.Log(17.0 / 5)},
		// The line through both is −2 + 3·B. Without a constant, B/samples is 1 and 1/2:
		// b = 1.5/1.25 = 1.2; its relative errors are 0.2 and −0.4.
		{"steeper than the batch", []measuredBatch{{1, 1, 1}, {2, 4, 1}}, itself, 0, 1.2, 0.2, math.Log(1 / 0.6)},
		// The same with three runs at the second: b = (1 + 1.5)/(1 + 0.75).
		{"more runs", []measuredBatch{{1, 1, 1}, {2, 4, 3}}, itself, 0, 2.5 / 1.75, math.Pow(3.0/7, 2) + 3*math.Pow(2.0/7, 2), math.Log(10.0 / 7)},
		// A constant alone: (1/2 + 1/4)/(1/4 + 1/16) = 2.4; errors 0.2 and −0.4.
		{"one coefficient", []measuredBatch{{1, 2, 1}, {2, 4, 1}}, nil, 2.4, 0, 0.2, math.Log(1 / 0.6)},
	} {
		l, ok := fitBatchLaw(test.batches, unity, test.second)
		if !ok || !close6(l.a, test.a) || !close6(l.b, test.b) || !close6(l.squares, test.squares) || !close6(l.misfit, test.misfit) {
			t.Errorf("%s: %v, a %g, b %g, squares %g, misfit %g", test.name, ok, l.a, l.b, l.squares, l.misfit)
		}
	}
	// The covariance is the inverse of the normal equations, whose sums are by hand:
	// 1/samples² is 1/25, 1/49 and 1/121.
	l, _ := fitBatchLaw([]measuredBatch{{1, 5, 2}, {2, 7, 3}, {4, 11, 1}}, unity, itself)
	s11, s12, s22 := 2.0/25+3.0/49+1.0/121, 2.0/25+6.0/49+4.0/121, 2.0/25+12.0/49+16.0/121
	if !close6(l.aa*s11+l.ab*s12, 1) || !close6(l.aa*s12+l.ab*s22, 0) || !close6(l.ab*s12+l.bb*s22, 1) {
		t.Errorf("covariance %g %g %g", l.aa, l.ab, l.bb)
	}
	if _, ok := fitBatchLaw([]measuredBatch{{1, 5, 2}, {2, 7, 3}}, unity, unity); ok {
		t.Error("fitted two coefficients of one shape")
	}
	if _, ok := fitBatchLaw([]measuredBatch{{1, 5, 2}}, unity, itself); ok {
		t.Error("fitted two coefficients to one batch")
	}
}

// √(4·1 + 2·1·1·3 + 2·9) = √28, over 1·1 + 1·3.
func TestErrorOfBatchLaw(t *testing.T) {
	l := batchLaw{first: unity, second: itself, a: 1, b: 1, aa: 4, ab: 1, bb: 2}
	if got, want := l.error(3), math.Sqrt(28)/4; !close6(got, want) {
		t.Errorf("%g, want %g", got, want)
	}
	if l, _ := fitBatchLaw([]measuredBatch{{1, 2, 1}, {2, 4, 1}}, unity, nil); !close6(l.aa, 3.2) { // 1/(1/4 + 1/16)
		t.Errorf("variance %g of one coefficient", l.aa)
	}
	l = batchLaw{first: itself, a: 2, aa: 9}
	if got, want := l.error(5), 15.0/10; !close6(got, want) { // √(9·25)/(2·5)
		t.Errorf("one coefficient: %g, want %g", got, want)
	}
}

// The value is the median by weight; the interval spans those of all formulas. Four runs have two
// degrees of freedom, where Student's 97.5 % quantile is 4.30265.
func TestCarry(t *testing.T) {
	law := func(a, weight float64) batchLaw {
		return batchLaw{first: unity, a: a, aa: a * a / 4, squares: 0.02, misfit: 0.05, weight: weight}
	}
	for _, test := range []struct {
		name                   string
		laws                   []batchLaw
		runs, value, low, high float64
	}{
		{"middle", []batchLaw{law(400, 0.3), law(100, 0.3), law(200, 0.4)}, 4, 200, 100, 400},
		{"heavy first", []batchLaw{law(100, 0.6), law(200, 0.4)}, 4, 100, 100, 200},
		{"heavy last", []batchLaw{law(100, 0.2), law(200, 0.8)}, 4, 200, 100, 200},
		{"two runs", []batchLaw{law(100, 1)}, 2, 100, math.NaN(), math.NaN()},
	} {
		c := Convergence{level: 0.95, batches: []measuredBatch{{1, 1, test.runs / 2}, {2, 1, test.runs / 2}}, laws: test.laws}
		s := c.carry(3)
		by := math.Exp(4.302653*math.Sqrt(0.02/2)*0.5 + 0.05)
		if s.Value != test.value || math.IsNaN(test.low) != math.IsNaN(s.Low) || math.IsNaN(test.low) != math.IsNaN(s.High) ||
			!math.IsNaN(test.low) && (!close6(s.Low, test.low/by) || !close6(s.High, test.high*by)) {
			t.Errorf("%s: %+v", test.name, s)
		}
	}
}

// Runs of one batch: Student's 97.5 % quantiles are 12.7062 with one degree of freedom, 4.30265
// with two. The lower end is at least a tenth of the mean.
func TestOwnSamples(t *testing.T) {
	for _, test := range []struct {
		xs              []float64
		mean, low, high float64
	}{
		{[]float64{900, 1100}, 1000, 100, 1000 + 12.7062*100},
		{[]float64{990, 1000, 1010}, 1000, 1000 - 4.302653*10/math.Sqrt(3), 1000 + 4.302653*10/math.Sqrt(3)},
		{[]float64{700}, 700, math.NaN(), math.NaN()},
	} {
		s := ownSamples(test.xs, 0.95)
		same := func(got, want float64) bool {
			return math.IsNaN(got) == math.IsNaN(want) && (math.IsNaN(want) || math.Abs(got/want-1) < 1e-5)
		}
		if !same(s.Value, test.mean) || !same(s.Low, test.low) || !same(s.High, test.high) {
			t.Errorf("%v: %+v", test.xs, s)
		}
	}
}

// The shapes that are tried: at twice the largest batch, a power p of it is 2^p.
func TestBatchShapes(t *testing.T) {
	constants, bends := 0, 0
	pairs := map[string]bool{}
	for _, s := range batchShapes(100, 800) {
		switch {
		case s[1] == nil && s[0](1e9) == 1:
			constants++
		case s[1] == nil:
			bends++
			// (1 + (B/critical)^p)^(1/p) is 1 for a small batch and B/critical for a large one.
			critical := 1e12 / s[0](1e12)
			if !(critical > 24.9 && critical < 16*800*1.001) || math.Abs(s[0](1e-9)-1) > 1e-2 {
				t.Fatalf("bend at %g, %g at a small batch", critical, s[0](1e-9))
			}
		default:
			pairs[fmt.Sprintf("%.2f %.2f", math.Log2(s[0](1600)), math.Log2(s[1](1600)))] = true
		}
	}
	if constants != 1 {
		t.Errorf("%d constants", constants)
	}
	// 9 octaves from 25 to 12800 in eighths, 73, with each of 12 sharpnesses; the last may be lost to rounding.
	if bends < 12*72 || bends > 12*73 {
		t.Errorf("%d bends", bends)
	}
	var want []string
	for p := 4; p <= 26; p++ { // 1 + B^p
		want = append(want, fmt.Sprintf("0.00 %.2f", float64(p)/10))
	}
	for q := 3; q <= 8; q++ { // B^−q + B^p
		for _, p := range []int{3, 4, 5, 6, 7, 8, 10} {
			want = append(want, fmt.Sprintf("-0.%d0 %.2f", q, float64(p)/10))
		}
	}
	for _, w := range want {
		if !pairs[w] {
			t.Errorf("%s is not tried", w)
		}
		delete(pairs, w)
	}
	if len(pairs) > 0 {
		t.Errorf("also tried: %v", pairs)
	}
}

func TestConvergenceBounds(t *testing.T) {
	// 1000·(1 + B/500): up to 4 times the largest batch.
	var runs []ToTarget
	for range 3 {
		for _, b := range []float64{100, 200, 400, 500} {
			runs = append(runs, ToTarget{Batch: b, Samples: 1000 * (1 + b/500)})
		}
	}
	c, err := FitConvergence(runs, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Predict(2000); err != nil {
		t.Errorf("4 times the largest: %v", err)
	}
	if _, err := c.Predict(0); err == nil {
		t.Error("predicted a batch of 0")
	}
	if got := c.Batches(); !slices.Equal(got, []float64{100, 200, 400, 500}) {
		t.Errorf("batches %v", got)
	}
	// The largest of four batches takes ten times what the others say: nothing beyond it.
	for i := range runs {
		if runs[i].Batch == 500 {
			runs[i].Samples *= 10
		}
	}
	if c, _ = FitConvergence(runs, 0.95); c.refused == "" {
		t.Error("the hold-out error is not refused")
	}
	if _, err := c.Predict(600); err == nil {
		t.Error("predicted beyond a batch that the others miss")
	}
	if _, err := c.Predict(300); err != nil {
		t.Errorf("between: %v", err)
	}
	// With three batches, none is excluded from the fit.
	three := slices.DeleteFunc(slices.Clone(runs), func(r ToTarget) bool { return r.Batch == 400 })
	if c, _ = FitConvergence(three, 0.95); c.refused != "" {
		t.Errorf("three batches: %s", c.refused)
	}
	// Logarithms ±0.1 about their mean at either of two batches: 4·0.01 over 4 − 2.
	scattered, _ := FitConvergence([]ToTarget{{100, 1000 * math.Exp(0.1)}, {100, 1000 * math.Exp(-0.1)}, {200, 3000 * math.Exp(0.1)}, {200, 3000 * math.Exp(-0.1)}}, 0.95)
	if got, want := scattered.Scatter(), math.Sqrt(0.02); !close6(got, want) {
		t.Errorf("scatter %g, want %g", got, want)
	}
	if c, _ := FitConvergence([]ToTarget{{100, 1000}, {200, 1500}}, 0.95); c.Scatter() != 0 {
		t.Errorf("one run of each batch: scatter %g", c.Scatter())
	}
}
