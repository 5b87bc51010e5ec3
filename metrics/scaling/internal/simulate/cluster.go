// Package simulate plays data-parallel training on clusters that do not exist,
// event by event, so that what is said of scaling can be held against a truth.
//
// It knows no law of scaling. Ranks fetch batches from a server that answers
// one request at a time, compute for as long as chance says, and hand gradient
// buckets to rings whose every hop waits for its neighbour; throughput is what
// comes out. It follows no term of the law that is fitted (package predict): the rings
// overlap with the backward pass, slow ranks are drawn from heavy tails, queues
// fill gradually.
//
// It serves tests and examples; nothing that a user measures passes through it.
package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Cluster is a machine and the training on it. Times are in seconds, sizes in
// bytes, rates in samples/s or bytes/s.
type Cluster struct {
	NodeSize int  // workers a whole node holds
	Strong   bool // the global batch is fixed, else the batch of each worker
	Batch    int  // samples a step: over all workers when strong, of each when weak

	Sample   float64 // compute time of one sample
	Launch   float64 // compute time of a step that no batch is too small for
	Noise    float64 // standard deviation of the logarithm of a rank's compute time, step by step
	NodeLuck float64 // the same of a node's speed, drawn for each run
	RunLuck  float64 // the same of a whole run's speed
	Hiccup   float64 // probability that a rank's step is held up
	HiccupBy float64 // least share of the compute time that it then loses; Pareto with exponent 2.5

	Gradients float64 // bytes
	Buckets   int     // that they are reduced in, while the backward pass goes on
	Inside    Link    // between the workers of a node
	Between   Link    // between nodes

	Input    float64 // samples/s that the file server delivers to all workers together; 0: any number
	Prefetch int     // batches that a rank asks for ahead
}

// Link is one hop of a ring.
type Link struct {
	Latency   float64
	Bandwidth float64
	Jitter    float64 // standard deviation of the logarithm of a link's bandwidth, step by step
	Load      float64 // other jobs' flows that share the link, on average, step by step
	Core      int     // hops that the switch behind the links carries at full speed; 0: any number
}

const (
	warmup   = 4 // steps before the clock starts
	measured = 12
)

// Run trains on so many workers, which fill whole nodes, and returns the steady
// throughput in samples/s.
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
	end := make([]float64, workers) // of each rank's last step
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
			// A third of the time is the forward pass; buckets come out evenly
			// over the rest.
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

// reduce is an all-reduce that each rank joins at its time in at: a ring
// inside every node, one between the nodes, and a ring inside again. It leaves
// when each rank has the sum.
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

// ring passes chunks around for so many phases: in each, a rank waits for its
// neighbour and sends.
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

// input is the file server and every rank's queue of batches before it.
type input struct {
	c     *Cluster
	r     *rand.Rand
	batch float64
	free  float64     // when the server has answered all requests so far
	ready [][]float64 // by rank, when each batch asked for so far arrives
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

// ask queues a request of every rank at its time, first come first served.
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

// wait sets when each rank, free at its time in end, has the step's batch; it
// then asks for another.
func (in *input) wait(step int, end, start []float64) {
	for i := range start {
		start[i] = max(end[i], in.ready[i][step])
	}
	in.ask(start)
}
