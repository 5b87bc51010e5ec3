package predict

import "math"

// term is one of the times that add up to the time of a step, such as the all-reduce of the
// gradients. Its functions give the time for a coefficient of 1.
type term struct {
	name string
	of   func(s *setting, p place) float64
	// usual gives the prior of the term's coefficient, which is half-normal (0 or more). It is the
	// standard deviation of the time that the term adds to a step at the largest measured count, as
	// a share of that step.
	usual   float64
	against against
}

// A place has the quantities that determine the step time at one worker count and batch.
type place struct {
	workers  float64
	replicas float64 // number of replicas that share the batch
	work     float64 // number of microbatches per worker, including the pipeline's bubble; samples if there are no microbatches
	inside   float64 // replicas within a node
	parties  float64 // number of parties that exchange gradients over the network: nodes, or replicas if one fills a node or more
	racks    float64
}

// A setting has the quantities that are the same at all worker counts of a study.
type setting struct {
	Layout
	nodeSize, rackSize float64 // workers per node, nodes per rack; 0: unknown
}

// at returns the place of a worker count with a global batch.
func (s *setting) at(workers int, batch float64) place {
	p := place{workers: float64(workers), replicas: float64(workers) / float64(s.Replica), inside: 1, racks: 1}
	own := batch / p.replicas
	p.work = own
	if s.Micro > 0 {
		p.work = own/s.Micro + float64(s.Stages-1)/float64(s.Virtual)
	}
	if s.nodeSize > 0 {
		p.inside = max(1, min(p.replicas, math.Floor(s.nodeSize/float64(s.Replica))))
		if s.rackSize > 0 {
			p.racks = math.Ceil(math.Ceil(p.workers/s.nodeSize) / s.rackSize)
		}
	}
	p.parties = math.Ceil(p.replicas / p.inside)
	return p
}

// terms are all terms of the model. Computation takes t·(m + (P−1)/V) per step, for m microbatches
// of t seconds and a pipeline of P stages, V on each worker (Narayanan et al., SC'21). The
// all-reduce of the gradients over q parties transfers 2·(1 − 1/q) of their size, and has the
// latency of a ring or a tree (Thakur, Rabenseifner & Gropp, 2005). The slowest of n workers is
// √(2·ln n) standard deviations slower than the mean (leading term for normal distributions; Gumbel
// 1958).
var terms = []term{
	{"microbatches", func(s *setting, p place) float64 { return p.work }, 3, atEdge},
	{"step", func(s *setting, p place) float64 { return 1 }, 0.5, one},
	{"optimizer, sharded", func(s *setting, p place) float64 { return 1 / p.replicas }, 0.05, atStart},
	{"stragglers", func(s *setting, p place) float64 { return p.work * math.Sqrt(2*math.Log(p.workers)) }, 0.1, atEdge},
	{"reduction in a node", func(s *setting, p place) float64 { return 1 - 1/p.inside }, 0.2, one},
	{"reduction between nodes", func(s *setting, p place) float64 { return 1 - 1/p.parties }, 0.5, one},
	{"latency of a tree", func(s *setting, p place) float64 { return math.Log2(p.parties) }, 0.1, one},
	{"latency of a ring", func(s *setting, p place) float64 { return p.parties - 1 }, 0.1, atEdge},
	{"reduction between racks", func(s *setting, p place) float64 { return 1 - 1/p.racks }, 0.2, one},
}

// The unit of a term's coefficient: the term's value at the largest count, at the smallest count,
// or 1.
type against int

const (
	one against = iota
	atEdge
	atStart
)

func (t term) unit(s *setting, start, edge place) float64 {
	u := 1.0
	switch t.against {
	case atEdge:
		u = t.of(s, edge)
	case atStart:
		u = t.of(s, start)
	}
	if u > 0 {
		return u
	}
	return 1
}

// bend returns the term of a cost that starts above the count at and grows with each doubling of
// the parties, such as a saturated switch. Above the largest measured count, only its usual size is
// known.
func bend(at place, last bool) term {
	usual := 0.03
	if last {
		usual = unseen
	}
	return term{"bend", func(s *setting, p place) float64 {
		return max(0, math.Log2(p.parties/at.parties)) * min(1, p.work/at.work)
	}, usual, one}
}

// uncover returns the term of a transfer that overlaps with computation, and costs time only if
// there is too little computation to overlap with. work is the computation at which that starts.
// step is the step time there, divided by that at the largest measured count. With a fixed global
// batch, such a transfer may only appear beyond the measured counts.
func uncover(work, step float64) term {
	return term{"uncovered", func(s *setting, p place) float64 { return max(0, 1-p.work/work) }, 0.3 * step, one}
}

const (
	// unseen is the standard deviation of the cost that a doubling of the parties beyond the
	// measured counts may add, as a share of the step.
	unseen = 0.08
	// drift is the standard deviation of changes from the first measured count to the last that
	// have other causes than the worker count.
	drift = 0.05
)
