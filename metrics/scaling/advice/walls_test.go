package advice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

// walls are limits just above 16 workers, the largest measured count. They were fixed before the
// estimator was written.
var walls = []struct {
	name string
	set  func(r *rand.Rand, c *simulate.Cluster)
}{
	{"a file server that serves 17 to 32", func(r *rand.Rand, c *simulate.Cluster) {
		c.Input = c.Run(r, 16) / 16 * (17 + 15*r.Float64())
	}},
	{"a switch that carries 16 to 28", func(r *rand.Rand, c *simulate.Cluster) {
		c.Between.Bandwidth = 2 * c.Gradients / (float64(c.Batch) * c.Sample) / (0.1 + 0.4*r.Float64())
		c.Between.Core = 16 + r.IntN(13)
	}},
}

// If a limit lies just above the measured counts, the time at twice the workers is still in its
// interval.
//
// With -short, a tenth of the clusters is simulated.
func TestTruthOfWalls(t *testing.T) {
	clusters := 200
	if testing.Short() {
		clusters /= 10
	}
	for i, w := range walls {
		t.Run(w.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 2047))
			var given, inside int
			for range clusters {
				c, counts := simulate.Scenarios[0].Draw(r)
				w.set(r, c)
				var obs []scaling.Observation
				for _, n := range counts {
					for k := range 6 {
						obs = append(obs, scaling.Observation{
							Run: fmt.Sprintf("s/w%d-r%d-a1", n, k+1), Study: "s", Point: fmt.Sprintf("w%d", n), Repeat: k + 1,
							Framework: "native", Workers: n, Nodes: n,
							Parameters: map[string]any{"workload.scaling": "weak", "global_batch": int64(64 * n), "workers": int64(n)},
							Values:     map[string]float64{"throughput": c.Run(r, n), "init_seconds": 0},
						})
					}
				}
				curves, err := scaling.Analyse(obs, scaling.Options{})
				if err != nil {
					t.Fatal(err)
				}
				const samples = 1e7
				a, err := Advise(curves[0], obs, Options{Samples: samples, Deadline: 1})
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range a.Candidates {
					if at.Workers != 32 {
						continue
					}
					var xs []float64
					for range 9 {
						xs = append(xs, c.Run(r, 32))
					}
					truth := samples / scaling.Middle(xs)
					given++
					if *at.Seconds.Low <= truth && truth <= *at.Seconds.High {
						inside++
					}
				}
			}
			t.Logf("an interval in %d of %d; the truth at twice the largest is in it in %d", given, clusters, inside)
			if float64(inside) < (0.9-3*math.Sqrt(0.09/float64(clusters)))*float64(given) {
				t.Errorf("inside in %d of %d", inside, given)
			}
		})
	}
}
