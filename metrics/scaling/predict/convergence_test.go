package predict

import (
	"math"
	"testing"
)

// Two batches determine the formula: 1000·(1 + B/500) is 1200 at 100 and 2000 at 500.
func TestConvergence(t *testing.T) {
	var runs []ToTarget
	for range 3 {
		for _, b := range []float64{100, 200, 500} {
			runs = append(runs, ToTarget{Batch: b, Samples: 1000 * (1 + b/500)})
		}
	}
	c, err := FitConvergence(runs, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Predict(1000); err != nil || math.Abs(p.Value-3000) > 1 || p.Low > p.Value || p.High < p.Value {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := c.Predict(2001); err == nil {
		t.Error("predicted beyond 4 times the largest batch")
	}
	// The number of samples does not depend on the batch.
	flat := []ToTarget{{100, 1000}, {100, 1010}, {200, 1002}, {200, 992}, {400, 1001}, {400, 995}}
	if c, err := FitConvergence(flat, 0.95); err != nil {
		t.Error(err)
	} else if p, err := c.Predict(300); err != nil || math.Abs(p.Value/1000-1) > 0.01 {
		t.Errorf("%+v, %v", p, err)
	}
	// One batch only gives the samples at that batch.
	one, err := FitConvergence([]ToTarget{{64, 900}, {64, 1100}}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := one.Predict(64); err != nil || p.Value != 1000 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := one.Predict(128); err == nil {
		t.Error("one batch predicted another")
	}
	if _, err := FitConvergence(nil, 0.95); err == nil {
		t.Error("fitted nothing")
	}
	for _, bad := range []ToTarget{{0, 1}, {1, 0}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if _, err := FitConvergence([]ToTarget{bad}, 0.95); err == nil {
			t.Errorf("fitted %v", bad)
		}
	}
}
