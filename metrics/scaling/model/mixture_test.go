package model

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// flat is a law by which a sample takes exp(mu) worker-seconds on any number of
// workers, with a relative standard error and AICc. With one degree of freedom,
// Student's distribution is Cauchy's, whose CDF is 1/2 + atan(x/error)/π.
func flat(law Law, mu, relative, aicc float64) fit {
	one := term{"flat", func(*Data, float64) float64 { return 1 }}
	y := math.Exp(mu)
	// The error is sigma·factor·√(1·cov·1)/y.
	return fit{law: law, terms: []term{one}, beta: []float64{y}, cov: mat.NewSymDense(1, []float64{y * y * 4}), sigma: relative / 6, factor: 3, dof: 1, aicc: aicc}
}

// competing are two laws with Akaike weights 3:1, since their AICc differ by 2·ln 3, and
// three with 9:3:1. Level 0.5 has Cauchy's quantiles 1/4 and 3/4: −1 and 1 errors.
func competing(fits ...fit) *Extrapolator {
	e := &Extrapolator{d: &Data{}, level: 0.5, fits: fits, largest: 8, before: 4, counts: []int{1, 2, 4, 8}, HoldOut: -0.1, edge: 1e9}
	for range fits {
		e.student = append(e.student, 1)
	}
	return e
}

// The median m of two laws at 0 and 1 with weights 3:1 and errors s has
// 3·atan(m/s) = atan((1−m)/s). With tan 3θ = (3t−t³)/(1−3t²), t = 1/2 gives 5.5: so
// m = s/2 and 1−m = 5.5s, s = 1/6 and m = 1/12. Neither law, nor their mean, nor the
// weights 9:1 or √3:1 have it.
func TestMedianOfCompetingLaws(t *testing.T) {
	e := competing(flat(AlphaBeta, 0, 1./6, 50), flat(Amdahl, 1, 1./6, 50+2*math.Log(3)))
	if got, want := math.Log(e.quantile(16, 0)), 1./12; math.Abs(got-want) > 1e-9 {
		t.Errorf("the median is exp(%g), want exp(%g)", got, want)
	}
	p, err := e.Predict(16)
	if want := 16 / math.Exp(1./12); err != nil || math.Abs(p.Value/want-1) > 1e-9 {
		t.Errorf("%g samples/s, %v; want %g", p.Value, err, want)
	}
	if want := 16 / math.E; math.Abs(p.Overlays[Amdahl]/want-1) > 1e-9 || len(p.Overlays) != 1 {
		t.Errorf("overlays %v, want Amdahl's %g", p.Overlays, want)
	}
}

// A quantile q of a mixture is where its CDF, by arctangents, is q, whatever the order
// of the laws and although the best is not the first.
func TestQuantilesOfCompetingLaws(t *testing.T) {
	for name, c := range map[string]struct {
		mu, relative, weight []float64
	}{
		"one":         {[]float64{0.3}, []float64{0.2}, []float64{1}},
		"two":         {[]float64{0, 1}, []float64{1. / 6, 1. / 6}, []float64{3, 1}},
		"best last":   {[]float64{1, 0}, []float64{0.1, 0.3}, []float64{1, 3}},
		"three":       {[]float64{-1, 0.5, 2}, []float64{0.1, 0.2, 0.4}, []float64{3, 9, 1}},
		"far apart":   {[]float64{0, 8}, []float64{0.01, 0.01}, []float64{1, 1.5}},
		"one is sure": {[]float64{0, 0.1}, []float64{1e-6, 0.5}, []float64{1, 1}},
	} {
		var fits []fit
		var total float64
		for i := range c.mu {
			law := AlphaBeta
			if i > 0 {
				law = Law(fmt.Sprint("law", i))
			}
			fits = append(fits, flat(law, c.mu[i], c.relative[i], 100-2*math.Log(c.weight[i])))
			total += c.weight[i]
		}
		e := competing(fits...)
		for end, q := range map[float64]float64{-1: 0.25, 0: 0.5, 1: 0.75} {
			x := math.Log(e.quantile(16, end))
			var cdf float64
			for i := range c.mu {
				cdf += c.weight[i] / total * (0.5 + math.Atan((x-c.mu[i])/c.relative[i])/math.Pi)
			}
			if math.Abs(cdf-q) > 1e-5 {
				t.Errorf("%s: the CDF at the quantile %g is %g", name, q, cdf)
			}
		}
	}
}

