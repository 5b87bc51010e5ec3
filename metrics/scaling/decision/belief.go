package decision

import (
	"math"
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
