package advice

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

func TestAtMost(t *testing.T) {
	estimate := func(value, low, high float64) *Estimate { return &Estimate{value, &low, &high} }
	for _, test := range []struct {
		of   *Estimate
		x    float64
		want float64
	}{
		// The ends of a 95 % interval are its 2.5 % and 97.5 % quantiles, each side by itself.
		{estimate(100, 80, 110), 80, 0.025},
		{estimate(100, 80, 110), 100, 0.5},
		{estimate(100, 80, 110), 110, 0.975},
		{estimate(100, 80, 110), 0, 0},
		{estimate(100, 80, 110), 1e300, 1},
		// An end at the value is chance: the other side's error counts.
		{estimate(100, 100, 125), 80, 0.025},
		// Without error it is what it is.
		{estimate(1, 1, 1), 1, 1},
		{estimate(1, 1, 1), 0.999, 0},
		// For nothing, or not known to be more than nothing.
		{estimate(0, 0, 0), 5, 1},
		{estimate(100, -20, 110), 50, 0.5},
		{estimate(100, 90, math.Inf(1)), 200, 0.5},
	} {
		if p, ok := test.of.atMost(test.x, 0.95); !ok || math.Abs(p-test.want) > 1e-9 {
			t.Errorf("%v at most %g: %g, %v, want %g", test.of.Value, test.x, p, ok, test.want)
		}
	}
	if _, ok := (&Estimate{Value: 1}).atMost(2, 0.95); ok {
		t.Error("a probability without an interval")
	}
}

func TestLikely(t *testing.T) {
	for p, want := range map[float64]string{1: "over 99 %", 0.996: "over 99 %", 0.994: "99 %", 0.5: "50 %", 0.004: "under 1 %", 0: "under 1 %"} {
		if got := Likely(p); got != want {
			t.Errorf("%g: %q, want %q", p, got, want)
		}
	}
}

// Five measured counts, on one node. Efficiencies of 8 and 16 workers are 80 % and
// 79.9 %, with runs that scatter by 2 %: which is the most at 80 % cannot be told, and
// the answer would be twice what it should, or half.
func TestUndecided(t *testing.T) {
	level := func(n float64) float64 {
		switch {
		case n == 1:
			return 1000
		case n == 16:
			return 799 * n
		}
		return 800 * n
	}
	change := func(o *scaling.Observation) {
		o.Nodes = 1
		o.Values["throughput"] *= 1 + 0.008*(float64(o.Repeat)-3.5)
	}
	s := series{counts: octaves, runs: 6, x: level, change: change}
	a := s.advise(t, Options{MinEfficiency: 0.8})
	if a.Workers != nil {
		t.Fatalf("%d, %q", *a.Workers, a.Reason)
	}
	// All keep 60 %, and nobody doubts it.
	if a := s.advise(t, Options{MinEfficiency: 0.6}); a.Workers == nil || *a.Workers != 16 || !strings.Contains(a.Reason[0], "or more (over 99 % likely): ") {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
	want := "The runs cannot tell how many workers can run at an efficiency of 80 % or more: "
	if !strings.HasPrefix(a.Reason[0], want) || !strings.Contains(a.Reason[0], "likely to, 16 workers 4") {
		t.Errorf("%q, want %q", a.Reason[0], want)
	}
}
