package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A fleet gives the true largest rate within the limit by the number of replicas. The families
// were written before the estimator.
type fleet func(replicas float64) float64

// pooled is an M/M/k queue: k replicas share one line. A request is served in a second on
// average; the limit is on the 95th percentile of the time from its arrival. For λ below k,
// P(T > t) = e^-t·(1 + C·(1 − e^-t(k−1−λ))/(k−1−λ)) with Erlang's C.
func pooled(limit float64) fleet {
	return func(k float64) float64 {
		late := func(rate float64) float64 {
			blocked, n := 1.0, 0.0 // Erlang's B by its recursion
			for n = 1; n <= k; n++ {
				blocked = rate * blocked / (n + rate*blocked)
			}
			c := blocked / (1 - rate/k*(1-blocked))
			x := k - 1 - rate
			part := limit
			if math.Abs(x) > 1e-9 {
				part = (1 - math.Exp(-limit*x)) / x
			}
			return math.Exp(-limit) * (1 + c*part)
		}
		low, high := 0.0, k
		for range 60 {
			if mid := (low + high) / 2; late(mid) <= 0.05 {
				low = mid
			} else {
				high = mid
			}
		}
		return low
	}
}

var fleets = []struct {
	name string
	wall bool
	draw func(r *rand.Rand) fleet
}{
	{"own lines", false, func(r *rand.Rand) fleet { return func(k float64) float64 { return k } }},
	{"one line", false, func(r *rand.Rand) fleet { return pooled(3.2 + 5*r.Float64()) }},
	{"the shorter of two lines", false, func(r *rand.Rand) fleet {
		line := pooled(3.5 + 5*r.Float64())
		return func(k float64) float64 { return math.Sqrt(line(k) * k * line(1)) }
	}},
	{"contention", false, func(r *rand.Rand) fleet {
		s := 0.01 + 0.09*r.Float64()
		return func(k float64) float64 { return k / (1 + s*(k-1)) }
	}},
	{"contention and coherence", false, func(r *rand.Rand) fleet {
		s, c := 0.05*r.Float64(), 0.002+0.006*r.Float64()
		return func(k float64) float64 { return k / (1 + s*(k-1) + c*k*(k-1)) }
	}},
	{"one line, contention", false, func(r *rand.Rand) fleet {
		line, s := pooled(3.5+5*r.Float64()), 0.01+0.06*r.Float64()
		return func(k float64) float64 { return line(k) / (1 + s*(k-1)) }
	}},
	{"a wall behind what was measured", true, func(r *rand.Rand) fleet {
		most := 4.2 + 6*r.Float64()
		return func(k float64) float64 { return min(k, most) }
	}},
}

// TestTruthOfCapacity asks how many replicas carry a demand. At most 2.5 % of the statements that
// fewer do not may be wrong, and of the answers that are sure to carry it. If a limit lies just
// beyond the measured counts, both shares are only reported.
//
// With -short, a tenth of the fleets is simulated.
func TestTruthOfCapacity(t *testing.T) {
	plays := 400
	if testing.Short() {
		plays /= 10
	}
	for i, f := range fleets {
		r := rand.New(rand.NewPCG(uint64(i), 700))
		var asked, answered, carried, tooMany, atLeast, given, said, held int
		_ = given
		for range plays {
			carry := f.draw(r)
			counts := [][]int{{1}, {1, 2}, {1, 2, 3}, {1, 2, 4}, {2, 4}, {3}}[r.IntN(6)]
			largest := counts[len(counts)-1]
			noise, runs := 0.01+0.04*r.Float64(), 6+r.IntN(5)
			each := 100 / carry(1)
			measured := map[int][]float64{}
			for _, k := range counts {
				for range runs {
					measured[k] = append(measured[k], each*carry(float64(k))*math.Exp(noise*r.NormFloat64()))
				}
			}
			want := 1 + r.IntN(3*largest)
			demand := each * (carry(float64(want-1)) + (carry(float64(want))-carry(float64(want-1)))*(0.1+0.8*r.Float64()))
			if want > 1 && carry(float64(want)) <= carry(float64(want-1)) {
				continue
			}
			truth := want
			a := Estimate(drawnCurve(t, measured), Load{Rate: demand}, nil)
			asked++
			if a.AtLeast > truth {
				atLeast++
			}
			if a.Replicas == 0 {
				continue
			}
			answered++
			if each*carry(float64(a.Replicas)) >= demand {
				carried++
			}
			if a.Replicas > truth+max(1, truth/4) {
				tooMany++
			}
			said++
			if a.AtLeast <= truth && truth <= a.Replicas {
				held++
			}
		}
		share := func(n, of int) float64 { return 100 * float64(n) / float64(max(1, of)) }
		t.Logf("%-34s answered %3.0f %% of %d; carries it %5.1f %%, over a quarter too many %3.0f %%; fewer do not: wrong %.1f %%; range holds the truth %.0f %%",
			f.name, share(answered, asked), asked, share(carried, answered), share(tooMany, answered), share(atLeast, asked), share(held, said))
		most := func(of int) float64 { return 2.5 + 300*math.Sqrt(0.025*0.975/float64(max(1, of))) }
		if !f.wall && (share(atLeast, asked) > most(asked) || 100-share(carried, answered) > most(answered)) {
			t.Errorf("%s: fewer do not wrong in %.1f %%, not carried in %.1f %%", f.name, share(atLeast, asked), 100-share(carried, answered))
		}
	}
}

// drawnCurve returns a curve of runs with these largest rates, by replicas.
func drawnCurve(t *testing.T, rates map[int][]float64) scaling.Curve {
	t.Helper()
	var obs []scaling.Observation
	for replicas, list := range rates {
		for i, x := range list {
			obs = append(obs, scaling.Observation{Run: fmt.Sprintf("r%d-%d", replicas, i), Study: "s", Point: fmt.Sprint("p", replicas), Repeat: i + 1,
				Kind: "serve", Framework: "native", Workers: replicas, Parameters: map[string]any{"workload.limit": "p95=50ms"},
				Places: []measure.Place{{At: map[string]any{measure.Batch: 1.0}, Values: map[string]float64{measure.RateWithinLimit: x}}}})
		}
	}
	m, err := measure.Find(measure.RateWithinLimit)
	if err != nil {
		t.Fatal(err)
	}
	curves, err := scaling.Analyse(obs, scaling.Options{Measure: m})
	if err != nil || len(curves) != 1 {
		t.Fatal(err, len(curves))
	}
	return curves[0]
}

// By hand: one replica with an exponential second and P95 within t carries 1 − ln(20)/t (M/M/1:
// the time is exponential with rate 1 − λ); many carry nearly as many as they are.
func TestPooledByHand(t *testing.T) {
	if got, want := pooled(5)(1), 1-math.Log(20)/5; math.Abs(got-want) > 1e-9 {
		t.Errorf("%g, want %g", got, want)
	}
	if got := pooled(5)(200); got < 185 || got >= 200 {
		t.Errorf("200 carry %g", got)
	}
}
