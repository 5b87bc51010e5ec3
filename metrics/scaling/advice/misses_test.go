package advice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// missing are ways in which runs miss a target: the chance as a function of the global batch, in
// units of one worker's. They were fixed before the estimator was written.
var missing = []struct {
	name   string
	strong bool
	of     func(r *rand.Rand) func(batch float64) float64
}{
	{"by chance, one batch", true, func(r *rand.Rand) func(float64) float64 {
		p := 0.3 * r.Float64()
		return func(float64) float64 { return p }
	}},
	{"by chance, any batch", false, func(r *rand.Rand) func(float64) float64 {
		p := 0.3 * r.Float64()
		return func(float64) float64 { return p }
	}},
	{"more on larger batches", false, func(r *rand.Rand) func(float64) float64 {
		half, steep := 4*math.Exp(r.Float64()*math.Log(16)), 1+3*r.Float64() // half miss at 4 to 64 workers' batch
		return func(b float64) float64 { return 1 / (1 + math.Pow(half/b, steep)) }
	}},
	{"more on smaller batches", false, func(r *rand.Rand) func(float64) float64 {
		half, steep := 0.25*math.Exp(r.Float64()*math.Log(16)), 1+3*r.Float64()
		return func(b float64) float64 { return 1 / (1 + math.Pow(b/half, steep)) }
	}},
	{"from some batch on", false, func(r *rand.Rand) func(float64) float64 {
		from, p := 2*math.Exp(r.Float64()*math.Log(16)), 0.2+0.8*r.Float64()
		return func(b float64) float64 {
			if b < from {
				return 0
			}
			return p
		}
	}},
	{"none", false, func(*rand.Rand) func(float64) float64 { return func(float64) float64 { return 0 } }},
}

// If runs miss the target, at least 95 % of the intervals contain the median time of all runs, in
// which misses rank last. This holds at counts between the measured ones, and beyond them if any
// run missed. If half of the runs or more miss, few studies get a time.
//
// With -short, a tenth of the studies is simulated.
func TestTruthOfMisses(t *testing.T) {
	studies := 300
	if testing.Short() {
		studies /= 10
	}
	for i, m := range missing {
		t.Run(m.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 2041))
			type tally struct{ asked, given, inside, none, wrong int }
			counted := map[Basis]*tally{Measured: {}, Interpolated: {}, Extrapolated: {}}
			for k := range studies {
				runs := []int{6, 10, 20}[k%3]
				chance := m.of(r)
				cost, least, critical := 0.1*r.Float64(), 1e6, 4*math.Exp(3*r.Float64())
				spread := 0.02 * math.Exp(2*r.Float64())
				batch := func(n float64) float64 {
					if m.strong {
						return 16
					}
					return n
				}
				rate := func(n float64) float64 { return 1000 * n / (1 + cost*math.Log2(n)) }
				samples := func(n float64) float64 { return least * (1 + batch(n)/critical) }
				mode := "weak"
				if m.strong {
					mode = "strong"
				}
				var obs []scaling.Observation
				for _, n := range []int{1, 2, 4, 8, 16} {
					for k := range runs {
						x := rate(float64(n)) * math.Exp(0.005*r.NormFloat64())
						took := samples(float64(n)) * math.Exp(spread*r.NormFloat64())
						o := scaling.Observation{
							Run: fmt.Sprintf("s/w%d-r%d-a1", n, k+1), Study: "s", Point: fmt.Sprintf("w%d", n), Repeat: k + 1,
							Framework: "native", Workers: n, Nodes: n,
							Parameters:  map[string]any{"workload.scaling": mode, "global_batch": int64(32 * batch(float64(n))), "workers": int64(n)},
							Values:      map[string]float64{"throughput": x, "init_seconds": 0, "to_0.75": took / x},
							Evaluations: []scaling.Evaluation{{Seconds: took / x, Epoch: 1, Samples: int64(took), Accuracy: 0.75}},
						}
						if r.Float64() < chance(batch(float64(n))) {
							o.Values["to_0.75"], o.Evaluations[0].Accuracy = math.Inf(1), 0.7
						}
						obs = append(obs, o)
					}
				}
				curves, err := scaling.Analyse(obs, scaling.Options{})
				if err != nil {
					t.Fatal(err)
				}
				a, err := Advise(curves[0], obs, Options{Target: new(measure.Accuracy(0.75)), Deadline: 1})
				if err != nil {
					t.Fatal(err)
				}
				missed := slices.ContainsFunc(obs, func(o scaling.Observation) bool { return math.IsInf(o.Values["to_0.75"], 1) })
				for _, c := range a.Candidates {
					n := float64(c.Workers)
					// If all runs reach the target, they say nothing about larger batches.
					if n > 32 || c.Basis == Extrapolated && !missed && m.name != "none" {
						continue
					}
					given := c.Seconds != nil && c.Seconds.Low != nil
					of, p := counted[c.Basis], chance(batch(n))
					if p >= 0.5 {
						of.none++
						if given {
							of.wrong++
						}
						continue
					}
					of.asked++
					if !given {
						continue
					}
					of.given++
					truth := samples(n) / rate(n) * math.Exp(spread*math.Sqrt2*math.Erfinv(2*0.5/(1-p)-1))
					if *c.Seconds.Low <= truth && truth <= *c.Seconds.High {
						of.inside++
					}
				}
			}
			for _, b := range []Basis{Measured, Interpolated, Extrapolated} {
				c := counted[b]
				t.Logf("%s: a time in %.0f %% of %d, of these inside %.1f %%; half miss: a time in %.1f %% of %d",
					b, 100*float64(c.given)/float64(max(1, c.asked)), c.asked, 100*float64(c.inside)/float64(max(1, c.given)),
					100*float64(c.wrong)/float64(max(1, c.none)), c.none)
				if c.given > 0 && float64(c.inside) < (0.95-3*math.Sqrt(0.05*0.95/float64(studies)))*float64(c.given) {
					t.Errorf("%s: inside %d of %d", b, c.inside, c.given)
				}
				if float64(c.wrong) > (0.05+3*math.Sqrt(0.05*0.95/float64(studies)))*float64(c.none) {
					t.Errorf("%s: a time in %d of %d of which half miss", b, c.wrong, c.none)
				}
			}
		})
	}
}
