package metrics

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With 500 steps per epoch every 8th is sampled: 62, in blocks of 62/20 = 3. If an epoch ends after
// 7 samples, its last block has 1.
func TestGradientSums(t *testing.T) {
	s := NewGradientSums(500, 8, 32)
	if s.Every() != 8 {
		t.Errorf("one step in %d", s.Every())
	}
	if g := s.Take(1, 0); g != nil {
		t.Errorf("%+v of no steps", g)
	}
	for i := range 7 {
		s.Add(float64(i), float64(i)/2)
	}
	want := &Gradients{Epoch: 2, Step: 52, Samples: 8, GlobalSamples: 32,
		Steps: []int{3, 3, 1}, Own: []float64{1, 4, 6}, Averaged: []float64{0.5, 2, 3}}
	if diff := cmp.Diff(want, s.Take(2, 52)); diff != "" {
		t.Error(diff)
	}
	for range 63 { // one epoch has 62 of them, the next 63
		s.Add(1, 1)
	}
	if g := s.Take(3, 552); len(g.Steps) != 21 || g.Own[0] != 1 || g.Steps[20] != 3 {
		t.Errorf("the epoch after it: %+v", g)
	}
	s.Add(math.Inf(1), 1)
	if g := s.Take(4, 98); g != nil {
		t.Errorf("%+v of a gradient that is not finite", g)
	}
}

func TestGradientsValidate(t *testing.T) {
	good := func() *Gradients {
		return &Gradients{Epoch: 1, Step: 5, Samples: 8, GlobalSamples: 16, Steps: []int{3, 2}, Own: []float64{2, 3}, Averaged: []float64{1, 0}}
	}
	if err := (&Event{Gradients: good()}).Validate(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Gradients){
		"gradients.epoch = 0":              func(g *Gradients) { g.Epoch = 0 },
		"gradients.samples = 0":            func(g *Gradients) { g.Samples = 0 },
		"gradients.global_samples = 8":     func(g *Gradients) { g.GlobalSamples = 8 },
		"gradients.steps is empty":         func(g *Gradients) { g.Steps = nil },
		"own has 1 entries and averaged 2": func(g *Gradients) { g.Own = g.Own[:1] },
		"gradients.steps[1] = 0":           func(g *Gradients) { g.Steps[1] = 0 },
		"a squared norm of -1 in block 0":  func(g *Gradients) { g.Averaged[0] = -1 },
		"a squared norm of NaN in block 1": func(g *Gradients) { g.Own[1] = math.NaN() },
	} {
		g := good()
		spoil(g)
		if err := (&Event{Gradients: g}).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// In short epochs more steps are sampled, and no epoch has more than twice 20 blocks.
func TestGradientSteps(t *testing.T) {
	for steps := range 2000 {
		s := NewGradientSums(steps, 1, 2)
		looked := (steps + s.every - 1) / s.every
		blocks := (looked + s.perBlock - 1) / s.perBlock
		if blocks > 40 || looked < min(steps, 20) || steps >= 8 && blocks < min(steps, 20) {
			t.Fatalf("of %d steps one in %d, in %d blocks of %d", steps, s.every, blocks, s.perBlock)
		}
	}
}
