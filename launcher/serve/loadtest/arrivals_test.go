package loadtest

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/scalebench/scalebench/launcher/study"
)

// 40,000 gaps have the mean 1/rate and the coefficient of variation of their distribution: 1 for Poisson, 0 for
// constant, 1/√shape for gamma.
func TestArrivals(t *testing.T) {
	for process, cv := range map[study.Arrivals]float64{"": 1, "poisson": 1, "constant": 0, "gamma(0.25)": 2, "gamma(4)": 0.5} {
		list := Arrivals{Process: process, Rate: 100, Span: 400 * time.Second, Seed: 3}.Times()
		var gaps []float64
		for i := 1; i < len(list); i++ {
			gaps = append(gaps, (list[i] - list[i-1]).Seconds())
		}
		mean, sd := stat.MeanStdDev(gaps, nil)
		// The number of arrivals has the standard deviation cv·√40,000: 400 for the burstiest.
		if math.Abs(float64(len(list))-40_000) > 3*200*cv+1 || math.Abs(mean-0.01) > 0.01*(3*cv/200+1e-4) || math.Abs(sd/mean-cv) > 0.05*cv+1e-6 {
			t.Errorf("%q: %d arrivals, gaps of %g s, cv %.3f; want 40000, 0.01 and %g", process, len(list), mean, sd/mean, cv)
		}
	}
}

// With a ramp of 10 s to 100/s there are 500 requests in the ramp, a quarter of them in its first half.
func TestRamp(t *testing.T) {
	list := Arrivals{Process: "constant", Rate: 100, Span: 20 * time.Second, Ramp: 10 * time.Second}.Times()
	count := func(until time.Duration) int {
		n, _ := slices.BinarySearch(list, until)
		return n
	}
	if half, ramp, all := count(5*time.Second), count(10*time.Second), len(list); half < 124 || half > 126 || ramp < 499 || ramp > 501 || all < 1499 || all > 1501 {
		t.Errorf("%d, %d and %d requests by 5, 10 and 20 s; want 125, 500 and 1500", half, ramp, all)
	}
}

// A trace of three requests at 0, 1 and 4 s, at its own rate of 2/4 per second and at twice that. Between the
// last request and the first of the next round is the mean gap.
func TestTraceArrivals(t *testing.T) {
	trace := []float64{0, 1, 4}
	if rate := TraceRate(trace); rate != 0.5 {
		t.Errorf("the trace's rate is %g, want 0.5", rate)
	}
	for rate, want := range map[float64][]time.Duration{
		0.5: {0, 1 * time.Second, 4 * time.Second, 6 * time.Second, 7 * time.Second},
		1:   {0, 500 * time.Millisecond, 2 * time.Second, 3 * time.Second, 3500 * time.Millisecond, 5 * time.Second, 6 * time.Second, 6500 * time.Millisecond},
	} {
		if got := (Arrivals{Process: "trace", Rate: rate, Span: 8 * time.Second, Trace: trace}).Times(); !slices.Equal(got, want) {
			t.Errorf("at %g/s: %v, want %v", rate, got, want)
		}
	}
	for _, flat := range [][]float64{{3}, {3, 3}} {
		if got := (Arrivals{Process: "trace", Rate: 2, Span: 2 * time.Second, Trace: flat}).Times(); len(got) != 3 || TraceRate(flat) != 0 {
			t.Errorf("%v: %v", flat, got)
		}
	}
}
