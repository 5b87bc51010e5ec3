package compare

import (
	"maps"
	"math"
	"slices"

	"github.com/aclements/go-moremath/stats"
	"gonum.org/v1/gonum/stat/combin"
)

// This file finds when a value changed over time, and what else changed at that time.
//
// Change points are searched only among runs with the same fingerprint. If the fingerprint changes,
// for example with a new driver, no statistics are needed: the first run with the new fingerprint
// is marked, and the changed fields are named.

const (
	// window is the number of values searched at once; windows overlap by half. It
	// bounds the time and keeps an old change from hiding a new one.
	window = 50
	// significance is the significance level for final change points, weak that for candidates. A
	// candidate that is not yet significant may become so when false candidates next to it are
	// removed.
	significance, weak = 0.001, 0.01
	// steady is the limit on selfNormalized: the squared change relative to the variation within
	// both sides. In long independent sequences, the maximum of the statistic exceeds 40 in 5 % of
	// cases and 85 in 0.5 %. This limit keeps false changes below 5 % for correlated runs, too
	// (TestTruthOfChanges).
	steady = 100
	// shortest is the minimum number of values between two change points.
	shortest = 4
)

// changePoints returns the change points of a sequence: the index of the first value
// after each change, ascending.
//
// Within windows it splits the sequence where the energy statistic between both sides
// is largest (E-divisive: Matteson & James, J. Am. Stat. Assoc. 109, 2014), as long as
// Welch's t-test separates the sides. It then removes the weakest point until each is
// significant at 0.001 between its neighbours. Using a t-test instead of permutations
// makes it deterministic; windows make it linear, as in Apache Otava (Fleming et al.,
// ICPE 2023).
//
// Welch's test assumes independent runs. With correlated or periodic runs, every fluctuation would
// be significant. Each change must therefore also exceed the variation between its neighbours
// (selfNormalized), which assumes nothing about the dependence between runs.
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
	points := slices.Sorted(maps.Keys(found))
	points = prune(values, points, func(before, after []float64) float64 { return -pValue(before, after) }, -significance)
	return prune(values, points, selfNormalized, steady)
}

// divide finds change points in values[from:to], including weak ones.
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

// split returns the index at which the energy statistic between the values before and after it is
// largest, or 0 if there are too few values:
//
//	nm/(n+m) · (2·mean|x−y| − mean|x−x'| − mean|y−y'|)
//
// where each mean is over all pairs of two different values.
func split(values []float64) int {
	total := len(values)
	if total < 2*shortest {
		return 0
	}
	// Sums of distances within and between the sides, updated as values move from one
	// side to the other.
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

// pValue returns the p-value of Welch's t-test that both sides have the same mean. If the values of
// a side are all equal, as rounded values may be, it is the share of permutations that separate the
// values equally well.
func pValue(xs, ys []float64) float64 {
	test, err := stats.TwoSampleWelchTTest(stats.Sample{Xs: xs}, stats.Sample{Xs: ys}, stats.LocationDiffers)
	if err == nil && !math.IsNaN(test.P) {
		return test.P
	}
	if len(xs) == 0 || len(ys) == 0 || xs[0] == ys[0] {
		return 1
	}
	n, m := float64(len(xs)), float64(len(ys))
	return min(1, 2/combin.GeneralizedBinomial(n+m, n))
}

// selfNormalized returns the statistic of Shao & Zhang (J. Am. Stat. Assoc. 105, 2010) for a change
// of the mean: the squared cumulative sum at the change, relative to the cumulative sums within
// both sides. Correlation increases both by the same factor, so the correlation length need not be
// known.
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

// prune removes change points, the weakest first, until the strength of each remaining one exceeds
// least. The strength is computed from the values up to the neighbouring change points.
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
			return math.Inf(-1) // two windows found the same change at slightly different positions
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
