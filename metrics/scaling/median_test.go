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
