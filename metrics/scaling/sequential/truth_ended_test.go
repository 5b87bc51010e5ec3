package sequential

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// A limitedMachine trains to a target, and ends runs that take longer than a limit, as max_minutes
// does: they miss the target.
type limitedMachine struct {
	*machine
	limit float64 // seconds
	hours float64 // worker-hours, of ended runs until their end
}

// observe turns the runs made since the last call into trainings.
func (m *limitedMachine) observe() {
	for i := range m.obs {
		o := &m.obs[i]
		if o.Evaluations != nil {
			continue
		}
		took, accuracy := 1e6/o.Values["throughput"], 0.75
		o.Values["to_0.75"] = took
		if took > m.limit {
			took, accuracy, o.Values["to_0.75"] = m.limit, 0.7, math.Inf(1)
		}
		m.hours += float64(o.Workers) * took / 3600
		o.Evaluations = []scaling.Evaluation{{Seconds: took, Epoch: 1, Samples: int64(took * o.Values["throughput"]), Accuracy: accuracy}}
	}
}

func (m *limitedMachine) until(t *testing.T, r *rand.Rand, q Question) *Look {
	q.Hours = func(workers int) float64 { return float64(workers) }
	target := map[int]int{}
	for _, n := range m.counts {
		target[n] = First
	}
	for {
		m.blocks(r, target)
		m.observe()
		l, _ := look(t, m.machine, q)
		b, _ := q.Next(l, -1)
		if b == nil {
			return l
		}
		target = b.Target
	}
}

// Runs that end before the target, at 1.1 or 1.5 times the deadline that is asked about, are misses
// and not lost: the answers stay right. With -short, a tenth of the studies is simulated.
func TestTruthOfEndedRuns(t *testing.T) {
	studies := 100
	if testing.Short() {
		studies /= 10
	}
	design, err := NewDesign(Most)
	if err != nil {
		t.Fatal(err)
	}
	ends := []float64{math.Inf(1), 1.1, 1.5} // over the deadline
	for k, f := range families {
		var decided, wrong [3]int
		var hours [3]float64
		judged := 0
		r := rand.New(rand.NewPCG(uint64(k), 51))
		for i := range studies {
			m := newMachine(r, f, []int{1, 2, 4, 8}, curves[i%len(curves)](r))
			a := limits[0].draw(m, r.Float64())
			wish := advice.Options{Target: new(measure.Accuracy(0.75)), Deadline: a.wish.Deadline}
			seed := r.Uint64()
			if m.drift == nil {
				judged++
			}
			for c, limit := range ends {
				own := &limitedMachine{machine: m.again(), limit: limit * a.wish.Deadline}
				l := own.until(t, rand.New(rand.NewPCG(seed, 1)), Question{Wish: wish, Design: design})
				hours[c] += own.hours
				if !l.Decided {
					continue
				}
				decided[c]++
				if m.drift == nil && a.wrong(m, slices.Index(m.counts, answer(l))) {
					wrong[c]++
				}
			}
		}
		for c, limit := range ends {
			t.Logf("%-42s ended at %3.1f of the deadline: wrong %d of %d, decided %d, hours %.2f", f.name, limit, wrong[c], judged, decided[c], hours[c]/hours[0])
			if judged > 0 && share(wrong[c], judged) > 5+300*math.Sqrt(0.05*0.95/float64(judged)) {
				t.Errorf("%s, ended at %g: %d of %d answers are wrong", f.name, limit, wrong[c], judged)
			}
		}
	}
}
