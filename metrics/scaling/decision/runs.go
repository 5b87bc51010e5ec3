package decision

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// Narrower returns the smallest number of runs above n with which the exact interval of a
// median is narrower than with n runs, or the first that has one: at 95 % it is the range of all
// runs for 6, 7 and 8 of them, and leaves out the two outermost from 9 on.
func Narrower(n int, level float64) int {
	own := Rank(n, level)
	for n++; Rank(n, level) == own; n++ {
	}
	return n
}

// Rank returns which order statistic, from the lowest, is the lower end of the exact
// interval of a median of n runs; 0: there is no interval.
func Rank(n int, level float64) int {
	if n < 1 {
		return 0
	}
	alpha := (1 - level) * (1 + 1e-12)
	b := distuv.Binomial{N: float64(n), P: 0.5}
	return sort.Search(n/2, func(l int) bool { return 2*b.CDF(float64(l)) > alpha })
}

// More returns how many more runs of an option to ask for, of which n were measured, so
// that an interval that ends half off the value, on the logarithm, may shrink to less
// than distance: at least as many as narrow it at all, and at most as many again.
func More(n int, half, distance, level float64) int {
	first := Narrower(n, level)
	most := max(first, 2*n)
	want := first
	if distance > 0 && !math.IsInf(half, 0) && !math.IsNaN(half) {
		// Errors of a median shrink with the square root of the number of runs.
		if need := math.Ceil(float64(n) * (half / distance) * (half / distance)); need > float64(first) {
			want = int(min(need, float64(most)))
		}
	} else {
		want = most
	}
	// The last number that narrows the interval, of those up to want.
	for next := Narrower(first, level); next <= want; next = Narrower(next, level) {
		first = next
	}
	return first - n
}
