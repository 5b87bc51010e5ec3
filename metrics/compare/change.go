package compare

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
)

// This file finds where a figure changed over time, and what changed with
// it.
//
// Change points are looked for among runs that ran on the same alone: what a
// new driver does to a figure is told by the driver, which is recorded, and not
// by statistics. Where runs begin to run on something else is marked as such,
// with what it is.

const (
	// window is how many values are searched at once; windows overlap by half.
	// It bounds the time, and keeps an old change from hiding a new one.
	window = 50
	// significance is what a change point has to attain in the end, weak what
	// makes a candidate: one that its neighbours' noise hides at first may
	// pass once false neighbours are gone.
	significance, weak = 0.001, 0.01
	// steady is how many times the square of a change has to exceed what goes on
	// within both sides of it (selfNormalized). It is 40 in 5 %, 85 in 0.5 % of long
	// independent sequences, at the most suspicious place; this limit keeps false
	// changes below 5 % where a run is like the one before it, too (TestTruthOfChanges).
	steady = 100
	// shortest is the least number of values between two change points.
	shortest = 4
)

// changePoints finds the change points of a sequence: the index of the first value
// after each, ascending.
//
// Within windows it divides the sequence where the energy statistic between the
// two sides is largest (E-divisive: Matteson & James, J. Am. Stat. Assoc. 109,
// 2014), as long as Welch's t-test tells the sides apart; then takes back the
// weakest until each of the others is significant at 0.001 between its
// neighbours. The t-test in place of permutations makes it deterministic, and
// the windows make it linear, as in Apache Otava (Fleming et al., ICPE 2023).
//
// Welch's test takes runs to be independent. Where a run is like the one before it,
// or where there are seasons, every swing is significant to it. So in the end each
// change also has to stand out of what goes on between its neighbours
// (selfNormalized), which supposes nothing of how runs depend on each other.
func changePoints(values []float64) []int {
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
	points = prune(values, points, func(before, after []float64) float64 { return -pValue(before, after) }, -significance)
	return prune(values, points, selfNormalized, steady)
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

// selfNormalized is the statistic of Shao & Zhang (J. Am. Stat. Assoc. 105, 2010)
// for a change of the mean at a place: the square of the cumulated sum there, over
// how far the cumulated sums go within both sides. These go further where runs
// depend on each other, by as much as the change does for no reason: no length of
// their memory has to be known.
func selfNormalized(before, after []float64) float64 {
	n, k := float64(len(before)+len(after)), float64(len(before))
	center, far := (mean(before)*k+mean(after)*(n-k))/n, 0.0
	for _, side := range [][]float64{before, after} {
		own, sum := mean(side), 0.0
		for _, v := range side {
			sum += v - own
			far += sum * sum
		}
	}
	sum := k * (mean(before) - center)
	if far == 0 && sum == 0 {
		return 0
	}
	return sum * sum * n / far
}

// prune takes back change points until the strength of each that is left, between
// its neighbours, is above least; the weakest first.
func prune(values []float64, points []int, strength func(before, after []float64) float64, least float64) []int {
	edge := func(i int) int {
		switch {
		case i < 0:
			return 0
		case i >= len(points):
			return len(values)
		}
		return points[i]
	}
	of := func(i int) float64 {
		if points[i]-edge(i-1) < shortest || edge(i+1)-points[i] < shortest {
			return math.Inf(-1) // two windows found one change at almost the same place
		}
		return strength(values[edge(i-1):points[i]], values[points[i]:edge(i+1)])
	}
	all := make([]float64, len(points))
	for i := range points {
		all[i] = of(i)
	}
	for len(points) > 0 {
		weakest := 0
		for i, x := range all {
			if x < all[weakest] {
				weakest = i
			}
		}
		if all[weakest] > least {
			break
		}
		points, all = slices.Delete(points, weakest, weakest+1), slices.Delete(all, weakest, weakest+1)
		for _, i := range []int{weakest - 1, weakest} {
			if i >= 0 && i < len(points) {
				all[i] = of(i)
			}
		}
	}
	return points
}
