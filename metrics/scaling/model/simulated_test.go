package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/internal/simulate"
)

// measure is a study of a cluster: six runs of each worker count.
func measure(r *rand.Rand, c *simulate.Cluster, counts []int) Data {
	d := Data{Strong: c.Strong, NodeSize: c.NodeSize}
	for _, n := range counts {
		p := Measured{Workers: n}
		for range 6 {
			p.Throughputs = append(p.Throughputs, c.Run(r, n))
		}
		d.Counts = append(d.Counts, p)
	}
	return d
}

// truth is the median throughput of many runs.
func truth(r *rand.Rand, c *simulate.Cluster, workers int) float64 {
	var xs []float64
	for range 15 {
		xs = append(xs, c.Run(r, workers))
	}
	return scaling.Middle(xs)
}

// coverage counts in how many clusters the interval held the truth.
type coverage struct{ clusters, refused, inside, between int }

func (c *coverage) add(o coverage) {
	c.clusters, c.refused, c.inside, c.between = c.clusters+o.clusters, c.refused+o.refused, c.inside+o.inside, c.between+o.between
}

func (c *coverage) judge(t *testing.T) {
	t.Helper()
	answered := c.clusters - c.refused
	if c.refused*5 > c.clusters {
		t.Errorf("%d of %d refused, more than 20 %%", c.refused, c.clusters)
	}
	if c.inside*10 < answered*9 {
		t.Errorf("at 4 times: inside in %d of %d, fewer than 90 %%", c.inside, answered)
	}
	if c.between*10 < answered*9 {
		t.Errorf("between: inside in %d of %d, fewer than 90 %%", c.between, answered)
	}
}

// On clusters that follow none of the laws, the truth at four times the largest
// measured worker count lies in the interval at least 90 % of the time, and so
// does the truth between two measured counts; no more than 20 % are refused.
//
// With -short a tenth of the clusters are played, too few of each scenario to tell
// 85 from 95 %, and only all together are judged.
func TestSimulatedClusters(t *testing.T) {
	seeds := 200
	if testing.Short() {
		seeds /= 10
	}
	counted := make([]coverage, len(simulate.Scenarios))
	t.Run("all", func(t *testing.T) {
		for i, s := range simulate.Scenarios {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				counted[i] = cover(t, s, seeds)
				if !testing.Short() {
					counted[i].judge(t)
				}
			})
		}
	})
	var all coverage
	for _, c := range counted {
		all.add(c)
	}
	all.judge(t)
}

// cover fits studies of so many clusters of a scenario.
func cover(t *testing.T, s simulate.Scenario, seeds int) coverage {
	counted := coverage{clusters: seeds}
	var widths, misses []float64
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 2026))
		c, counts := s.Draw(r)
		e, err := Fit(measure(r, c, counts), 0.95)
		var refusal *Refusal
		if errors.As(err, &refusal) {
			counted.refused++
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		covers := func(workers int) (Prediction, bool, float64) {
			p, err := e.Predict(workers)
			if err != nil {
				t.Fatal(err)
			}
			x := truth(r, c, workers)
			return p, p.Low <= x && x <= p.High, x
		}
		last := counts[len(counts)-1]
		p, ok, x := covers(4 * last)
		if ok {
			counted.inside++
		}
		widths = append(widths, (p.High-p.Low)/p.Value)
		misses = append(misses, math.Abs(p.Value/x-1))
		if p, ok, _ := covers((last + counts[len(counts)-2]) / 2); ok && !p.Beyond {
			counted.between++
		}
	}
	slices.Sort(misses)
	t.Logf("%s: %d of %d refused; the truth at 4 times the largest lies in the interval in %d of %d, between the last two in %d; at 4 times: median width %.0f %%, median error %.1f %%",
		s.Name, counted.refused, seeds, counted.inside, seeds-counted.refused, counted.between, 100*scaling.Middle(widths), 100*scaling.Middle(misses))
	return counted
}