// The interval of one law that is sure of 1 worker-second a sample, by hand: it missed
// the step from 4 to 8 workers by 10 %, and may miss as much of each doubling beyond 8;
// beyond, each doubling may also hide 5 %. Between 4 and 8, n = 4√2 is half a doubling
// away. The edge is what 8 workers certainly reach.
func TestIntervalBeyondTheData(t *testing.T) {
	for _, c := range []struct {
		workers           int
		edge              float64
		low, high, steady float64 // of the throughput over that of the law
	}{
		{8, 7, 1, 1, 1},
		{4, 7, 1, 1, 1},
		{2, 7, 1, 1, 1},
		{3, 7, 1 / (1 + 0.1*math.Log2(4./3)), 1 + 0.1*math.Log2(4./3), 1 / (1 + 0.1*math.Log2(4./3))},
		{6, 7, 1 / (1 + 0.1*math.Log2(8./6)), 1 + 0.1*math.Log2(8./6), 1 / (1 + 0.1*math.Log2(8./6))},
		{16, 7, 7. / 16, 1.1, 1 / 1.1 / 1.05},
		{32, 7, 7. / 32, 1.2, 1 / 1.2 / 1.1025},
		{16, 1e9, 1 / 1.1 / 1.05, 1.1, 1 / 1.1 / 1.05},
	} {
		e := competing(flat(AlphaBeta, 0, 1e-13, 10))
		e.edge = c.edge
		p, err := e.Predict(c.workers)
		if err != nil {
			t.Errorf("%d workers: %v", c.workers, err)
			continue
		}
		n := float64(c.workers)
		for name, pair := range map[string][2]float64{"value": {p.Value, n}, "low": {p.Low, c.low * n}, "high": {p.High, c.high * n}, "steady": {p.Steady, c.steady * n}} {
			if math.Abs(pair[0]/pair[1]-1) > 1e-9 {
				t.Errorf("%d workers: %s is %g, want %g", c.workers, name, pair[0], pair[1])
			}
		}
		if p.Beyond != (c.workers > 8) || p.Workers != c.workers || p.Level != 0.5 {
			t.Errorf("%d workers: %+v", c.workers, p)
		}
	}
	e := competing(flat(AlphaBeta, 0, 0.1, 10))
	for workers, valid := range map[int]bool{-1: false, 0: false, 1: true, 32: true, 33: false} {
		if _, err := e.Predict(workers); (err == nil) != valid {
			t.Errorf("%d workers: %v, want valid: %v", workers, err, valid)
		}
	}
}

// The best α–β law comes first although another law is better; others stay as long as
// they are within 10 of it.
func TestChoose(t *testing.T) {
	list := func(pairs ...any) []fit {
		var fits []fit
		for i := 0; i < len(pairs); i += 2 {
			fits = append(fits, fit{law: pairs[i].(Law), aicc: pairs[i+1].(float64)})
		}
		return fits
	}
	for _, c := range []struct {
		name       string
		list, want []fit
	}{
		{"none", nil, nil},
		{"no α–β law", list(Amdahl, 1., USL, 2.), nil},
		{"one", list(AlphaBeta, 5.), list(AlphaBeta, 5.)},
		{"a better overlay", list(AlphaBeta, 5., Amdahl, 1.), list(AlphaBeta, 5., Amdahl, 1.)},
		{"by AICc", list(AlphaBeta, 9., USL, 7., AlphaBeta, 3.), list(AlphaBeta, 3., USL, 7., AlphaBeta, 9.)},
		{"too far from the best", list(AlphaBeta, 5., Amdahl, 15., USL, 15.5, AlphaBeta, 14.9), list(AlphaBeta, 5., AlphaBeta, 14.9, Amdahl, 15.)},
	} {
		got := choose(c.list)
		same := len(got) == len(c.want)
		for i := 0; same && i < len(got); i++ {
			same = got[i].law == c.want[i].law && got[i].aicc == c.want[i].aicc
		}
		if !same {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
