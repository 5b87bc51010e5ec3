package decision

import (
	"math"
	"sort"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Belief describes what is known about a positive quantity: its median, and an
// interval that contains it with probability Level. If the interval has no width, the
// quantity has no error.
type Belief struct{ Value, Low, High, Level float64 }

// AtMost returns the probability that the quantity is at most x. It assumes that the
// logarithm is normally distributed on each side of Value, with the ends of the
// interval as quantiles. This is a two-piece normal distribution, as in fan charts
// (Britton, Fisher & Whitley, Bank of England Quarterly Bulletin 38, 1998).
func (b Belief) AtMost(x float64) float64 {
	end, other := b.High, max(0, b.Low)
	if x < b.Value {
		end, other = other, end
	}
	if end == b.Value { // happens by chance with order statistics of few runs
		end = other
	}
	sigma := math.Abs(math.Log(end/b.Value)) / distuv.UnitNormal.Quantile((1+b.Level)/2)
	if !(b.Value > 0 && x > 0 && sigma > 0) { // without error, or a quantity of 0
		if b.Value <= x {
			return 1
		}
		return 0
	}
	return distuv.UnitNormal.CDF(math.Log(x/b.Value) / sigma)
}

// Times returns the belief about the product of two quantities. It assumes that their
// errors are independent, so that errors of the logarithms add in quadrature.
func (b Belief) Times(c Belief) Belief {
	part := func(whole, end float64) float64 {
		if whole == end { // 0 over 0, too
			return 0
		}
		return math.Log(end / whole)
	}
	v := b.Value * c.Value
	return Belief{
		Value: v,
		Low:   v * math.Exp(-math.Hypot(part(b.Value, b.Low), part(c.Value, c.Low))),
		High:  v * math.Exp(math.Hypot(part(b.Value, b.High), part(c.Value, c.High))),
		Level: min(b.Level, c.Level),
	}
}

// Scale returns the belief about the quantity multiplied by a known factor.
func (b Belief) Scale(by float64) Belief {
	return Belief{b.Value * by, b.Low * by, b.High * by, b.Level}
}

// Over returns the belief about the quotient of two quantities.
func (b Belief) Over(c Belief) Belief {
	return b.Times(Belief{1 / c.Value, 1 / c.High, 1 / c.Low, c.Level})
}

// Likely formats a probability as a percentage, such as "97 %". It never returns "100
// %" or "0 %".
func Likely(p float64) string {
	switch x := math.Round(100 * p); {
	case x >= 100:
		return "over 99 %"
	case x < 1:
		return "under 1 %"
	default:
		return strconv.FormatFloat(x, 'f', 0, 64) + " %"
	}
}

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
