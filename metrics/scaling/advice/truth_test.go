package advice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// besides are ways in which the training time outside steps depends on the workers: a factor on the
// seconds of one worker. They were fixed before the fitted model was written.
var besides = []struct {
	name string
	of   func(r *rand.Rand) func(n float64) float64
}{
	{"shared out", func(*rand.Rand) func(float64) float64 { return func(n float64) float64 { return 1 / n } }},
	{"alike on all", func(*rand.Rand) func(float64) float64 { return func(float64) float64 { return 1 } }},
	{"partly shared out", func(r *rand.Rand) func(float64) float64 {
		a := r.Float64()
		return func(n float64) float64 { return a + (1-a)/n }
	}},
	{"shared out, and gathered", func(r *rand.Rand) func(float64) float64 {
		a := 0.05 * r.Float64()
		return func(n float64) float64 { return 1/n + a*math.Log2(n) }
	}},
	{"shared out badly", func(r *rand.Rand) func(float64) float64 {
		p := 0.6 + 0.4*r.Float64()
		return func(n float64) float64 { return math.Pow(n, -p) }
	}},
}

// If evaluations and warm-up take 2 to 40 % of the time on one worker, the true time to the target
// is in at least 95 % of the intervals: at counts between the measured ones, and at twice the
// largest.
//
// With -short, a tenth of the studies is simulated.
func TestTruthOfTimes(t *testing.T) {
	studies := 300
	if testing.Short() {
		studies /= 10
	}
	for i, b := range besides {
		t.Run(b.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 2032))
			var between, beyond, insideBetween, insideBeyond int
			var off []float64
			for range studies {
				noise, share := 0.002*math.Exp(2.3*r.Float64()), 0.02+0.38*r.Float64()
				cost, of := 0.1*r.Float64(), b.of(r)
				const samples = 1e6
				rate := func(n float64) float64 { return 1000 * n / (1 + cost*math.Log2(n)) }
				beside := func(n float64) float64 { return share * samples / 1000 * of(n) }
				var obs []scaling.Observation
				for _, n := range []int{1, 2, 4, 8, 16} {
					for k := range 6 {
						x := rate(float64(n)) * math.Exp(noise*r.NormFloat64())
						took := samples * math.Exp(0.02*r.NormFloat64())
						seconds := took/x + beside(float64(n))*math.Exp(0.05*r.NormFloat64())
						obs = append(obs, scaling.Observation{
							Run: fmt.Sprintf("s/w%d-r%d-a1", n, k+1), Study: "s", Point: fmt.Sprintf("w%d", n), Repeat: k + 1,
							Framework: "native", Workers: n, Nodes: n,
							Parameters:  map[string]any{"workload.scaling": "weak", "global_batch": int64(32 * n), "workers": int64(n)},
							Values:      map[string]float64{"throughput": x, "init_seconds": 0, "to_0.75": seconds},
							Evaluations: []scaling.Evaluation{{Seconds: seconds, Epoch: 1, Samples: int64(took), Accuracy: 0.75}},
						})
					}
				}
				curves, err := scaling.Analyse(obs, scaling.Options{})
				if err != nil {
					t.Fatal(err)
				}
				a, err := Advise(curves[0], obs, Options{Deadline: 1})
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range a.Candidates {
					n := float64(c.Workers)
					truth := samples/rate(n) + beside(n)
					if c.Basis == Measured || c.Seconds == nil || c.Seconds.Low == nil || n > 32 {
						continue
					}
					inside := *c.Seconds.Low <= truth && truth <= *c.Seconds.High
					if c.Basis == Interpolated {
						off = append(off, math.Abs(c.Seconds.Value/truth-1))
						between++
						if inside {
							insideBetween++
						}
					} else if c.Workers == 32 {
						beyond++
						if inside {
							insideBeyond++
						}
					}
				}
			}
			slices.Sort(off)
			t.Logf("between: inside %.1f %% of %d, median error %.1f %%; at twice the largest: inside %.1f %% of %d",
				100*float64(insideBetween)/float64(between), between, 100*off[len(off)/2], 100*float64(insideBeyond)/float64(beyond), beyond)
			// Counts of one study share its errors: three standard errors of a share
			// among studies.
			least := 0.95 - 3*math.Sqrt(0.05*0.95/float64(studies))
			if float64(insideBetween) < least*float64(between) || float64(insideBeyond) < least*float64(beyond) {
				t.Error("inside in fewer than 95 %")
			}
		})
	}
}
