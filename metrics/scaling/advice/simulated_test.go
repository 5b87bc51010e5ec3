package advice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

// training is a cluster with a recipe: samples to the target by batch. The formula differs from the
// fitted one: it bends later.
type training struct {
	c               *simulate.Cluster
	least, critical float64
}

func (tr *training) batch(workers int) int {
	if tr.c.Strong {
		return tr.c.Batch
	}
	return tr.c.Batch * workers
}

func (tr *training) samples(workers int) float64 {
	b := float64(tr.batch(workers)) / tr.critical
	return tr.least * math.Pow(1+math.Pow(b, 1.2), 1/1.2)
}

// observe simulates a study: ten runs at each worker count.
func (tr *training) observe(r *rand.Rand, counts []int) []scaling.Observation {
	var list []scaling.Observation
	for _, n := range counts {
		for i := range 10 {
			x := tr.c.Run(r, n)
			took := tr.samples(n) * math.Exp(0.03*r.NormFloat64())
			seconds, nodes := took/x, max(1, n/tr.c.NodeSize)
			mode := "weak"
			if tr.c.Strong {
				mode = "strong"
			}
			list = append(list, scaling.Observation{
				Run: fmt.Sprintf("s/w%d-r%d-a1", n, i+1), Study: "s", Point: fmt.Sprintf("w%d", n), Repeat: i + 1,
				Framework: "native", Workers: n, Nodes: nodes,
				Parameters:  map[string]any{"workload.scaling": mode, "global_batch": int64(tr.batch(n)), "workers": int64(n)},
				Values:      map[string]float64{"throughput": x, "init_seconds": 0, "to_0.75": seconds},
				Evaluations: []scaling.Evaluation{{Seconds: seconds, Epoch: 1, Samples: int64(took), Accuracy: 0.75}},
			})
		}
	}
	return list
}

// seconds returns the true median time to the target.
func (tr *training) seconds(r *rand.Rand, workers int) float64 {
	var xs []float64
	for range 9 {
		xs = append(xs, tr.c.Run(r, workers))
	}
	return tr.samples(workers) / scaling.Middle(xs)
}

// verdicts counts how good the recommendations were.
type verdicts struct{ clusters, refused, good, late, dear int }

func (v *verdicts) add(o verdicts) {
	v.clusters, v.refused, v.good, v.late, v.dear = v.clusters+o.clusters, v.refused+o.refused, v.good+o.good, v.late+o.late, v.dear+o.dear
}

func (v *verdicts) judge(t *testing.T) {
	t.Helper()
	answered := v.clusters - v.refused
	// Some deadlines need up to four times the largest count, and the samples with such batches are
	// uncertain.
	if v.refused*4 > v.clusters {
		t.Errorf("%d of %d without an answer, more than 25 %%", v.refused, v.clusters)
	}
	if v.good*10 < answered*9 {
		t.Errorf("%d of %d within 10 %% of the best, fewer than 90 %%", v.good, answered)
	}
}

// The recommended count for a deadline, priced per worker-hour, costs at most 10 % more than the
// best one in at least 90 % of the clusters. Missing the deadline counts as a failure.
//
// With -short, a tenth of the clusters are simulated, too few to distinguish 85 from 95 % for each
// scenario, so only all together are judged.
func TestSimulatedRecommendations(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds /= 10
	}
	counted := make([]verdicts, len(simulate.Scenarios))
	t.Run("all", func(t *testing.T) {
		for i, sc := range simulate.Scenarios {
			t.Run(sc.Name, func(t *testing.T) {
				t.Parallel()
				counted[i] = recommend(t, sc, seeds)
				if !testing.Short() {
					counted[i].judge(t)
				}
			})
		}
	})
	var all verdicts
	for _, v := range counted {
		all.add(v)
	}
	all.judge(t)
}

// recommend gets advice on simulated clusters of a scenario.
func recommend(t *testing.T, sc simulate.Scenario, seeds int) verdicts {
	counted := verdicts{clusters: seeds}
	var extra []float64
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 77))
		c, counts := sc.Draw(r)
		tr := &training{c: c, least: 1e7, critical: float64(c.Batch*counts[len(counts)-1]) * math.Exp(3*r.Float64()-0.5)}
		obs := tr.observe(r, counts)
		curves, err := scaling.Analyse(obs, scaling.Options{})
		if err != nil {
			t.Fatal(err)
		}
		price := func(workers, nodes int, seconds float64) (float64, error) {
			return float64(workers) * seconds / 3600, nil
		}
		all, err := Advise(curves[0], obs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		// A deadline that some candidate meets, and the fewest workers that do. Time decreases and
		// cost increases with their number.
		known := map[int]float64{}
		truth := func(n int) float64 {
			if known[n] == 0 {
				known[n] = tr.seconds(r, n)
			}
			return known[n]
		}
		first, last := all.Candidates[0].Workers, all.Candidates[len(all.Candidates)-1].Workers
		if c.Strong {
			// Then nothing faster than the largest measured count is recommended.
			last = counts[len(counts)-1]
		}
		deadline := truth(last) * math.Pow(truth(first)/truth(last), r.Float64())
		i := sort.Search(len(all.Candidates)-1, func(i int) bool { return truth(all.Candidates[i].Workers) <= deadline })
		best := float64(all.Candidates[i].Workers) * truth(all.Candidates[i].Workers)
		a, err := Advise(curves[0], obs, Options{Deadline: deadline, Cost: price, Currency: "EUR"})
		if err != nil {
			t.Fatal(err)
		}
		if a.Workers == nil {
			counted.refused++
			continue
		}
		n := *a.Workers
		over := float64(n)*truth(n)/best - 1
		extra = append(extra, over)
		switch {
		case truth(n) > deadline:
			counted.late++
		case over > 0.10:
			counted.dear++
		default:
			counted.good++
		}
	}
	t.Logf("%s: %d of %d without an answer; %d of %d within 10 %% of the best (%d late, %d dearer); median extra cost %.1f %%",
		sc.Name, counted.refused, seeds, counted.good, seeds-counted.refused, counted.late, counted.dear, 100*scaling.Middle(extra))
	return counted
}
