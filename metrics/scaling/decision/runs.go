package decision

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// Narrower returns the smallest number of runs above n with which the exact interval of a median
// is narrower than with n runs. If n runs have no interval, it returns the smallest number that
// has one. For example, at 95 %, the interval is the range of all runs for 6, 7 and 8 runs. From
// 9 runs on, it omits the smallest and the largest.
func Narrower(n int, level float64) int {
	own := Rank(n, level)
	for n++; Rank(n, level) == own; n++ {
	}
	return n
}

// Rank returns the rank, counted from the lowest, of the run that is the lower end of the exact
// interval of a median of n runs. It returns 0 if no interval exists.
func Rank(n int, level float64) int {
	if n < 1 {
		return 0
	}
	alpha := (1 - level) * (1 + 1e-12)
	b := distuv.Binomial{N: float64(n), P: 0.5}
	return sort.Search(n/2, func(l int) bool { return 2*b.CDF(float64(l)) > alpha })
}

// More returns how many more runs to suggest for an option with n runs, so that its interval may
// become narrow enough. half is the present half-width of the interval, on the logarithm, and
// distance the half-width wanted. The result is at least the number that makes the interval
// narrower at all, and at most twice as many runs in total.
func More(n int, half, distance, level float64) int {
	first := Narrower(n, level)
	most := max(first, 2*n)
	want := first
	if distance > 0 && !math.IsInf(half, 0) && !math.IsNaN(half) {
		// The error of a median is inversely proportional to the square root of the number of
		// runs.
		if need := math.Ceil(float64(n) * (half / distance) * (half / distance)); need > float64(first) {
			want = int(min(need, float64(most)))
		}
	} else {
		want = most
	}
	// Use the largest number up to want at which the interval becomes narrower.
	for next := Narrower(first, level); next <= want; next = Narrower(next, level) {
		first = next
	}
	return first - n
}
