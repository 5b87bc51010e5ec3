package sensitivity

import (
	"container/heap"
	"math"
	"math/rand/v2"
)

// machine simulates a training with input from a disk, through the page cache and loaders, to a
// consumer. Samples pass queues one by one. It was written before the code that it tests, and uses
// none of its rules.
type machine struct {
	cpu     float64 // seconds of a core to prepare a sample
	disk    float64 // seconds of the disk to read one that is not in memory
	step    float64 // seconds of the consumer for a sample
	data    float64 // bytes of the whole data set
	program float64 // bytes that the program itself needs
	cyclic  bool    // files are read in the same order each epoch, so that a cache without room for all files never hits
	ahead   int     // largest number of prepared samples that wait for the consumer

	luck  float64 // standard deviation of the logarithm of a run's speed
	drift float64 // standard deviation of a block's speed, which all runs of a repeat share
}

// scenario is a kind of machine, with the cores and memories that a study measures.
type scenario struct {
	name  string
	draw  func(*rand.Rand) machine
	cores []float64
	bytes []float64
}

const gib = 1 << 30

// scenarios differ in the resource that becomes the limit first.
var scenarios = []scenario{
	{"cores", func(r *rand.Rand) machine {
		m := ordinary(r)
		m.cpu = m.step * between(r, 0.8, 10) // 0.8 to 10 cores keep the consumer busy
		m.disk = m.step * between(r, 0.01, 0.2)
		return m
	}, []float64{16, 8, 4, 2, 1}, []float64{64 * gib, 32 * gib, 16 * gib, 8 * gib, 4 * gib}},
	{"disk", func(r *rand.Rand) machine {
		m := ordinary(r)
		m.cpu = m.step * between(r, 0.2, 1.5)
		m.disk = m.step * between(r, 1.05, 5) // too slow if too little is in memory
		return m
	}, []float64{16, 8, 4, 2, 1}, []float64{64 * gib, 32 * gib, 16 * gib, 8 * gib, 4 * gib}},
	{"cliff", func(r *rand.Rand) machine {
		m := ordinary(r)
		m.cyclic = true
		m.cpu = m.step * between(r, 0.2, 4)
		m.disk = m.step * between(r, 1.2, 5)
		return m
	}, []float64{16, 8, 4, 2, 1}, []float64{64 * gib, 32 * gib, 16 * gib, 8 * gib, 4 * gib}},
	{"interacting", func(r *rand.Rand) machine {
		m := ordinary(r)
		// A loader waits for its own reads, so files that are not in memory also cost cores.
		m.cpu = m.step * between(r, 0.5, 5)
		m.disk = m.step * between(r, 0.5, 1.2)
		m.ahead = 1
		return m
	}, []float64{16, 8, 4, 2, 1}, []float64{64 * gib, 32 * gib, 16 * gib, 8 * gib, 4 * gib}},
}

func ordinary(r *rand.Rand) machine {
	return machine{
		step:    0.001 * math.Exp(r.NormFloat64()),
		data:    between(r, 2, 60) * gib,
		program: between(r, 0.5, 2) * gib,
		ahead:   16,
		luck:    between(r, 0.002, 0.02),
		drift:   0.05 * r.Float64(),
	}
}

func between(r *rand.Rand, low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }

// hit returns the share of samples that are read from memory.
func (m machine) hit(bytes float64) float64 {
	share := min(1, max(0, bytes-m.program)/m.data)
	if m.cyclic && share < 1 {
		return 0
	}
	return share
}

// fits reports whether the program runs at all.
func (m machine) fits(bytes float64) bool { return bytes >= m.program }

// idle holds the times at which loaders become free.
type idle []float64

func (q idle) Len() int           { return len(q) }
func (q idle) Less(i, j int) bool { return q[i] < q[j] }
func (q idle) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *idle) Push(x any)        { *q = append(*q, x.(float64)) }
func (q *idle) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}

// rate simulates this number of samples, with as many loaders as cores, and returns the samples/s
// after the first fifth.
func (m machine) rate(r *rand.Rand, cores int, bytes float64, samples int) float64 {
	loaders := make(idle, cores)
	hit := m.hit(bytes)
	disk, busy := 0.0, 0.0 // times until which the disk and the consumer are busy
	taken := make([]float64, samples)
	for i := range samples {
		at := heap.Pop(&loaders).(float64)
		if i >= m.ahead+cores { // wait until there is room for the prepared sample
			at = max(at, taken[i-m.ahead-cores])
		}
		if r.Float64() >= hit {
			disk = max(disk, at) + m.disk*(0.5+0.5*r.ExpFloat64())
			at = disk
		}
		at += m.cpu * (0.8 + 0.2*r.ExpFloat64())
		heap.Push(&loaders, at)
		busy = max(busy, at) + m.step
		taken[i] = busy
	}
	first := samples / 5
	return float64(samples-1-first) / (taken[samples-1] - taken[first])
}

// truth returns the rate without noise.
func (m machine) truth(cores, bytes float64) float64 {
	if !m.fits(bytes) {
		return 0
	}
	return m.rate(rand.New(rand.NewPCG(1, 1)), int(cores), bytes, 20000)
}

// A shape is a machine that can be rented. The lists were written before the code that chooses
// from them.
type shape struct{ cores, bytes, hour float64 }

// priceList returns the machines of a provider: families with 2, 4 and 8 GiB per core, with 1 to 32
// cores, and some other machines. The prices of cores and memory, and the deviations from these,
// differ between providers.
func priceList(r *rand.Rand) (list []shape) {
	core, byGib := between(r, 0.02, 0.06), between(r, 0.002, 0.008)
	offer := func(cores, gibs float64) {
		list = append(list, shape{cores, gibs * gib, (cores*core + gibs*byGib) * math.Exp(0.1*r.NormFloat64())})
	}
	for _, each := range []float64{2, 4, 8} {
		for _, cores := range []float64{1, 2, 4, 8, 16, 32} {
			offer(cores, cores*each)
		}
	}
	for range 4 {
		offer(math.Ceil(between(r, 1, 24)), math.Ceil(between(r, 2, 96)))
	}
	return list
}

// rented returns the rate of a machine without noise.
func (m machine) rented(s shape) float64 { return m.truth(s.cores, s.bytes) }
