// Package simulate simulates data-parallel training on imaginary clusters, event by event, so that
// estimates of scaling can be compared with a known truth.
//
// The simulation uses no formula for scaling. Ranks fetch batches from a server that handles one
// request at a time. They compute for a random time, and pass gradient buckets to rings in which
// every hop waits for its neighbour. The throughput results from these events. It deliberately
// differs from the model that package predict fits: the rings overlap with the backward pass, slow
// ranks have heavy-tailed delays, and queues fill gradually.
//
// Only tests and examples use it.
package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Cluster describes a machine and the training on it. Times are in seconds, sizes in bytes, rates
// in samples/s or bytes/s.
type Cluster struct {
	NodeSize int  // workers per full node
	Strong   bool // the global batch is fixed; otherwise the batch of each worker is
	Batch    int  // samples per step: of all workers if Strong, else of each

	Sample   float64 // compute time per sample
	Launch   float64 // fixed compute time per step, independent of the batch
	Noise    float64 // standard deviation of the logarithm of a rank's compute time, drawn for each step
	NodeLuck float64 // standard deviation of a node's speed, drawn for each run
	RunLuck  float64 // standard deviation of a whole run's speed
	Hiccup   float64 // probability that a rank's step is delayed
	HiccupBy float64 // minimum delay as a share of the compute time; Pareto with exponent 2.5

	Gradients float64 // bytes
	Buckets   int     // number of parts in which the gradients are reduced, during the backward pass
	Inside    Link    // between the workers of a node
	Between   Link    // between nodes

	Input    float64 // samples/s of the file server for all workers together; 0: unlimited
	Prefetch int     // number of batches that a rank requests in advance
}

// Link is one hop of a ring.
type Link struct {
	Latency   float64
	Bandwidth float64
	Jitter    float64 // standard deviation of the logarithm of the bandwidth, drawn for each step
	Load      float64 // average number of other jobs' flows on the link, drawn for each step
	Core      int     // hops that the switch carries at full speed; 0: unlimited
}

const (
	warmup   = 4 // steps before the measurement
	measured = 12
)

// Run simulates a training on this number of workers, which fill whole nodes, and returns the
// steady throughput in samples/s.
func (c *Cluster) Run(r *rand.Rand, workers int) float64 {
	size := min(workers, c.NodeSize)
	nodes := workers / size
	batch := float64(c.Batch)
	if c.Strong {
		batch /= float64(workers)
	}
	speed := make([]float64, workers)
	luck := math.Exp(c.RunLuck * r.NormFloat64())
	for node := range nodes {
		s := luck * math.Exp(c.NodeLuck*r.NormFloat64())
		for i := range size {
			speed[node*size+i] = s
		}
	}
	end := make([]float64, workers) // end of each rank's last step
	feed := newInput(c, r, workers, batch)
	done := make([]float64, workers)
	compute := make([]float64, workers)
	start := make([]float64, workers)
	began := 0.0
	for step := range warmup + measured {
		if step == warmup {
			began = slices.Max(end)
		}
		feed.wait(step, end, start)
		for i := range compute {
			compute[i] = (c.Launch + batch*c.Sample) * speed[i] * math.Exp(c.Noise*r.NormFloat64())
			if r.Float64() < c.Hiccup {
				compute[i] *= 1 + c.HiccupBy*math.Pow(r.Float64(), -1/2.5)
			}
		}
		copy(done, start)
		for b := range c.Buckets {
			// The forward pass takes a third of the time; the buckets become ready at equal
			// intervals over the rest.
			share := (1 + 2*float64(b+1)/float64(c.Buckets)) / 3
			for i := range done {
				done[i] = max(done[i], start[i]+share*compute[i])
			}
			c.reduce(r, done, size, nodes, c.Gradients/float64(c.Buckets))
		}
		copy(end, done)
	}
	return measured * batch * float64(workers) / (slices.Max(end) - began)
}

// reduce simulates an all-reduce: a ring inside every node, one between the nodes, and a ring
// inside again. at has the time at which each rank starts, and is set to the time at which it has
// the sum.
func (c *Cluster) reduce(r *rand.Rand, at []float64, size, nodes int, bytes float64) {
	for node := range nodes {
		ring(r, at[node*size:(node+1)*size], size-1, bytes/float64(size), c.Inside)
	}
	if nodes > 1 {
		leaders := make([]float64, nodes)
		for node := range nodes {
			leaders[node] = slices.Max(at[node*size : (node+1)*size])
		}
		ring(r, leaders, 2*(nodes-1), bytes/float64(nodes), c.Between)
		for node := range nodes {
			for i := range size {
				at[node*size+i] = leaders[node]
			}
		}
	}
	for node := range nodes {
		ring(r, at[node*size:(node+1)*size], size-1, bytes/float64(size), c.Inside)
	}
}

// ring simulates the phases of a ring: in each, a rank waits for its neighbour and sends a chunk.
func ring(r *rand.Rand, at []float64, phases int, chunk float64, l Link) {
	n := len(at)
	if n < 2 {
		return
	}
	hop := make([]float64, n)
	for i := range hop {
		bandwidth := l.Bandwidth * math.Exp(l.Jitter*r.NormFloat64())
		if l.Load > 0 {
			bandwidth /= 1 + l.Load*r.ExpFloat64()
		}
		if l.Core > 0 && n > l.Core {
			bandwidth *= float64(l.Core) / float64(n)
		}
		hop[i] = l.Latency*(0.5+0.5*r.ExpFloat64()) + chunk/bandwidth
	}
	next := make([]float64, n)
	for range phases {
		for i := range at {
			next[i] = max(at[i], at[(i+n-1)%n]) + hop[i]
		}
		copy(at, next)
	}
}

// input simulates the file server and the ranks' queues of requested batches.
type input struct {
	c     *Cluster
	r     *rand.Rand
	batch float64
	free  float64     // time at which the server has handled all requests so far
	ready [][]float64 // by rank, the arrival times of the requested batches
	order []int
}

func newInput(c *Cluster, r *rand.Rand, workers int, batch float64) *input {
	in := &input{c: c, r: r, batch: batch, ready: make([][]float64, workers), order: make([]int, workers)}
	for i := range in.order {
		in.order[i] = i
	}
	for range c.Prefetch {
		in.ask(make([]float64, workers))
	}
	return in
}

// ask adds a request of every rank, at its time in at; the server handles them in order of time.
func (in *input) ask(at []float64) {
	slices.SortStableFunc(in.order, func(a, b int) int {
		if at[a] < at[b] {
			return -1
		}
		if at[a] > at[b] {
			return 1
		}
		return 0
	})
	for _, i := range in.order {
		if in.c.Input > 0 {
			in.free = max(in.free, at[i]) + in.batch/in.c.Input*(0.5+0.5*in.r.ExpFloat64())
			in.ready[i] = append(in.ready[i], in.free)
		} else {
			in.ready[i] = append(in.ready[i], at[i])
		}
	}
}

// wait sets start to the time at which each rank has the batch of a step, given the end of its
// previous step, and requests another batch.
func (in *input) wait(step int, end, start []float64) {
	for i := range start {
		start[i] = max(end[i], in.ready[i][step])
	}
	in.ask(start)
}
