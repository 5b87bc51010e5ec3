package capacity

import (
	"math"
	"testing"
)

// Between 2 replicas that carry 100 [90, 110] and 8 that carry 300 [280, 320], 4 are half way on
// the logarithm: √(100·300). The interval is wider by 2 % for each time as many, 8/2.
func TestRateBetween(t *testing.T) {
	measured := []carried{{replicas: 2, runs: 6, rate: 100, low: 90, high: 110}, {replicas: 8, runs: 6, rate: 300, low: 280, high: 320, byRates: true}}
	near := func(got, want float64) bool { return math.Abs(got/want-1) < 1e-9 }
	c := rateAt(measured, 4)
	if c.replicas != 4 || c.runs != 0 || !c.byRates || !near(c.rate, math.Sqrt(30000)) || !near(c.low, math.Sqrt(90*280)*0.92) || !near(c.high, math.Sqrt(110*320)*1.08) {
		t.Errorf("%+v", c)
	}
	for _, m := range measured {
		if c := rateAt(measured, m.replicas); c != m {
			t.Errorf("measured: %+v, want %+v", c, m)
		}
	}
}

// Beyond 2 replicas, from exact rates: the power is log₂(rate ratio) = 1 + excess. Below 1 the
// middle is 1 + 1.5·excess and the low end 0.9 + 2.5·excess; above, 1 + 0.4·excess and the high
// end 1.1 + excess.
func TestRateBeyond(t *testing.T) {
	for _, last := range []float64{180, 200, 220} {
		excess := math.Log2(last/100) - 1
		middle, low, high := 1+1.5*excess, 0.9+2.5*excess, 1.1
		if excess > 0 {
			middle, low, high = 1+0.4*excess, 0.9, 1.1+excess
		}
		c := rateAt([]carried{{replicas: 1, runs: 6, rate: 100, low: 100, high: 100}, {replicas: 2, runs: 6, rate: last, low: last, high: last}}, 4)
		for _, e := range []struct{ got, power float64 }{{c.rate, middle}, {c.low, low}, {c.high, high}} {
			if math.Abs(e.got/(last*math.Exp2(e.power))-1) > 1e-9 {
				t.Errorf("%g at 2: %+v, want a power of %g", last, c, e.power)
			}
		}
	}
}
