package decision

import (
	"math"
	"testing"
)

func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*max(1, math.Abs(want)) }

// The median has a half below it, and the ends of a 95 % interval 2.5 % outside.
func TestBelief(t *testing.T) {
	b := Belief{Value: 2, Low: 1, High: 8, Level: 0.95}
	for x, want := range map[float64]float64{2: 0.5, 1: 0.025, 8: 0.975, 0: 0, 4: 0.8364525} { // Φ(1.959964/2)
		if got := b.AtMost(x); !near(got, want) {
			t.Errorf("at most %g: %g, want %g", x, got, want)
		}
	}
	// If one side has no width, the other side's width is used for both.
	if got := (Belief{Value: 2, Low: 2, High: 8, Level: 0.95}).AtMost(0.5); !near(got, 0.025) {
		t.Errorf("without a lower side: %g, want 0.025", got)
	}
	exact := Belief{Value: 2, Low: 2, High: 2, Level: 0.95}
	for x, want := range map[float64]float64{1.99: 0, 2: 1, 2.01: 1} {
		if got := exact.AtMost(x); got != want {
			t.Errorf("without error, at most %g: %g, want %g", x, got, want)
		}
	}
}

// Distances of 3 and 4 on the logarithm add up to 5; a single one of log 2 stays.
func TestBeliefArithmetic(t *testing.T) {
	e := func(x float64) float64 { return math.Exp(x / 10) }
	a := Belief{Value: 2, Low: 2 * e(-3), High: 2 * e(4), Level: 0.95}
	b := Belief{Value: 3, Low: 3 * e(-4), High: 3 * e(3), Level: 0.9}
	for name, c := range map[string]struct{ got, want Belief }{
		"product":  {a.Times(b), Belief{6, 6 * e(-5), 6 * e(5), 0.9}},
		"quotient": {a.Over(b), Belief{2.0 / 3, 2.0 / 3 * e(-math.Sqrt(18)), 2.0 / 3 * e(math.Sqrt(32)), 0.9}},
		"scaled":   {a.Scale(5), Belief{10, 10 * e(-3), 10 * e(4), 0.95}},
		"by one":   {a.Times(Belief{1, 1, 1, 0.99}), a},
	} {
		if !near(c.got.Value, c.want.Value) || !near(c.got.Low, c.want.Low) || !near(c.got.High, c.want.High) || c.got.Level != c.want.Level {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestLikely(t *testing.T) {
	for p, want := range map[float64]string{0: "under 1 %", 0.004: "under 1 %", 0.006: "1 %", 0.5: "50 %", 0.994: "99 %", 0.996: "over 99 %", 1: "over 99 %"} {
		if got := Likely(p); got != want {
			t.Errorf("%g: %q, want %q", p, got, want)
		}
	}
}

// The exact interval of a median (Conover, Practical Nonparametric Statistics, 1999, table
// A3): 2·2⁻⁶ = 3.1 % is the first that is below 5 %, and 2·(1+9)/2⁹ = 3.9 % the first with
// two runs outside each end; three need 2·(1+12+66)/2¹² = 3.9 %.
func TestRank(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 5: 0, 6: 1, 7: 1, 8: 1, 9: 2, 11: 2, 12: 3, 14: 3, 15: 4} {
		if got := Rank(n, 0.95); got != want {
			t.Errorf("%d runs: %d, want %d", n, got, want)
		}
	}
}

// Options above UpTo are never chosen, even if no other exists.
func TestUpTo(t *testing.T) {
	for upTo, want := range map[int]int{0: 2, 8: 2, 7: 1, 4: 1, 2: 0, 1: -1} {
		q := speeds([]int{2, 4, 8}, []float64{1, 2, 4}, 1.01)
		q.UpTo = upTo
		if r := Decide(q); r.Chosen != want {
			t.Errorf("up to %d: option %d, want %d", upTo, r.Chosen, want)
		}
	}
}
