package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Sketch is a cluster whose throughput is given by formulas, so that the truth is cheap to compute
// at every worker count. The formulas differ from those that package predict fits: transfers
// overlap with computation, slow ranks delay the others, a server saturates gradually, and data
// start to fit a cache. Times are in seconds.
type Sketch struct {
	Strong   bool
	NodeSize int
	Batch    float64 // samples per step: of all workers if Strong, else of each

	Sample, Launch float64 // compute time per sample, and fixed compute time per step
	Cache          float64 // share of the time per sample that is saved if a worker's part of the data fits in its cache
	Fits           float64 // number of workers at which half of Cache is saved

	Tree               bool
	Latency, Transfer  float64 // time of a message between nodes, and of the transfer of all gradients
	Inside             float64 // time of the transfer inside a node
	Window             float64 // share of the computation that can overlap with transfers
	Server, Sharpness  float64 // workers that a shared server can supply, 0: unlimited; how abruptly it saturates
	Switch             float64 // nodes whose transfers a switch carries at full speed; 0: unlimited
	Straggle           float64 // relative standard deviation of a rank's compute time between steps
	SlowPart, SlowBy   float64 // share of slow nodes, and how much slower they are
	Spread, NodeSpread float64 // standard deviation of the logarithm of the speed of runs, and of nodes
	Hit, HitBy         float64 // share of runs that other work slows down, and by how much
	// Extra returns additional seconds per step; nil: none.
	Extra func(workers float64) float64

	known map[int]float64
}

// Speed returns the throughput in samples/s of a run without slow nodes or noise.
func (c *Sketch) Speed(workers int) float64 {
	n := float64(workers)
	batch := c.Batch
	if c.Strong {
		batch /= n
	}
	sample := c.Sample * (1 - c.Cache*n*n/(n*n+c.Fits*c.Fits))
	compute := c.Launch + batch*sample
	// Approximate mean of the largest of n normal values (Blom 1958).
	if workers > 1 {
		compute *= 1 + c.Straggle*math.Sqrt2*math.Erfinv(2*(n-0.375)/(n+0.25)-1)
	}
	nodes := math.Ceil(n / float64(c.NodeSize))
	transfer := 0.0
	if workers > 1 {
		transfer += c.Inside * (1 - 1/min(n, float64(c.NodeSize)))
	}
	if nodes > 1 {
		hops := 2 * (nodes - 1)
		if c.Tree {
			hops = 2 * math.Log2(nodes)
		}
		between := c.Transfer * 2 * (1 - 1/nodes)
		if c.Switch > 0 {
			between *= max(1, nodes/c.Switch)
		}
		transfer += hops*c.Latency + between
	}
	if c.Extra != nil {
		compute += c.Extra(n)
	}
	step := math.Hypot(compute, max(0, transfer-c.Window*compute)+0.3*transfer)
	if c.Window == 0 {
		step = compute + transfer
	}
	if c.Server > 0 {
		wait := c.Batch * c.Sample * n / c.Server
		if c.Strong {
			wait = c.Batch * c.Sample / c.Server
		}
		step = math.Pow(math.Pow(step, c.Sharpness)+math.Pow(wait, c.Sharpness), 1/c.Sharpness)
	}
	return batch * n / step
}

// Run returns the throughput of one random run.
func (c *Sketch) Run(r *rand.Rand, workers int) float64 {
	slowest := 0.0
	for range (workers + c.NodeSize - 1) / c.NodeSize {
		luck := c.NodeSpread * r.NormFloat64()
		if r.Float64() < c.SlowPart {
			luck += c.SlowBy
		}
		slowest = max(slowest, luck)
	}
	if c.Hit > 0 && r.Float64() < c.Hit {
		slowest += c.HitBy
	}
	return c.Speed(workers) * math.Exp(c.Spread*r.NormFloat64()-slowest)
}

// Truth returns the median throughput over all possible runs.
func (c *Sketch) Truth(workers int) float64 {
	if x, ok := c.known[workers]; ok {
		return x
	}
	if c.known == nil {
		c.known = map[int]float64{}
	}
	x := c.Speed(workers)
	if c.SlowPart > 0 || c.NodeSpread > 0 || c.Hit > 0 {
		r := rand.New(rand.NewPCG(uint64(workers), 5))
		xs := make([]float64, 1001)
		for i := range xs {
			xs[i] = c.Run(r, workers)
		}
		slices.Sort(xs)
		x = xs[len(xs)/2]
	}
	c.known[workers] = x
	return x
}

// Kind is a kind of sketch with random parameters.
type Kind struct {
	Name string
	Wall bool // scaling ends just above 16 workers, and nothing up to there shows it
	Draw func(r *rand.Rand) *Sketch
}

