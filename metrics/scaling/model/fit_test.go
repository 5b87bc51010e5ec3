package model

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The fit works with three sums a point. It is held against the same from every
// run: the normal equations of the rows t/y, and the errors ŷ/y − 1.
func TestFitFromSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := &Data{}
	var points []Measured
	for _, n := range []int{1, 2, 4, 8, 16} {
		p := Measured{Workers: n}
		for range 5 + n {
			p.Throughputs = append(p.Throughputs, 100*float64(n)/(1+0.05*float64(n-1))*math.Exp(0.03*rng.NormFloat64()))
		}
		points = append(points, p)
	}
	r := newRows(d, points)
	if len(r.points) != 5 || r.runs != 5*5+31 {
		t.Fatalf("%d rows of %d runs", len(r.points), r.runs)
	}
	f, ok := r.least(Amdahl, []term{compute, contention}, 0)
	if !ok {
		t.Fatal("no fit")
	}
	var gradient [2]float64
	var rss, lack, runs float64
	for _, p := range points {
		n := float64(p.Workers)
		sum := 0.0
		for _, x := range p.Throughputs {
			y := n / x
			e := f.y(d, n)/y - 1
			gradient[0] += e * compute.of(d, n) / y
			gradient[1] += e * contention.of(d, n) / y
			rss += e * e
			sum += e
		}
		lack += sum * sum / float64(len(p.Throughputs))
		runs += float64(len(p.Throughputs))
	}
	if math.Abs(gradient[0]) > 1e-6 || math.Abs(gradient[1]) > 1e-6 {
		t.Errorf("not least: the gradient is %g", gradient)
	}
	if want := math.Sqrt(rss / (runs - 2)); math.Abs(f.sigma/want-1) > 1e-9 {
		t.Errorf("sigma %g, want %g", f.sigma, want)
	}
	if want := math.Sqrt(max(1, lack/3/((rss-lack)/(runs-5)))); math.Abs(f.factor/want-1) > 1e-9 {
		t.Errorf("factor %g, want %g", f.factor, want)
	}
}
