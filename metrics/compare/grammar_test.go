package compare

import (
	"math"
	"math/rand/v2"
)

// series is a random process for the values of one point's runs, with a standard deviation of 1
// around a changing mean. These processes were chosen before the rules that they test were written.
type series struct {
	name string
	runs func(r *rand.Rand) int
	// memory is the AR(1) coefficient from run to run. season is the period in runs, and height its
	// amplitude in standard deviations. tails selects Student's t with 3 degrees of freedom for the
	// scatter.
	memory func(r *rand.Rand) float64
	season func(r *rand.Rand) (length, height float64)
	tails  bool
}

func fixed(x float64) func(*rand.Rand) float64 { return func(*rand.Rand) float64 { return x } }

// lengths returns a function that draws a number of runs, uniformly in its logarithm.
func lengths(low, high float64) func(*rand.Rand) int {
	return func(r *rand.Rand) int { return int(low * math.Pow(high/low, r.Float64())) }
}

// draw draws n values.
func (s series) draw(r *rand.Rand, n int) []float64 {
	memory := 0.0
	if s.memory != nil {
		memory = s.memory(r)
	}
	length, height := 1.0, 0.0
	if s.season != nil {
		length, height = s.season(r)
	}
	phase := r.Float64()
	noise := func() float64 {
		if !s.tails {
			return r.NormFloat64()
		}
		chi := 0.0
		for range 3 {
			x := r.NormFloat64()
			chi += x * x
		}
		return r.NormFloat64() / math.Sqrt(chi/3) / math.Sqrt(3) // the standard deviation of t3 is √3
	}
	xs := make([]float64, n)
	swing := noise()
	for i := range xs {
		if i > 0 {
			swing = memory*swing + math.Sqrt(1-memory*memory)*noise()
		}
		xs[i] = 100 + swing + height*math.Sin(2*math.Pi*(float64(i)/length+phase))
	}
	return xs
}

// unchanged are kinds of sequences in which nothing changes.
var unchanged = []series{
	{name: "independent", runs: lengths(10, 300)},
	{name: "heavy tails", runs: lengths(10, 300), tails: true},
	{name: "AR(1) 0.5", runs: lengths(20, 300), memory: fixed(0.5)},
	{name: "AR(1) 0.8", runs: lengths(20, 300), memory: fixed(0.8)},
	{name: "AR(1) up to 0.9", runs: lengths(20, 300), memory: func(r *rand.Rand) float64 { return 0.9 * r.Float64() }},
	{name: "a season of 30 runs", runs: lengths(40, 300), season: func(*rand.Rand) (float64, float64) { return 30, 1.5 }},
	{name: "a season of 7 to 60 runs", runs: lengths(40, 300), season: func(r *rand.Rand) (float64, float64) { return 7 + 53*r.Float64(), 0.5 + 2*r.Float64() }},
	{name: "a season, AR(1) 0.5", runs: lengths(40, 300), memory: fixed(0.5), season: func(r *rand.Rand) (float64, float64) { return 7 + 53*r.Float64(), 0.5 + 2*r.Float64() }},
}
