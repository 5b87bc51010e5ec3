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
