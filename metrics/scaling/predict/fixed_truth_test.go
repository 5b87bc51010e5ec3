package predict

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fixed returns the machine with a fixed global batch. One worker takes as long for it as for its
// previous batch.
func fixed(m *machine, batch float64) *machine {
	m.sample *= m.batch / batch
	m.strong, m.batch = true, batch
	return m
}

// heldOut are trainings with a fixed global batch on which the model's constants were not tuned.
var heldOut = []kind{
	{"fixed batch, shared switch", false, func(r *rand.Rand) *drawn {
		m := plain(r)
		m.congest = within(r, 0.1, 0.5)
		return fixed(m, 2048).run(r, 3+r.IntN(3), 2, 16<<r.IntN(2))
	}},
	{"fixed batch, stragglers", false, func(r *rand.Rand) *drawn {
		m := plain(r)
		m.straggle = within(r, 0.01, 0.1)
		return fixed(m, 8192).run(r, 3+r.IntN(2), 2, 32)
	}},
	{"fixed batch, two counts", false, func(r *rand.Rand) *drawn {
		return fixed(plain(r), 1024).run(r, 2, 2, 8<<r.IntN(2))
	}},
	{"fixed batch, a rack border within the data", false, func(r *rand.Rand) *drawn {
		m := plain(r)
		m.nodeSize, m.rackSize, m.told = 4, 4, r.IntN(2) == 0
		m.across = m.sample * m.batch * within(r, 0.001, 0.01)
		return fixed(m, 4096).run(r, 4, 2, 32)
	}},
	{"fixed batch, contention of nodes", false, func(r *rand.Rand) *drawn {
		m := plain(r)
		m.nodeSize, m.window = 8, 0
		m.congest = within(r, 0.05, 0.3)
		return fixed(m, 4096).run(r, 4, 2, 64)
	}},
}

// With a fixed global batch, each doubling halves the computation that can overlap with transfers.
// Of all predictions at twice the largest count, at least 90 % contain the truth. Intervals stay
// useful: over all answers, and over those of each kind with 15 or more, the median width is at
// most 40 % of the step time and the median error at most 8 %.
//
// With -short a sixth of the studies are played.
func TestTruthOfFixedBatches(t *testing.T) {
	studies := 60
	if testing.Short() {
		studies /= 6
	}
	scores := judge(t, heldOut, studies, subject)
	useful := func(name string, s *score) {
		if median(s.width) > 0.40 || median(s.miss) > 0.08 {
			t.Errorf("%s: %v; want a width of at most 40 %% and an error of at most 8 %%", name, s)
		}
	}
	var all score
	for _, k := range heldOut {
		s := scores[k.name][2]
		all.asked, all.given, all.inside = all.asked+s.asked, all.given+s.given, all.inside+s.inside
		all.width, all.miss = append(all.width, s.width...), append(all.miss, s.miss...)
		if s.given >= 15 {
			useful(k.name, s)
		}
	}
	useful("all kinds", &all)
	t.Logf("all kinds, at 2 times: %v", &all)
	if n := float64(all.given); n < 0.4*float64(all.asked) || float64(all.inside) < 0.9*n-3*math.Sqrt(0.9*0.1*n) {
		t.Errorf("%v; want 90 %% inside, and 2 of 5 questions answered", &all)
	}
}