// Kinds are clusters with different problems. The last one before the walls may have any of them.
// The parameters vary widely, and were fixed before the tested decisions were written.
var Kinds = []Kind{
	{"ring over nodes", false, func(r *rand.Rand) *Sketch { c := sketch(r); c.NodeSize = 1 + r.IntN(2); return c }},
	{"tree", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.Tree, c.Latency = true, c.Batch*c.Sample*between(r, 0.005, 0.08)
		return c
	}},
	{"shared server", false, func(r *rand.Rand) *Sketch { c := sketch(r); c.serve(r, 3, 14); return c }},
	{"stragglers, slow nodes", false, func(r *rand.Rand) *Sketch { c := sketch(r); c.straggle(r); return c }},
	{"strong", false, func(r *rand.Rand) *Sketch { c := sketch(r); c.strong(); return c }},
	{"strong, cache", false, func(r *rand.Rand) *Sketch { c := sketch(r); c.strong(); c.cache(r); return c }},
	{"anything", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.Tree = r.IntN(2) == 0
		c.NodeSize = []int{1, 1, 2, 4}[r.IntN(4)]
		if r.IntN(3) == 0 {
			c.serve(r, 3, 14)
		}
		if r.IntN(3) == 0 {
			c.straggle(r)
		}
		if r.IntN(4) == 0 {
			c.strong()
		}
		if r.IntN(4) == 0 {
			c.cache(r)
		}
		return c
	}},
	{"wall: a server for 17 to 32", true, func(r *rand.Rand) *Sketch { c := sketch(r); c.serve(r, 17, 32); c.Sharpness = 30; return c }},
	{"wall: a switch for 16 to 28", true, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.Transfer = c.Batch * c.Sample * between(r, 0.1, 0.4)
		c.Switch = float64(16 + r.IntN(13))
		return c
	}},
}

// Later are kinds that were written after the decisions had been tested on Kinds, but before the
// present rule. The rule was not tuned on them.
var Later = []Kind{
	{"leaf switches of 4 to 8 nodes", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		leaf, less := float64(4+r.IntN(5)), between(r, 1.5, 4)
		c.Transfer *= 0.5
		c.Extra = func(n float64) float64 { // the ring's hops between leaf switches are slower
			leaves := math.Ceil(n / leaf)
			return c.Transfer * less * (1 - 1/leaves)
		}
		return c
	}},
	{"parameter servers", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.Latency, c.Transfer = 0, 0
		each := c.Batch * c.Sample * between(r, 0.003, 0.06)
		c.Extra = func(n float64) float64 { return each * (n - 1) / (1 + 0.1*n) }
		return c
	}},
	{"counts that are no power of 2 pay", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.Tree, c.Latency = true, c.Batch*c.Sample*between(r, 0.005, 0.05)
		pay := c.Batch * c.Sample * between(r, 0.005, 0.06)
		c.Extra = func(n float64) float64 {
			if l := math.Log2(n); l != math.Trunc(l) {
				return pay
			}
			return 0
		}
		return c
	}},
	{"runs that other work slows", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.Hit, c.HitBy = between(r, 0.05, 0.3), between(r, 0.05, 0.4)
		return c
	}},
	{"nodes of 4, power capped", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.NodeSize = 4
		cap := c.Batch * c.Sample * between(r, 0.01, 0.06)
		c.Extra = func(n float64) float64 { return cap * math.Log2(1+n) * (1 - math.Exp(-n/8)) }
		return c
	}},
	{"fixed global batch, small batches are slow", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.strong()
		half := between(r, 4, 48) // number of samples at which a worker has half its full speed
		c.Extra = func(n float64) float64 { b := c.Batch / n; return b * c.Sample * half / b * (1 - math.Exp(-b/half)) }
		return c
	}},
	{"fixed global batch, ring over nodes of 2", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.strong()
		c.NodeSize = 2
		c.Latency, c.Transfer = c.Latency*between(r, 1, 10), c.Transfer*between(r, 1, 10)
		return c
	}},
	{"wall: a store for 18 to 60, gradual", true, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		c.Server, c.Sharpness = between(r, 18, 60), between(r, 8, 20)
		return c
	}},
	{"wall: a second rack behind 16 to 24", true, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		first, by := float64(16+r.IntN(9)), c.Batch*c.Sample*between(r, 0.2, 2)
		c.Extra = func(n float64) float64 {
			if n > first {
				return by
			}
			return 0
		}
		return c
	}},
}

// sketch returns a cluster without a special problem, with weak scaling.
func sketch(r *rand.Rand) *Sketch {
	c := &Sketch{NodeSize: 1, Batch: 64, Sample: between(r, 0.3e-3, 5e-3)}
	step := c.Batch * c.Sample
	c.Launch = step * between(r, 0.005, 0.1)
	c.Latency = step * between(r, 0.0002, 0.008)
	c.Transfer = step * between(r, 0.01, 0.4)
	c.Inside = c.Transfer * between(r, 0.1, 0.5)
	if r.IntN(2) == 0 {
		c.Window = r.Float64() * 0.6
	}
	c.Spread, c.NodeSpread = between(r, 0.003, 0.03), between(r, 0.001, 0.01)
	return c
}

func (c *Sketch) serve(r *rand.Rand, least, most float64) {
	c.Server, c.Sharpness = between(r, least, most), between(r, 2, 20)
}

func (c *Sketch) straggle(r *rand.Rand) {
	c.Straggle = between(r, 0.01, 0.12)
	c.SlowPart, c.SlowBy = between(r, 0.01, 0.1), between(r, 0.03, 0.3)
}

func (c *Sketch) strong() { c.Strong, c.Batch = true, c.Batch*45 }

func (c *Sketch) cache(r *rand.Rand) { c.Cache, c.Fits = between(r, 0.03, 0.3), between(r, 1.5, 12) }
