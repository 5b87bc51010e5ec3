package scaling

import (
	"math"
	"testing"
)

func TestMedian(t *testing.T) {
	e, err := Median([]float64{3, 1, 2, 6, 5, 4}, 0)
	if err != nil || e.Value != 3.5 || e.Runs != 6 || e.Interval == nil || e.Interval.Low != 1 || e.Interval.High != 6 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := Median([]float64{7}, 0); err != nil || e.Value != 7 || e.Interval != nil || e.Why == "" {
		t.Errorf("one run: %+v, %v", e, err)
	}
	for _, bad := range [][]float64{nil, {1, math.NaN()}, {math.Inf(1)}} {
		if _, err := Median(bad, 0); err == nil {
			t.Errorf("%v has a median", bad)
		}
	}
	if _, err := Median([]float64{1}, 1); err == nil {
		t.Error("a confidence of 1 was taken")
	}
}

// A run that misses the target ranks behind all that reach it. Of 9 runs the 2nd
// and the 8th are the ends of the interval, since 2·(1+9)/2⁹ = 0.039 may lie outside;
// of 8 the 1st and the 8th, since 2·(1+8)/2⁸ = 0.070 may not.
func TestMedianReached(t *testing.T) {
	missed := math.Inf(1)
	for _, test := range []struct {
		name   string
		xs     []float64
		median float64 // 0: none
		low    float64 // 0: no interval
		high   float64
	}{
		{"one of nine", []float64{8, 7, missed, 6, 5, 4, 3, 2, 1}, 5, 2, 8},
		{"one of eight", []float64{7, missed, 6, 5, 4, 3, 2, 1}, 4.5, 0, 0},
		{"two of nine", []float64{7, missed, missed, 6, 5, 4, 3, 2, 1}, 5, 0, 0},
		{"half", []float64{1, 2, missed, missed}, 0, 0, 0},
		{"all", []float64{missed}, 0, 0, 0},
		{"no runs", nil, 0, 0, 0},
	} {
		e, err := MedianReached(test.xs, 0)
		switch {
		case err != nil:
			t.Errorf("%s: %v", test.name, err)
		case e == nil || test.median == 0:
			if e != nil || test.median != 0 {
				t.Errorf("%s: %+v, want a median of %g", test.name, e, test.median)
			}
		case e.Value != test.median || e.Runs != len(test.xs) || (e.Interval == nil) != (test.low == 0) || (e.Interval == nil) == (e.Why == ""):
			t.Errorf("%s: %+v, want %g", test.name, e, test.median)
		case e.Interval != nil && (e.Interval.Low != test.low || e.Interval.High != test.high):
			t.Errorf("%s: from %g to %g, want %g to %g", test.name, e.Interval.Low, e.Interval.High, test.low, test.high)
		}
	}
	for _, bad := range [][]float64{{math.NaN()}, {math.Inf(-1)}} {
		if _, err := MedianReached(bad, 0); err == nil {
			t.Errorf("%v has a median", bad)
		}
	}
}
