package figure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// made is a study made up for tests: series by batch, with a serial part that
// differs between them, and trainings that approach their final accuracy.
type made struct {
	workers []int
	batches []int
	runs    int
	targets []float64
	noise   float64 // relative
	misses  bool    // larger batches end below the second target
	rate    float64 // samples/s of one worker
}

func (s made) observations() []scaling.Observation {
	r := rand.New(rand.NewPCG(11, 12))
	var list []scaling.Observation
	for b, batch := range s.batches {
		for _, n := range s.workers {
			serial := 0.02 + 0.03*float64(b)
			x := s.rate * (1 + 0.15*float64(b)) / (serial + (1-serial)/float64(n))
			for k := range s.runs {
				x := x * math.Exp(s.noise*r.NormFloat64())
				o := scaling.Observation{
					Run:   fmt.Sprintf("s/b%d-w%d-r%02d-a1", batch, n, k+1),
					Point: fmt.Sprintf("b%d-w%d", batch, n), Study: "s", Repeat: k + 1, Framework: "native", Workers: n, Nodes: 1,
					Parameters: map[string]any{"workload.batch": int64(batch), "workload.scaling": "weak"},
					Values:     map[string]float64{"throughput": x},
				}
				share := 0.08 * math.Log2(float64(n))
				o.Values["data_wait"], o.Values["communication"] = 0.05, share
				if n < 8 || b == 0 {
					o.Values["compute"] = 0.9 - share
				}
				final := 0.86 - 0.01*math.Log2(float64(n)) + 0.01*r.NormFloat64()
				if s.misses {
					final -= 0.03 * float64(b)
				}
				for e := range 13 {
					o.Evaluations = append(o.Evaluations, scaling.Evaluation{
						Seconds: float64(e) * 50000 / x, Epoch: e, Samples: int64(e) * 50000,
						Accuracy: final - (final-0.1)*math.Exp(-float64(e)/3),
					})
				}
				for _, target := range s.targets {
					name := measure.To(target).Name
					o.Values[name] = math.Inf(1)
					for _, e := range o.Evaluations {
						if e.Accuracy >= target {
							o.Values[name] = e.Seconds
							break
						}
					}
				}
				list = append(list, o)
			}
		}
	}
	return list
}

func (s made) draw(t testing.TB, kind string, o Options) *Drawing {
	t.Helper()
	obs := s.observations()
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Draw(kind, curves, obs, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var studies = map[string]made{
	"small":  {workers: []int{1, 2, 4}, batches: []int{64}, runs: 1, targets: []float64{0.75}, noise: 0.02, rate: 812.5},
	"two":    {workers: []int{1, 2, 4, 8}, batches: []int{64, 256}, runs: 8, targets: []float64{0.75, 0.82}, noise: 0.03, rate: 812.5, misses: true},
	"six":    {workers: []int{1, 2, 4, 8}, batches: []int{32, 64, 128, 256, 512, 1024}, runs: 3, targets: []float64{0.75}, noise: 0.03, rate: 812.5},
	"uneven": {workers: []int{1, 2, 4, 8, 12, 64}, batches: []int{64}, runs: 6, targets: []float64{0.5, 0.7}, noise: 0.05, rate: 812.5},
	"twelve": {workers: []int{1, 2, 4, 8, 12, 64}, batches: []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048}, runs: 4, targets: []float64{0.7}, noise: 0.03, rate: 812.5},
	"one":    {workers: []int{4}, batches: []int{64}, runs: 3, targets: []float64{0.5}, noise: 0.01, rate: 812.5},
}

// curveKinds are the figures that are drawn of curves alone.
func curveKinds() []string {
	var names []string
	for _, k := range Presets() {
		if k.OfCurves() {
			names = append(names, k.Name)
		}
	}
	return names
}
