package scaling

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// alikeAt is the level of the test at which the two runs of a block count as correlated.
const alikeAt = 0.02

// paired returns the logarithms of the ratios between runs of a and of b that are of the same
// repeat. It does so if repeats are blocks in time whose two runs are correlated (both slow, or
// both fast). Changes of the machine from block to block then cancel in each ratio; small blocks
// show such changes better than neighbouring runs.
//
// It returns nil if the runs are not correlated, because the median of such ratios is not the
// ratio of the medians if some runs are much slower than others. For the same reason it returns
// nil if runs fall into two groups.
func paired(a, b []made) []made {
	of := make(map[block]made, len(b))
	for _, m := range b {
		of[m.block()] = m
	}
	if len(of) < len(b) {
		return nil
	}
	type pair struct {
		from, to float64
		a, b     made
	}
	list := make([]pair, 0, min(len(a), len(b)))
	seen := make(map[block]bool, len(a))
	for _, m := range a {
		k := m.block()
		other, both := of[k]
		switch {
		case seen[k]:
			return nil
		case !both:
			continue
		case m.BeganUnix == 0 || other.BeganUnix == 0 || !isRate(m.value) || !isRate(other.value):
			return nil
		}
		seen[k] = true
		list = append(list, pair{min(m.BeganUnix, other.BeganUnix), max(m.BeganUnix, other.BeganUnix), m, other})
	}
	// Select as many disjoint blocks as possible, the one that ends earliest first. A run that
	// was retried later is in none of them.
	slices.SortFunc(list, func(a, b pair) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(b.from, a.from)) })
	ratios := make([]made, 0, len(list))
	x, y := make([]float64, 0, len(list)), make([]float64, 0, len(list))
	last := math.Inf(-1)
	for _, k := range list {
		if k.from > last {
			last = k.to
			x, y = append(x, math.Log(k.a.value)), append(y, math.Log(k.b.value))
			ratios = append(ratios, made{math.Log(k.a.value) - math.Log(k.b.value), k.a.Observation})
		}
	}
	if 4*len(ratios) < 3*len(list) || !alike(x, y) || grouped(x) || grouped(y) {
		return nil
	}
	return ratios
}

// alike reports whether the correlation of x and y is significantly positive, according to its
// t-test.
func alike(x, y []float64) bool {
	n := float64(len(x))
	if n < 4 {
		return false
	}
	r := stat.Correlation(x, y, nil)
	if math.IsNaN(r) {
		return false
	}
	t := r * math.Sqrt((n-2)/max(1e-12, 1-r*r))
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 2}.Survival(t) <= alikeAt
}

// grouped reports whether logarithms of values fall into two groups with a wide gap between them.
func grouped(xs []float64) bool {
	xs = slices.Sorted(slices.Values(xs))
	for k := 1; k < len(xs); k++ {
		if gapped(xs, k) {
			return true
		}
	}
	return false
}
