package model

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// exact are six nearly equal runs at each count, of a time per sample.
func exact(counts []int, y func(n float64) float64) Data {
	var d Data
	for _, n := range counts {
		p := Measured{Workers: n}
		for i := range 6 {
			p.Throughputs = append(p.Throughputs, float64(n)/y(float64(n))*(1+1e-4*float64(i-3)))
		}
		d.Counts = append(d.Counts, p)
	}
	return d
}

// A cluster that follows the law is predicted: 1 ms of computing and transfers
// of a ring with 0.2 ms of bandwidth and 10 µs of latency a hop make, at 64
// workers, 1 + 0.2·63/64 + 0.63 = 1.826875 ms a sample and worker.
func TestFitFollowsTheLaw(t *testing.T) {
	counts := []int{1, 2, 4, 8, 16}
	ring := func(n float64) float64 { return 1e-3 + 0.2e-3*(n-1)/n + 10e-6*(n-1) }
	e, err := Fit(exact(counts, ring), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Predict(64)
	if err != nil {
		t.Fatal(err)
	}
	if want := 64 / 1.826875e-3; math.Abs(p.Value/want-1) > 0.005 || p.Low > want || p.High < want || !p.Beyond {
		t.Errorf("64 workers: %+v, want %.0f", p, want)
	}
	if got := strings.Join(e.Terms(), ", "); got != "compute, bandwidth, ring latency" {
		t.Errorf("terms: %s", got)
	}
	if p, err := e.Predict(12); err != nil || p.Beyond || math.Abs(p.Value/(12/ring(12))-1) > 0.005 {
		t.Errorf("12 workers: %+v, %v", p, err)
	}
}

// A resource that serves 4 workers and no more: throughput stands still.
func TestFitFindsTheKnee(t *testing.T) {
	e, err := Fit(exact([]int{1, 2, 4, 8, 16}, func(n float64) float64 { return 1e-3 * max(1, n/4) }), 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := e.Predict(64); err != nil || p.Low > 4000 || p.High < 4000 || math.Abs(p.Value/4000-1) > 0.01 {
		t.Errorf("%+v, %v; want 4000 samples/s", p, err)
	}
}

// With nodes of 8, what happens inside one does not bear on the rest.
func TestFitWholeNodes(t *testing.T) {
	y := func(n float64) float64 {
		if n < 8 {
			return 1e-3 * (3 - n/4) // no law at all
		}
		return 1e-3 + 0.1e-3*math.Log2(n/8)
	}
	d := exact([]int{1, 2, 4, 8, 16, 32, 64}, y)
	d.NodeSize = 8
	e, err := Fit(d, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Predict(256)
	if want := 256 / 1.5e-3; err != nil || p.Low > want || p.High < want {
		t.Errorf("%+v, %v; want %.0f", p, err, want)
	}
	var refusal *Refusal
	if _, err := e.Predict(100); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "cannot fill whole nodes of 8") {
		t.Errorf("100 workers: %v", err)
	}
	if _, err := e.Predict(264); !errors.As(err, &refusal) || !strings.Contains(err.Error(), "more than 4 times") {
		t.Errorf("264 workers: %v", err)
	}
}

func TestFitRefuses(t *testing.T) {
	linear := func(n float64) float64 { return 1e-3 }
	few := exact([]int{1, 2, 4, 8, 16}, linear)
	few.Counts[2].Throughputs = few.Counts[2].Throughputs[:4]
	nodes := exact([]int{1, 2, 4, 8, 16}, linear)
	nodes.NodeSize = 4
	jump := exact([]int{1, 2, 4, 8, 16}, func(n float64) float64 {
		if n == 16 {
			return 3e-3
		}
		return 1e-3
	})
	for _, tt := range []struct {
		name string
		d    Data
		why  string
	}{
		{"nothing", Data{}, "that needs 5 worker counts with 5 or more runs each that have a steady state; no run has one"},
		{"four counts", exact([]int{1, 2, 4, 8}, linear), "that have a steady state; there are 4"},
		{"few runs", few, "that have a steady state; 4 of the 5 measured have"},
		{"few whole nodes", nodes, "a fit of one network tier needs 4 worker counts that fill whole nodes of 4; there are 3"},
		{"hold-out", jump, "fitted to the other worker counts, the law is +200 % off at 16 workers; 10 % is allowed"},
		{"superlinear", exact([]int{1, 2, 4, 8, 16}, func(n float64) float64 { return 1e-3 / n }), "%"},
	} {
		var refusal *Refusal
		if _, err := Fit(tt.d, 0.95); !errors.As(err, &refusal) || !strings.Contains(refusal.Why, tt.why) {
			t.Errorf("%s: %v; want a refusal with %q", tt.name, err, tt.why)
		}
	}
	twice := exact([]int{1, 2, 4, 8, 8}, linear)
	wrong := exact([]int{1, 2, 4, 8, 16}, linear)
	wrong.Counts[0].Throughputs[0] = math.NaN()
	negative := exact([]int{1, 2, 4, 8, -16}, linear)
	for name, d := range map[string]Data{"twice": twice, "not a number": wrong, "negative": negative, "node": {NodeSize: -1}} {
		var refusal *Refusal
		if _, err := Fit(d, 0.95); err == nil || errors.As(err, &refusal) {
			t.Errorf("%s: %v; want an error", name, err)
		}
	}
	if _, err := Fit(exact([]int{1, 2, 4, 8, 16}, linear), 95); err == nil {
		t.Error("a level of 95 was taken")
	}
}

// Samples to a target at two batches say it all: 1000·(1 + B/500) is 1200 at
// 100 and 2000 at 500.
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
	// Batches that cost nothing.
	flat := []ToTarget{{100, 1000}, {100, 1010}, {200, 1002}, {200, 992}, {400, 1001}, {400, 995}}
	if c, err := FitConvergence(flat, 0.95); err != nil {
		t.Error(err)
	} else if p, err := c.Predict(300); err != nil || math.Abs(p.Value/1000-1) > 0.01 {
		t.Errorf("%+v, %v", p, err)
	}
	// One batch says what it takes at that batch.
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
