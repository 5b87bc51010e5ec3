package sequential

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// TestConfidence returns the confidence with which two samples must be tested at each look by a
// two-sided test, such as Mann-Whitney. With it, equal samples test as different at any of the
// looks with a probability of at most 1-Level. It is Pocock's constant for sums of normal
// increments, to which rank tests converge. It counts looks from the first one with an interval on.
func (d Design) TestConfidence() float64 {
	looks := d.Tests()
	const steps = 200
	limit := 2 + float64(sort.Search(steps, func(i int) bool { return crossing(looks, 1.9+float64(i)/steps) <= 1-Level }))/steps - 0.1
	return 2*distuv.UnitNormal.CDF(limit) - 1
}

// ForTests returns the design with the level for tests of two samples, rounded up, instead of that
// for intervals of medians, which is lower.
func (d Design) ForTests() Design {
	d.Confidence = math.Ceil(d.TestConfidence()*grid) / grid
	return d
}

// Tests returns the looks at which two samples can be tested: those with at least 4 runs.
func (d Design) Tests() (looks []int) {
	for _, n := range d.Looks {
		if n >= 4 {
			looks = append(looks, n)
		}
	}
	return looks
}

// crossing returns the probability that a sum of normal increments is more than limit standard
// deviations from 0 at one or more of the looks (Armitage, McPherson & Rowe, J. R. Stat. Soc. A
// 132, 1969). It computes the density within the limits on a grid, from one look to the next.
func crossing(looks []int, limit float64) float64 {
	const half = 150
	var density []float64
	var width, inside float64 // width of a cell, and probability that the sum was within the limits at all looks so far
	n := 0.0
	inside = 1
	for _, look := range looks {
		spread := math.Sqrt(float64(look) - n)
		edge := limit * math.Sqrt(float64(look))
		cell := edge / half
		next := make([]float64, 2*half)
		for i := range next {
			x := (float64(i-half) + 0.5) * cell
			if density == nil {
				next[i] = distuv.UnitNormal.Prob(x/spread) / spread
				continue
			}
			for j, p := range density {
				next[i] += p * width * distuv.UnitNormal.Prob((x-(float64(j-half)+0.5)*width)/spread) / spread
			}
		}
		density, width, n, inside = next, cell, float64(look), 0
		for _, p := range density {
			inside += p * width
		}
	}
	return 1 - inside
}
