package sequential

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// missing are ways in which runs miss a target: the chance as a function of the global batch, in
// units of one worker's. They are those of package advice's TestTruthOfMisses, some with more
// misses.
var missing = []struct {
	name   string
	strong bool
	of     func(r *rand.Rand) func(batch float64) float64
}{
	{"by chance, one batch", true, func(r *rand.Rand) func(float64) float64 {
		p := 0.6 * r.Float64()
		return func(float64) float64 { return p }
	}},
	{"by chance, any batch", false, func(r *rand.Rand) func(float64) float64 {
		p := 0.6 * r.Float64()
		return func(float64) float64 { return p }
	}},
	{"more on larger batches", false, func(r *rand.Rand) func(float64) float64 {
		half, steep := 2*math.Exp(r.Float64()*math.Log(16)), 1+3*r.Float64()
		return func(b float64) float64 { return 1 / (1 + math.Pow(half/b, steep)) }
	}},
	{"more on smaller batches", false, func(r *rand.Rand) func(float64) float64 {
		half, steep := 0.25*math.Exp(r.Float64()*math.Log(16)), 1+3*r.Float64()
		return func(b float64) float64 { return 1 / (1 + math.Pow(b/half, steep)) }
	}},
	{"from some batch on", false, func(r *rand.Rand) func(float64) float64 {
		from, p := 2*math.Exp(r.Float64()*math.Log(8)), 0.2+0.8*r.Float64()
		return func(b float64) float64 {
			if b < from {
				return 0
			}
			return p
		}
	}},
}

// TestTruthOfMissedTargets measures studies, some runs of which miss their target, until the default
// question by the time to the target is decided. The worth of a count is the speed of the runs that
// reach the target, times the share of runs that do, divided by 1.4 per doubling.
//
// With -short, a tenth of the studies is simulated.
func TestTruthOfMissedTargets(t *testing.T) {
	studies := 200
	if testing.Short() {
		studies /= 10
	}
	design, err := NewDesign(Most)
	if err != nil {
		t.Fatal(err)
	}
	for i, way := range missing {
		var all tally
		for k, f := range []family{families[0], families[1], families[5]} {
			r := rand.New(rand.NewPCG(uint64(k), uint64(60+i)))
			for j := range studies / 3 {
				m := newMachine(r, f, []int{1, 2, 4, 8}, curves[j%len(curves)](r))
				m.target(r, way.strong, way.of(r))
				q := Question{Design: design, Wish: advice.Options{Target: new(measure.Accuracy(0.75))}}
				reference := m.again()
				fixedFor(t, r, reference, 6, q.Wish)
				l, _ := until(t, r, m, q)
				all.count(m, answer(l), m.hours/reference.hours)
			}
		}
		all.log(t, way.name, "until")
		if share(all.wrong, all.studies) > 5+300*math.Sqrt(0.05*0.95/float64(all.studies)) {
			t.Errorf("%s: %.1f %% of decisions are wrong", way.name, share(all.wrong, all.studies))
		}
	}
}

// target gives the machine's runs a target, which they miss with a chance that depends on the global
// batch, and more samples to reach it on larger batches.
func (m *machine) target(r *rand.Rand, strong bool, miss func(batch float64) float64) {
	critical, spread := 4*math.Exp(3*r.Float64()), 0.02*math.Exp(2*r.Float64())
	batch := func(n int) float64 {
		if strong {
			return 16
		}
		return float64(n)
	}
	samples := func(n int) float64 { return 1e6 * (1 + batch(n)/critical) }
	for i, n := range m.counts {
		m.truth[i] *= (1 - miss(batch(n))) / samples(n)
	}
	m.train = func(r *rand.Rand, o *scaling.Observation) {
		took, accuracy := samples(o.Workers)*math.Exp(spread*r.NormFloat64()), 0.75
		o.Parameters["global_batch"] = int64(32 * batch(o.Workers))
		if !strong {
			o.Parameters["workload.scaling"] = "weak"
		}
		seconds := took / o.Values["throughput"]
		o.Values["to_0.75"] = seconds
		if r.Float64() < miss(batch(o.Workers)) {
			o.Values["to_0.75"], accuracy = math.Inf(1), 0.7
		}
		o.Evaluations = []scaling.Evaluation{{Seconds: seconds, Epoch: 1, Samples: int64(took), Accuracy: accuracy}}
	}
}
