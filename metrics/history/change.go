// Package history finds where a figure changed over time, and what changed with
// it.
//
// Change points are looked for among runs that ran on the same alone: what a
// new driver does to a figure is told by the driver, which is recorded, and not
// by statistics. Where runs begin to run on something else is marked as such,
// with what it is. The package is pure.
package history

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

const (
	// window is how many values are searched at once; windows overlap by half.
	// It bounds the time, and keeps an old change from hiding a new one.
	window = 50
	// significance is what a change point has to attain in the end, weak what
	// makes a candidate: one that its neighbours' noise hides at first may
	// pass once false neighbours are gone.
	significance, weak = 0.001, 0.01
	// shortest is the least number of values between two change points.
	shortest = 4
)

// Changes finds the change points of a sequence: the index of the first value
// after each, ascending.
//
// Within windows it divides the sequence where the energy statistic between the
// two sides is largest (E-divisive: Matteson & James, J. Am. Stat. Assoc. 109,
// 2014), as long as Welch's t-test tells the sides apart; then takes back the
// weakest until each of the others is significant at 0.001 between its
// neighbours. The t-test in place of permutations makes it deterministic, and
// the windows make it linear, as in Apache Otava (Fleming et al., ICPE 2023).
func Changes(values []float64) []int {
	n := len(values)
	found := map[int]bool{}
	for from := 0; ; from += window / 2 {
		to := min(from+window, n)
		divide(values, from, to, found)
		if to == n {
			break
		}
	}
	points := make([]int, 0, len(found))
	for at := range found {
		points = append(points, at)
	}
	slices.Sort(points)
	return prune(values, points)
}

// divide finds change points in values[from:to], weak ones too.
func divide(values []float64, from, to int, found map[int]bool) {
	at := split(values[from:to])
	if at == 0 {
		return
	}
	at += from
	if pValue(values[from:at], values[at:to]) >= weak {
		return
	}
	found[at] = true
	divide(values, from, at, found)
	divide(values, at, to, found)
}

// split is where the energy statistic between what is before and what is after
// is largest, 0 for a sequence that is too short:
//
//	nm/(n+m) · (2·mean|x−y| − mean|x−x'| − mean|y−y'|)
//
// with the means over all pairs of two different values.
func split(values []float64) int {
	total := len(values)
	if total < 2*shortest {
		return 0
	}
	// Sums of distances within each side and between them, updated as one value
	// after the other changes sides.
	var before, after, between float64
	for i, x := range values {
		for _, y := range values[i+1:] {
			after += math.Abs(x - y)
		}
	}
	best, at := math.Inf(-1), 0
	for i := range total - shortest {
		var toBefore, toAfter float64
		for _, x := range values[:i] {
			toBefore += math.Abs(x - values[i])
		}
		for _, y := range values[i+1:] {
			toAfter += math.Abs(y - values[i])
		}
		before += toBefore
		after -= toAfter
		between += toAfter - toBefore
		if i+1 < shortest {
			continue
		}
		n, m := float64(i+1), float64(total-i-1)
		energy := n * m / (n + m) * (2*between/(n*m) - before/(n*(n-1)/2) - after/(m*(m-1)/2))
		if energy > best {
			best, at = energy, i+1
		}
	}
	return at
}

// pValue is of Welch's t-test that the two sides have one mean. Sides without
// any spread, as rounded figures have, are told apart by how few arrangements
// of the values part them so.
func pValue(xs, ys []float64) float64 {
	test, err := stats.TwoSampleWelchTTest(stats.Sample{Xs: xs}, stats.Sample{Xs: ys}, stats.LocationDiffers)
	if err == nil && !math.IsNaN(test.P) {
		return test.P
	}
	if len(xs) == 0 || len(ys) == 0 || xs[0] == ys[0] {
		return 1
	}
	n, m := float64(len(xs)), float64(len(ys))
	lg := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	return min(1, 2*math.Exp(lg(n)+lg(m)-lg(n+m)))
}

// prune takes back change points until each that is left is significant
// between its neighbours, the weakest first.
func prune(values []float64, points []int) []int {
	edge := func(i int) int {
		switch {
		case i < 0:
			return 0
		case i >= len(points):
			return len(values)
		}
		return points[i]
	}
	p := func(i int) float64 {
		if points[i]-edge(i-1) < shortest || edge(i+1)-points[i] < shortest {
			return 1 // two windows found one change at almost the same place
		}
		return pValue(values[edge(i-1):points[i]], values[points[i]:edge(i+1)])
	}
	ps := make([]float64, len(points))
	for i := range points {
		ps[i] = p(i)
	}
	for len(points) > 0 {
		worst := 0
		for i, x := range ps {
			if x > ps[worst] {
				worst = i
			}
		}
		if ps[worst] < significance {
			break
		}
		points, ps = slices.Delete(points, worst, worst+1), slices.Delete(ps, worst, worst+1)
		for _, i := range []int{worst - 1, worst} {
			if i >= 0 && i < len(points) {
				ps[i] = p(i)
			}
		}
	}
	return points
}
