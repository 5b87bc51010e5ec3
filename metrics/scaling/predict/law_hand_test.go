package predict

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Where a step's quantities come from, by hand.
func TestPlace(t *testing.T) {
	for _, test := range []struct {
		name    string
		s       setting
		workers int
		batch   float64
		want    place
	}{
		// 8 replicas of 8 workers share 128 samples: 16 microbatches each, and (4 − 1)/2 of the
		// pipeline's bubble. A node holds one replica; 8 nodes are 2 racks of 4.
		{"a pipeline over racks", setting{Layout: Layout{Replica: 8, Stages: 4, Virtual: 2, Micro: 1}, nodeSize: 8, rackSize: 4}, 64, 128, place{64, 8, 17.5, 1, 8, 2}},
		// 12 replicas of 2 workers, 4 in a node of 8: 3 nodes exchange gradients.
		{"replicas in nodes", setting{Layout: Layout{Replica: 2, Stages: 1, Virtual: 1}, nodeSize: 8}, 24, 96, place{24, 12, 8, 4, 3, 1}},
		{"unknown nodes", setting{Layout: Layout{Replica: 1, Stages: 1, Virtual: 1}}, 6, 60, place{6, 6, 10, 1, 6, 1}},
		{"fewer replicas than a node holds", setting{Layout: Layout{Replica: 1, Stages: 1, Virtual: 1}, nodeSize: 8}, 4, 8, place{4, 4, 2, 4, 1, 1}},
		{"a replica larger than a node", setting{Layout: Layout{Replica: 16, Stages: 1, Virtual: 1}, nodeSize: 8}, 32, 8, place{32, 2, 4, 1, 2, 1}},
		{"microbatches of 2", setting{Layout: Layout{Replica: 1, Stages: 1, Virtual: 1, Micro: 2}}, 4, 32, place{4, 4, 4, 1, 4, 1}},
		{"9 nodes in racks of 4", setting{Layout: Layout{Replica: 1, Stages: 1, Virtual: 1}, nodeSize: 2, rackSize: 4}, 17, 17, place{17, 17, 1, 2, 9, 3}},
	} {
		if got := test.s.at(test.workers, test.batch); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// The terms at 16 workers in 4 nodes of 2 racks, with 8 microbatches each.
func TestTerms(t *testing.T) {
	p := place{workers: 16, replicas: 16, work: 8, inside: 4, parties: 4, racks: 2}
	start := place{workers: 2, replicas: 2, work: 8, inside: 1, parties: 2, racks: 1}
	want := map[string][3]float64{ // the time for a coefficient of 1, the usual size, what it is measured against
		"microbatches":            {8, 3, 8},
		"step":                    {1, 0.5, 1},
		"optimizer, sharded":      {1.0 / 16, 0.05, 0.5},
		"stragglers":              {8 * math.Sqrt(2*math.Log(16)), 0.1, 8 * math.Sqrt(2*math.Log(16))},
		"reduction in a node":     {0.75, 0.2, 1},
		"reduction between nodes": {0.75, 0.5, 1},
		"latency of a tree":       {2, 0.1, 1},
		"latency of a ring":       {3, 0.1, 3},
		"reduction between racks": {0.5, 0.2, 1},
	}
	s := &setting{}
	for _, term := range terms {
		w, known := want[term.name]
		if !known || !close6(term.of(s, p), w[0]) || term.usual != w[1] || !close6(term.unit(s, start, p), w[2]) {
			t.Errorf("%s: %g, usual %g, unit %g, want %v", term.name, term.of(s, p), term.usual, term.unit(s, start, p), w)
		}
		delete(want, term.name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	// A term that costs nothing where it is measured counts as it is.
	for _, term := range terms {
		if alone := (place{workers: 1, replicas: 1, work: 8, inside: 1, parties: 1, racks: 1}); term.name == "latency of a ring" && term.unit(s, alone, alone) != 1 {
			t.Errorf("a ring of one: unit %g", term.unit(s, alone, alone))
		}
	}
}

func TestBendAndUncover(t *testing.T) {
	at := place{work: 8, parties: 4}
	b := bend(at, false)
	for _, test := range []struct {
		p    place
		want float64
	}{
		{place{work: 8, parties: 16}, 2}, {place{work: 4, parties: 16}, 1}, {place{work: 16, parties: 8}, 1}, {place{work: 8, parties: 2}, 0}, {at, 0},
	} {
		if got := b.of(nil, test.p); !close6(got, test.want) {
			t.Errorf("bend at %+v: %g, want %g", test.p, got, test.want)
		}
	}
	if b.usual != 0.03 || bend(at, true).usual != 0.08 {
		t.Errorf("usual bends of %g, beyond the data %g", b.usual, bend(at, true).usual)
	}
	u := uncover(8, 0.5)
	if u.usual != 0.15 || u.of(nil, place{work: 6}) != 0.25 || u.of(nil, place{work: 10}) != 0 || u.of(nil, place{work: 8}) != 0 {
		t.Errorf("uncovered: usual %g, %g at 6", u.usual, u.of(nil, place{work: 6}))
	}
}

func average(n int, draw func(r *rand.Rand) float64) (mean, variance float64) {
	r := rand.New(rand.NewPCG(1, 2))
	sum, squares := 0.0, 0.0
	for range n {
		x := draw(r)
		sum, squares = sum+x, squares+x*x
	}
	mean = sum / float64(n)
	return mean, squares/float64(n) - mean*mean
}

// Moments of the distributions that are drawn from, from their formulas; 20,000 draws.
func TestDraws(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct {
		name                      string
		draw                      func(r *rand.Rand) float64
		mean, variance, low, high float64
	}{
		{"chi-squared, 4", func(r *rand.Rand) float64 { return chiSquared(r, 4) }, 4, 8, 0, inf},
		{"chi-squared, 20", func(r *rand.Rand) float64 { return chiSquared(r, 20) }, 20, 40, 0, inf},
		{"normal", func(r *rand.Rand) float64 { return cutNormal(r, -inf, inf) }, 0, 1, -inf, inf},
		// The half normal has a mean of √(2/π) and a variance of 1 − 2/π.
		{"half normal", func(r *rand.Rand) float64 { return cutNormal(r, 0, inf) }, math.Sqrt(2 / math.Pi), 1 - 2/math.Pi, 0, inf},
		{"below 0", func(r *rand.Rand) float64 { return cutNormal(r, -inf, 0) }, -math.Sqrt(2 / math.Pi), 1 - 2/math.Pi, -inf, 0},
		// φ(5)/Q(5) = 5.18650; the variance is 1 + 5·m − m².
		{"tail", func(r *rand.Rand) float64 { return cutNormal(r, 5, inf) }, 5.18650, 1 + 5*5.18650 - 5.18650*5.18650, 5, inf},
		{"lower tail", func(r *rand.Rand) float64 { return cutNormal(r, -inf, -5) }, -5.18650, 1 + 5*5.18650 - 5.18650*5.18650, -inf, -5},
		{"narrow in the tail", func(r *rand.Rand) float64 { return cutNormal(r, 6, 6.0005) }, 6.00025, 0.0005 * 0.0005 / 12, 6, 6.0005},
		// Truncated to −1 and 1: variance 1 − 2·φ(1)/(Φ(1) − Φ(−1)) = 0.29112.
		{"both sides", func(r *rand.Rand) float64 { return cutNormal(r, -1, 1) }, 0, 0.29112, -1, 1},
	} {
		least, most := inf, -inf
		mean, variance := average(20000, func(r *rand.Rand) float64 {
			x := test.draw(r)
			least, most = min(least, x), max(most, x)
			return x
		})
		// Five standard errors of the mean.
		if math.Abs(mean-test.mean) > 5*math.Sqrt(test.variance/20000) || math.Abs(variance/test.variance-1) > 0.15 || least < test.low || most > test.high {
			t.Errorf("%s: mean %g, variance %g, in [%g, %g]", test.name, mean, variance, least, most)
		}
	}
	if x := cutNormal(rand.New(rand.NewPCG(1, 1)), 2, 2); x != 2 {
		t.Errorf("between 2 and 2: %g", x)
	}
}

// How large a cost may be: by the prior with the shares of the table, which add up to 1.
func TestMagnitudes(t *testing.T) {
	want := map[float64]float64{1: 0.08, 0.4: 0.08, 0.15: 0.08, 0.06: 0.08, 0.02: 0.08, 0.007: 0.1, 0.002: 0.2, 0.0007: 0.3}
	seen := map[float64]float64{}
	const n = 20000
	r := rand.New(rand.NewPCG(3, 4))
	for range n {
		seen[magnitude(r, math.NaN())] += 1.0 / n
	}
	for size, share := range want {
		if math.Abs(seen[size]-share) > 5*math.Sqrt(share*(1-share)/n) {
			t.Errorf("%g in %g of the draws, want %g", size, seen[size], share)
		}
	}
	// A coefficient of 1: the likelihoods of 1, 0.4 and 0.15 are exp(−1/2), exp(−1/0.32)/0.4 and
	// exp(−1/0.045)/0.15, so 0.607 : 0.110 : 0.
	clear(seen)
	for range n {
		seen[magnitude(r, 1)] += 1.0 / n
	}
	first, second := math.Exp(-0.5), math.Exp(-1/0.32)/0.4
	if math.Abs(seen[1]-first/(first+second)) > 0.02 || seen[1]+seen[0.4] < 0.999 {
		t.Errorf("of 1: %v", seen)
	}
	// A coefficient of 0: all are in the ratio share/size, most of it the smallest.
	clear(seen)
	for range n {
		seen[magnitude(r, 0)] += 1.0 / n
	}
	total := 0.0
	for size, share := range want {
		total += share / size
	}
	if want := 0.3 / 0.0007 / total; math.Abs(seen[0.0007]-want) > 0.02 {
		t.Errorf("of 0: %g, want %g", seen[0.0007], want)
	}
}

// How much counts scatter about the law: from 0.05 % in steps of a quarter to 8.5 %, by a half
// normal of 1 %.
func TestScatterAboutTheLaw(t *testing.T) {
	for k, o := range oddities {
		at := 0.0005
		for range k {
			at *= 1.25
		}
		if !close6(o.at/at, 1) || !close6(o.likely, -at*at/2e-4) {
			t.Errorf("%d: %g, %g", k, o.at, o.likely)
		}
	}
	draw := func(off float64, rows int) float64 {
		d := &design{terms: 1}
		for i := range rows {
			sign := float64(1 - 2*(i%2))
			d.rows, d.runs = append(d.rows, []float64{1 + sign*off}), append(d.runs, 6)
		}
		mean, _ := average(500, func(r *rand.Rand) float64 { return d.oddity(r, []float64{1}, 1e-8) })
		return mean
	}
	if got := draw(0, 20); got > 0.001 {
		t.Errorf("counts on the law scatter by %g", got)
	}
	// With 40 counts that are 2 % off, the data outweighs the prior.
	if got := draw(0.02, 40); math.Abs(got/0.02-1) > 0.2 {
		t.Errorf("counts 2 %% off scatter by %g", got)
	}
	if got := draw(10, 6); math.Abs(got/oddities[23].at-1) > 1e-6 {
		t.Errorf("counts far off scatter by %g", got)
	}
}

func TestStalledAndNearer(t *testing.T) {
	law := func(rates map[int]float64, counts ...int) *Law {
		l := &Law{setting: setting{Layout: Layout{Replica: 1, Stages: 1, Virtual: 1}}}
		for _, n := range counts { // one sample a worker and step
			l.counts = append(l.counts, Count{Workers: n, Batch: float64(n), Steps: []float64{float64(n) / rates[n]}})
		}
		return l
	}
	for _, test := range []struct {
		name  string
		rates map[int]float64
		why   string
		from  int
	}{
		{"5.1 % less", map[int]float64{2: 100, 4: 94.9}, "the rate falls, from 100 at 2 to 94.9 at 4 workers", 2},
		{"4.9 % less", map[int]float64{2: 100, 4: 95.1}, "4 workers get 0.951 times as much done as 2: something is saturated", 2},
		{"1.149 times", map[int]float64{2: 100, 4: 114.9}, "4 workers get 1.15 times as much done as 2: something is saturated", 2},
		{"1.151 times", map[int]float64{2: 100, 4: 115.1}, "", 0},
		{"1.1 times by less than twice the workers", map[int]float64{3: 100, 4: 110}, "", 0},
	} {
		counts := []int{2, 4}
		if test.rates[3] > 0 {
			counts = []int{3, 4}
		}
		why, from := law(test.rates, counts...).stalled()
		if why != test.why || from != test.from {
			t.Errorf("%s: %q from %d", test.name, why, from)
		}
	}
	l := law(map[int]float64{2: 100, 4: 200}, 2, 4)
	for workers, want := range map[int]int{8: 8, 16: 8, 17: 16, 100: 16} {
		if got := l.nearer(workers); got != want {
			t.Errorf("nearer to %d: %d, want %d", workers, got, want)
		}
	}
}

func TestMissedHoldOut(t *testing.T) {
	for _, test := range []struct {
		measured float64
		e        Estimate
		missed   bool
	}{
		{1, Estimate{1.2, 1.1, 1.3}, true}, {1, Estimate{0.8, 0.7, 0.9}, true},
		{1, Estimate{1.2, 0.9, 1.3}, false},   // inside
		{1, Estimate{0.8, 0.7, 1.1}, false},   // inside
		{1, Estimate{1.09, 1.08, 1.1}, false}, // less than a tenth
		{2, Estimate{2.3, 2.1, 2.5}, true},    // 15 %
	} {
		h := HoldOut{Measured: test.measured, Predicted: test.e}
		if h.Missed() != test.missed {
			t.Errorf("%+v: missed %v, error %g", h, h.Missed(), h.Error())
		}
	}
	if got := (&HoldOut{Measured: 2, Predicted: Estimate{Value: 2.3}}).Error(); !close6(got, 0.15) {
		t.Errorf("error %g", got)
	}
}

func TestCheckStudy(t *testing.T) {
	good := Layout{Replica: 1, Stages: 1}
	count := func(workers int, batch float64, steps ...float64) Count {
		return Count{Workers: workers, Batch: batch, Steps: steps}
	}
	for _, test := range []struct {
		name   string
		s      Study
		refuse string // "": valid
	}{
		{"two counts", Study{Layout: good, Counts: []Count{count(1, 8, 1), count(2, 16, 1)}}, ""},
		{"no replica", Study{Layout: Layout{Replica: 0, Stages: 1}}, "a layout of 0 workers a replica"},
		{"no stage", Study{Layout: Layout{Replica: 1, Stages: 0}}, "0 pipeline stages"},
		{"negative microbatch", Study{Layout: Layout{Replica: 1, Stages: 1, Micro: -1}}, "microbatches of -1"},
		{"negative rack", Study{Layout: good, RackSize: -1}, "a layout of"},
		{"no run", Study{Layout: good, Counts: []Count{count(1, 8), count(2, 16, 1)}}, "1 worker without a run"},
		{"no time", Study{Layout: good, Counts: []Count{count(1, 8, 0), count(2, 16, 1)}}, "a step time of 0 s"},
		{"endless", Study{Layout: good, Counts: []Count{count(1, 8, math.Inf(1)), count(2, 16, 1)}}, "a step time of +Inf s"},
		{"no count", Study{Layout: good}, "no run has a step time"},
		{"one count", Study{Layout: good, Counts: []Count{count(4, 8, 1)}}, "runs on 4 workers alone"},
		{"no batch", Study{Layout: good, Counts: []Count{count(1, 0, 1)}}, "a global batch of 0"},
		{"no whole replica", Study{Layout: Layout{Replica: 2, Stages: 1}, Counts: []Count{count(3, 8, 1)}}, "3 workers cannot be divided into replicas of 2"},
		{"no whole microbatch", Study{Layout: Layout{Replica: 1, Stages: 1, Micro: 4}, Counts: []Count{count(2, 12, 1)}}, "give a multiple of 8"},
		{"less than a microbatch", Study{Layout: Layout{Replica: 1, Stages: 1, Micro: 4}, Counts: []Count{count(2, 4, 1)}}, "give a multiple of 8"},
		{"one microbatch", Study{Layout: Layout{Replica: 1, Stages: 1, Micro: 4}, Counts: []Count{count(1, 4, 1), count(2, 8, 1)}}, ""},
	} {
		err := test.s.check()
		if (err == nil) != (test.refuse == "") || err != nil && !strings.Contains(err.Error(), test.refuse) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// Steps of 1 s at all worker counts; the batch grows with the workers: 10 samples/s of each worker.
func TestAskAndBand(t *testing.T) {
	s := &Series{Study: Study{Layout: Layout{Replica: 1, Stages: 1, Virtual: 1}}, Weak: true, Unit: "samples/s"}
	for _, n := range []int{1, 2, 4} {
		s.Counts = append(s.Counts, Count{Workers: n, Nodes: n, Batch: float64(10 * n), Steps: []float64{0.99, 1, 1.01}})
	}
	a, err := Ask(s, Question{Workers: 8})
	if err != nil {
		t.Fatal(err)
	}
	if a.Refused != "" || a.GlobalBatch == nil || *a.GlobalBatch != 80 || math.Abs(a.Step.Value-1) > 0.03 || math.Abs(a.Rate.Value*a.Step.Value/80-1) > 1e-9 ||
		math.Abs(a.Rate.Low*a.Step.High/80-1) > 1e-9 || math.Abs(a.Rate.High*a.Step.Low/80-1) > 1e-9 {
		t.Errorf("%+v, step %+v, rate %+v", a, a.Step, a.Rate)
	}
	if len(a.Measured) != 3 || a.Measured[2].Workers != 4 || a.Measured[2].Runs != 3 || *a.Measured[2].Step != 1 || a.Measured[2].Rate != 40 || *a.Measured[2].GlobalBatch != 40 {
		t.Errorf("measured %+v", a.Measured)
	}
	// The hold-out is at 4 workers, with a rate of 40.
	if a.HeldOut == nil || math.Abs(a.HeldOut.Value/40-1) > 0.05 || math.Abs(a.HeldOut.Value/40-1-*a.HoldOut) > 1e-3 || !(a.HeldOut.Low < a.HeldOut.Value && a.HeldOut.Value < a.HeldOut.High) {
		t.Errorf("held out %+v, off by %v", a.HeldOut, a.HoldOut)
	}
	if _, err := Ask(s, Question{Workers: 8, GlobalBatch: 160}); err != nil {
		t.Error(err)
	}
	workers, rates, err := Band(s, 0.95, 16)
	if err != nil || len(workers) != 5 || workers[0] != 1 || workers[4] != 16 {
		t.Fatalf("band over %v, %v", workers, err)
	}
	for i, r := range rates {
		if want := float64(10 * workers[i]); !(r.Low <= want && want <= r.High && r.Low < r.Value && r.Value < r.High) || math.Abs(r.Value/want-1) > 0.1 {
			t.Errorf("%d workers: %+v, want %g", workers[i], r, want)
		}
	}
	s.Counts = s.Counts[:1]
	if _, _, err := Band(s, 0.95, 16); err == nil {
		t.Error("a band of one count")
	}
}
