package simulate

import (
	"math"
	"math/rand/v2"
)

// Scenario is a kind of cluster with random parameters.
type Scenario struct {
	Name string
	// Draw draws a cluster, and the worker counts that a study of it measures.
	Draw func(r *rand.Rand) (*Cluster, []int)
}

// Scenarios are the kinds of cluster on which advice is tested. In each, the cause that limits
// scaling already has an effect at the measured worker counts; otherwise no estimate could know it.
var Scenarios = []Scenario{
	{"single tier", func(r *rand.Rand) (*Cluster, []int) {
		return ordinary(r, 1), []int{1, 2, 4, 8, 16}
	}},
	{"two tiers", func(r *rand.Rand) (*Cluster, []int) {
		if r.IntN(2) == 0 {
			return ordinary(r, 4), []int{1, 2, 4, 8, 16, 32}
		}
		return ordinary(r, 8), []int{1, 2, 4, 8, 16, 32, 64}
	}},
	{"strong", func(r *rand.Rand) (*Cluster, []int) {
		c := ordinary(r, 1)
		c.Strong, c.Batch = true, 2048 // enough for the largest worker count of any question
		return c, []int{1, 2, 4, 8, 16}
	}},
	{"straggling", func(r *rand.Rand) (*Cluster, []int) {
		c := ordinary(r, 1)
		c.Noise = between(r, 0.05, 0.12)
		c.NodeLuck = between(r, 0.02, 0.05)
		c.Hiccup = between(r, 0.002, 0.01)
		c.HiccupBy = between(r, 0.3, 1)
		return c, []int{1, 2, 4, 8, 16}
	}},
	{"input-bound", func(r *rand.Rand) (*Cluster, []int) {
		c := ordinary(r, 1)
		// The server is fast enough for 2 to 6 of the 16 measured workers.
		c.Input = c.Run(r, 4) / 4 * between(r, 2, 6)
		c.Prefetch = 1 + r.IntN(3)
		return c, []int{1, 2, 4, 8, 12, 16}
	}},
	{"congested", func(r *rand.Rand) (*Cluster, []int) {
		c := ordinary(r, 1)
		c.Between.Jitter = between(r, 0.1, 0.3)
		c.Between.Load = between(r, 0.2, 1.5)
		c.Between.Latency = between(r, 20e-6, 200e-6)
		// Transfers take so large a part of a step that congestion matters.
		c.Between.Bandwidth = 2 * c.Gradients / (float64(c.Batch) * c.Sample) / between(r, 0.2, 0.6)
		if r.IntN(2) == 0 {
			c.Between.Core = 4 + r.IntN(5)
		}
		return c, []int{1, 2, 4, 8, 12, 16}
	}},
}

// ordinary returns a cluster without a special problem, with weak scaling.
func ordinary(r *rand.Rand, nodeSize int) *Cluster {
	return &Cluster{
		NodeSize: nodeSize, Batch: 64,
		Sample: between(r, 0.5e-3, 4e-3), Launch: between(r, 1e-3, 8e-3),
		Noise: between(r, 0.005, 0.03), NodeLuck: between(r, 0.002, 0.015), RunLuck: between(r, 0.003, 0.01),
		Hiccup: 0.001, HiccupBy: 0.3,
		Gradients: between(r, 20e6, 400e6), Buckets: 3,
		Inside:   Link{Latency: between(r, 4e-6, 15e-6), Bandwidth: between(r, 20e9, 150e9), Jitter: 0.02},
		Between:  Link{Latency: between(r, 8e-6, 60e-6), Bandwidth: between(r, 2e9, 20e9), Jitter: 0.05},
		Prefetch: 2,
	}
}

// between draws a value that is uniform on a logarithmic scale.
func between(r *rand.Rand, low, high float64) float64 {
	return low * math.Exp(r.Float64()*math.Log(high/low))
}
