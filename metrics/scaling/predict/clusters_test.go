package predict

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

// measureCluster simulates a study of a cluster: six runs of each worker count.
func measureCluster(r *rand.Rand, c *simulate.Cluster, counts []int) Study {
	s := Study{Layout: Layout{Replica: 1, Stages: 1}}
	for _, n := range counts {
		count := Count{Workers: n, Nodes: max(1, n/c.NodeSize), Batch: clusterBatch(c, n)}
		for range 6 {
			count.Steps = append(count.Steps, count.Batch/c.Run(r, n))
		}
		s.Counts = append(s.Counts, count)
	}
	return s
}

func clusterBatch(c *simulate.Cluster, workers int) float64 {
	if c.Strong {
		return float64(c.Batch)
	}
	return float64(c.Batch * workers)
}

// clusterTruth returns the median step time of many runs.
func clusterTruth(r *rand.Rand, c *simulate.Cluster, workers int) float64 {
	var xs []float64
	for range 15 {
		xs = append(xs, clusterBatch(c, workers)/c.Run(r, workers))
	}
	return scaling.Middle(xs)
}

// clusterScore counts how often the model gives a prediction, and is right, at one position.
type clusterScore struct {
	asked, refused, inside int
	widths, misses         []float64 // of the interval and of the value, as shares
}

func (c *clusterScore) ask(t *testing.T, l *Law, r *rand.Rand, cluster *simulate.Cluster, workers int) {
	t.Helper()
	c.asked++
	e, err := l.Predict(workers, clusterBatch(cluster, workers))
	var refusal *Refusal
	if errors.As(err, &refusal) {
		c.refused++
		return
	} else if err != nil {
		t.Fatal(err)
	}
	x := clusterTruth(r, cluster, workers)
	if e.Low <= x && x <= e.High {
		c.inside++
	}
	c.widths = append(c.widths, e.High/e.Low-1)
	c.misses = append(c.misses, math.Abs(e.Value/x-1))
}

// Clusters are simulated event by event, without a formula. A study has six runs of each count;
// predictions are compared with the truth between the last two counts, and at twice and four times
// the largest. The nominal coverage is 95 %. docs/validation.md lists the scenarios with less; the
// test judges all together.
//
// With -short a tenth of the clusters are played.
func TestTruthOfClusters(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds /= 10
	}
	places := []struct {
		name  string
		at    func(counts []int) int
		width float64 // largest median width, as a share
		miss  float64 // largest median error
		least float64 // share of all intervals that contain the truth
	}{
		{"between", func(c []int) int { return (c[len(c)-1] + c[len(c)-2]) / 2 }, 0.15, 0.04, 0.88},
		{"2 times", func(c []int) int { return 2 * c[len(c)-1] }, 0.40, 0.06, 0.88},
		{"4 times", func(c []int) int { return 4 * c[len(c)-1] }, 0.60, 0.25, 0.80},
	}
	all := make([]clusterScore, len(places))
	for _, s := range simulate.Scenarios {
		own := make([]clusterScore, len(places))
		for seed := range seeds {
			r := rand.New(rand.NewPCG(uint64(seed), 2026))
			c, counts := s.Draw(r)
			l, err := Fit(measureCluster(r, c, counts), 0.95)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range places {
				own[i].ask(t, l, r, c, p.at(counts))
			}
		}
		for i, p := range places {
			o := &own[i]
			answered := o.asked - o.refused
			width, miss := math.NaN(), math.NaN()
			if answered > 0 {
				width, miss = scaling.Middle(o.widths), scaling.Middle(o.misses)
			}
			t.Logf("%-12s %-8s refused %d of %d, inside %d of %d; median width %.0f %%, median error %.1f %%", s.Name, p.name, o.refused, o.asked, o.inside, answered, 100*width, 100*miss)
			if width > p.width || miss > p.miss {
				t.Errorf("%s, %s: median width %.0f %% and error %.1f %%; at most %.0f and %.0f %% are allowed", s.Name, p.name, 100*width, 100*miss, 100*p.width, 100*p.miss)
			}
			all[i].asked, all[i].refused, all[i].inside = all[i].asked+o.asked, all[i].refused+o.refused, all[i].inside+o.inside
		}
	}
	for i, p := range places {
		o := all[i]
		t.Logf("all          %-8s refused %d of %d, inside %d of %d", p.name, o.refused, o.asked, o.inside, o.asked-o.refused)
		if float64(o.inside) < p.least*float64(o.asked-o.refused) {
			t.Errorf("%s: inside %d of %d, fewer than %.0f %%", p.name, o.inside, o.asked-o.refused, 100*p.least)
		}
	}
}
