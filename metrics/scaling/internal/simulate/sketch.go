package simulate

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Sketch is a cluster in closed form, put together from parts: cheap enough to
// know the truth at every worker count. Its forms are none of those that package
// model fits: transfers hide behind computing, slow ranks hold up the others, a
// server fills up gradually, data comes to fit a cache. Times are in seconds.
type Sketch struct {
	Strong   bool
	NodeSize int
	Batch    float64 // samples a step: over all workers when strong, of each when weak

	Sample, Launch float64 // computing of a sample, and of a step
	Cache          float64 // share of a sample's time that is saved once a worker's share of the data fits
	Fits           float64 // workers at which half of that is

	Tree               bool
	Latency, Transfer  float64 // of a message between nodes, and of all gradients
	Inside             float64 // of all gradients inside a node
	Window             float64 // share of the computing that hides transfers
	Server, Sharpness  float64 // workers that a shared server keeps up with, 0: any number; how abruptly it fills up
	Switch             float64 // nodes whose transfers a switch carries at full speed; 0: any number
	Straggle           float64 // how much longer a rank takes, step by step: standard deviation over the mean
	SlowPart, SlowBy   float64 // of the nodes are slow, by so much
	Spread, NodeSpread float64 // standard deviation of the logarithm from run to run, and of a node's speed
	Hit, HitBy         float64 // share of the runs that other work slows, by so much
	// Extra is what a step takes besides, in seconds; nil: nothing.
	Extra func(workers float64) float64

	known map[int]float64
}

// Speed is the throughput in samples/s of a run without slow nodes or luck.
func (c *Sketch) Speed(workers int) float64 {
	n := float64(workers)
	batch := c.Batch
	if c.Strong {
		batch /= n
	}
	sample := c.Sample * (1 - c.Cache*n*n/(n*n+c.Fits*c.Fits))
	compute := c.Launch + batch*sample
	// The mean of the largest of n that are normal, nearly (Blom 1958).
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

// Run is the throughput of one run.
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

// Truth is the median throughput of all runs that could be made.
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

// Kind is a kind of sketch, whose figures are drawn by chance.
type Kind struct {
	Name string
	Wall bool // its limit lies just behind 16 workers, and nothing up to there shows it
	Draw func(r *rand.Rand) *Sketch
}

// Kinds are sentences of the grammar: what a cluster suffers from. The last but the
// walls draws of everything. Figures were drawn wide, and before the decisions that
// are tried on them were written.
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

// Later are kinds that were written when the decisions had been tried on Kinds, and
// before the rule that is in use was: none of it was chosen by them.
var Later = []Kind{
	{"leaf switches of 4 to 8 nodes", false, func(r *rand.Rand) *Sketch {
		c := sketch(r)
		leaf, less := float64(4+r.IntN(5)), between(r, 1.5, 4)
		c.Transfer *= 0.5
		c.Extra = func(n float64) float64 { // of the ring's hops, those between leaves are slower
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
		half := between(r, 4, 48) // samples at which a worker is half as fast
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

// sketch is a cluster without a particular ailment, scaled weakly.
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
