package advice

import (
	"math"
	"testing"
)

func missesOf(level float64, counts map[float64][2]int) misses {
	m := newMisses(level)
	for batch, c := range counts {
		for i := range c[1] {
			m.add(batch, i < c[0])
		}
	}
	return m
}

// The intervals come from tables of exact binomial limits.
func TestShareOfMisses(t *testing.T) {
	m := missesOf(0.95, map[float64][2]int{100: {8, 10}, 200: {0, 10}, 300: {10, 10}})
	for batch, want := range map[float64][3]float64{100: {0.8, 0.4439, 0.9748}, 200: {0, 0, 0.3085}, 300: {1, 0.6915, 1}} {
		e := m.share(batch)
		if e.Value != want[0] || math.Abs(*e.Low-want[1]) > 5e-5 || math.Abs(*e.High-want[2]) > 5e-5 {
			t.Errorf("batch %g: %g [%.4f, %.4f], want %v", batch, e.Value, *e.Low, *e.High, want)
		}
	}
	if m.total != 18 {
		t.Errorf("%d misses in all, want 18", m.total)
	}
}

// One of ten misses at a batch of 100 and nine of ten at 400. By symmetry half do at their
// geometric mean, 200, with an interval that is symmetric around it. The profile
// likelihood of the logistic regression falls by χ²/2 = 1.92 at logits of ±1.67; the
// interval ends at most two steps of 0.25 outside of these.
func TestChanceOfMiss(t *testing.T) {
	m := missesOf(0.95, map[float64][2]int{100: {1, 10}, 400: {9, 10}})
	e := m.chance(200)
	if e == nil || math.Abs(e.Value-0.5) > 1e-9 || math.Abs(*e.Low+*e.High-1) > 1e-9 {
		t.Fatalf("%+v, want 0.5 and a symmetric interval", e)
	}
	if logit := math.Log(*e.High / (1 - *e.High)); logit < 1.67 || logit > 2.17 {
		t.Errorf("the upper end has a logit of %g, want 1.67 to 2.17", logit)
	}
	// A measured batch has its share of misses, or nil if no run misses.
	if e := m.chance(100); e == nil || e.Value != 0.1 {
		t.Errorf("at a measured batch: %+v, want 0.1", e)
	}
	m = missesOf(0.95, map[float64][2]int{100: {0, 10}, 400: {9, 10}})
	if e := m.chance(100); e != nil {
		t.Errorf("where no run misses: %+v, want none", e)
	}
	m = missesOf(0.95, map[float64][2]int{100: {0, 10}})
	if e := m.chance(200); e != nil {
		t.Errorf("where no run of any batch misses: %+v, want none", e)
	}
}

// The median of all runs is the quantile 0.5/(1−p) of those that reach the target: with a
// quarter of misses the quantile 2/3, 0.430727 standard deviations above the median.
func TestLater(t *testing.T) {
	for p, want := range map[float64]float64{0: 1, 0.25: math.Exp(0.2 * 0.430727), 0.5: math.Inf(1), 0.75: math.Inf(1)} {
		if got := later(p, 0.2); got != want && !near(got, want) {
			t.Errorf("p = %g: %g, want %g", p, got, want)
		}
	}
}

func TestLostBatch(t *testing.T) {
	for _, c := range []struct {
		counts map[float64][2]int
		want   float64
		what   string
	}{
		{nil, math.Inf(1), ""},
		{map[float64][2]int{100: {0, 10}, 200: {4, 10}}, math.Inf(1), ""}, // 4 of 10 is less than half
		{map[float64][2]int{100: {0, 10}, 200: {5, 10}, 400: {9, 10}}, 200, "at a global batch of 200, 5 of 10 runs miss the target"},
		// Batches below one that reaches the target do not count.
		{map[float64][2]int{100: {10, 10}, 200: {0, 10}}, math.Inf(1), ""},
		{map[float64][2]int{100: {10, 10}, 200: {0, 10}, 400: {10, 10}}, 400, "at a global batch of 400, 10 of 10 runs miss the target"},
	} {
		m := missesOf(0.95, c.counts)
		if got, what := m.lost(); got != c.want || what != c.what {
			t.Errorf("%v: %g, %q; want %g, %q", c.counts, got, what, c.want, c.what)
		}
	}
}
