package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Samples is a kind of study of which the ratio between two worker counts is asked:
// how runs scatter, how the machine changes meanwhile, in which order the runs are
// made, and how many. It is independent of Study and of the estimators that are
// tried on it.
type Samples struct {
	Name  string
	Order Order
	Least int // runs at each count, drawn evenly from Least to Most
	Most  int
	// Scatter returns how a run of a count scatters: a function that draws the
	// logarithm of a run's slowdown, which may be +Inf for a missed target.
	Scatter func(r *rand.Rand) func(r *rand.Rand, count int) float64
	// Machine returns what the machine does to the n runs of a study, as logarithms of
	// slowdowns in the order of the runs; nil: nothing.
	Machine func(r *rand.Rand, n int) []float64
}

// SampleCounts are the worker counts of every study of Samples.
var SampleCounts = []int{1, 2, 4, 8}

// Drawn is one study: the seconds of each run, +Inf for a missed target.
type Drawn struct {
	Runs  []DrawnRun
	scale []float64 // typical seconds by count
	draw  func(r *rand.Rand, count int) float64
}

// DrawnRun is one of them.
type DrawnRun struct {
	Count, Repeat int // indices into SampleCounts, and from 0
	Began         float64
	Seconds       float64
}

// Draw makes a study.
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

// Truth is how many times faster the count a is than b (indices): the ratio of the
// medians over all runs that could be made, found by drawing.
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
