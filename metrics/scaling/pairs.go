package scaling

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// alikeAt is the level at which the two runs of a block are found to be alike.
const alikeAt = 0.02

// paired returns the logarithms of a's runs over b's of the same repeat, where repeats are
// blocks in time and the two runs of a block are alike: both are slow, or both are fast.
// What the machine does from block to block then cancels out of each ratio, and small
// blocks say so more sharply than the runs before and after them. nil where the runs of a
// block are not found to be alike: the median of such ratios is not the ratio of the
// medians where some runs are much slower than others, which is why runs in groups are
// never paired.
func paired(a, b []made) []made {
	type key struct {
		study  string
		repeat int
	}
	of := map[key]made{}
	for _, m := range b {
		of[key{m.Study, m.Repeat}] = m
	}
	if len(of) < len(b) {
		return nil
	}
	type block struct {
		from, to float64
		a, b     made
	}
	var list []block
	seen := map[key]bool{}
	for _, m := range a {
		k := key{m.Study, m.Repeat}
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
		list = append(list, block{min(m.BeganUnix, other.BeganUnix), max(m.BeganUnix, other.BeganUnix), m, other})
	}
	// As many blocks as possible of which none overlaps another: the one that ends first,
	// and so on. A run that was tried again later is in none.
	slices.SortFunc(list, func(a, b block) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(b.from, a.from)) })
	var ratios []made
	var x, y []float64
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

// alike reports whether the correlation of x and y is above 0, by its t-test.
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

// grouped reports whether logarithms fall into two groups of any size with a wide gap
// between them.
func grouped(xs []float64) bool {
	xs = slices.Sorted(slices.Values(xs))
	for k := 1; k < len(xs); k++ {
		if gapped(xs, k) {
			return true
		}
	}
	return false
}
