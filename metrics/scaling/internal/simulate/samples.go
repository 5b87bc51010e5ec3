package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Samples is a family of studies in which the ratio between two worker counts is estimated. It sets
// how runs scatter, how the machine changes, the order of the runs, and their number. It is
// independent of Study and of the tested estimators.
type Samples struct {
	Name  string
	Order Order
	Least int // number of runs at each count, drawn uniformly from Least to Most
	Most  int
	// Scatter returns a function that draws, for a run at a count, the logarithm of its slowdown;
	// +Inf means a missed target.
	Scatter func(r *rand.Rand) func(r *rand.Rand, count int) float64
	// Machine returns the effect of the machine on the n runs of a study, as logarithms of
	// slowdowns in the order of the runs; nil: no effect.
	Machine func(r *rand.Rand, n int) []float64
}

// SampleCounts are the worker counts of every study of Samples.
var SampleCounts = []int{1, 2, 4, 8}

// Drawn is one simulated study.
type Drawn struct {
	Runs  []DrawnRun
	scale []float64 // typical seconds of a run by count
	draw  func(r *rand.Rand, count int) float64
}

// DrawnRun is one run of a Drawn study.
type DrawnRun struct {
	Count, Repeat int // Count is an index into SampleCounts; Repeat starts at 0
	Began         float64
	Seconds       float64
}

// Draw draws a study.
func (f Samples) Draw(r *rand.Rand) *Drawn {
	d := &Drawn{draw: f.Scatter(r)}
	exponent := 0.5 + 0.5*r.Float64()
	runs := f.Least + r.IntN(f.Most-f.Least+1)
	type which struct{ count, repeat int }
	var order []which
	for i, n := range SampleCounts {
		d.scale = append(d.scale, 1000*math.Pow(float64(n), -exponent))
		for k := range runs {
			order = append(order, which{i, k})
		}
	}
	if f.Order != Planned {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	if f.Order == Blocks {
		slices.SortStableFunc(order, func(a, b which) int { return a.repeat - b.repeat })
	}
	machine := make([]float64, len(order))
	if f.Machine != nil {
		machine = f.Machine(r, len(order))
	}
	for at, w := range order {
		d.Runs = append(d.Runs, DrawnRun{w.count, w.repeat, 1.79e9 + 600*float64(at),
			d.scale[w.count] * math.Exp(machine[at]+d.draw(r, w.count))})
	}
	return d
}

// Truth returns the true speed of count a divided by that of count b, given as indices. It is the
// ratio of the medians over all possible runs, computed by drawing many.
func (d *Drawn) Truth(a, b int) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	median := func(count int) float64 {
		const n = 4001
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = d.draw(r, count)
		}
		slices.Sort(xs)
		return d.scale[count] * math.Exp(xs[n/2])
	}
	return median(b) / median(a)
}
