package sequential

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// A machine is simulated, so that its truth is known. Its speeds are formulas, and its runs are
// drawn one by one in their order. It shares no code with the estimators.
type machine struct {
	counts []int
	speed  func(n float64) float64                    // samples/s of an undisturbed run
	noise  func(r *rand.Rand, count int) float64      // deviation of the logarithm of a run's speed
	train  func(r *rand.Rand, o *scaling.Observation) // adds what a run reports beyond its speed; nil: nothing
	drift  func(r *rand.Rand, t int) float64          // drift of the machine at its t-th run; nil: none
	truth  []float64                                  // median samples/s by count, without drift
	t      int                                        // runs made
	hours  float64                                    // worker-hours spent
	obs    []scaling.Observation
	repeat map[int]int
}

func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// A family is a kind of machine. These were written down before the design was chosen.
type family struct {
	name string
	draw func(r *rand.Rand, m *machine)
}

func (m *machine) lognormal(r *rand.Rand, low, high float64) {
	sd := between(r, low, high)
	m.noise = func(r *rand.Rand, _ int) float64 { return sd * r.NormFloat64() }
}

func studentNoise(r *rand.Rand) float64 {
	sum := 0.0
	for range 3 {
		z := r.NormFloat64()
		sum += z * z
	}
	return r.NormFloat64() / math.Sqrt(sum/3)
}

var families = []family{
	{"log-normal, 0.5 to 4 %", func(r *rand.Rand, m *machine) { m.lognormal(r, 0.005, 0.04) }},
	{"15 % of runs 5 to 30 % slow", func(r *rand.Rand, m *machine) {
		sd, by := between(r, 0.005, 0.03), between(r, 0.05, 0.3)
		m.noise = func(r *rand.Rand, _ int) float64 {
			x := sd * r.NormFloat64()
			if r.Float64() < 0.15 {
				x -= by
			}
			return x
		}
	}},
	{"15 % of nodes slow, a run as its slowest", func(r *rand.Rand, m *machine) {
		sd, by := between(r, 0.005, 0.03), between(r, 0.05, 0.3)
		m.noise = func(r *rand.Rand, count int) float64 {
			x := sd * r.NormFloat64()
			if r.Float64() > math.Pow(0.85, float64(count)) {
				x -= by
			}
			return x
		}
	}},
	{"AR(1) of 1 to 4 times the noise", func(r *rand.Rand, m *machine) {
		m.lognormal(r, 0.005, 0.02)
		sd, state := between(r, 0.01, 0.06), 0.0
		m.drift = func(r *rand.Rand, t int) float64 {
			if t == 0 {
				state = sd * r.NormFloat64()
			}
			state = 0.8*state + 0.6*sd*r.NormFloat64()
			return state
		}
	}},
	{"ramp of 5 to 30 % in 48 runs", func(r *rand.Rand, m *machine) {
		m.lognormal(r, 0.005, 0.03)
		by := between(r, 0.05, 0.3) * float64(1-2*r.IntN(2))
		m.drift = func(_ *rand.Rand, t int) float64 { return by * float64(t) / 48 }
	}},
	{"Student's t with 3 degrees", func(r *rand.Rand, m *machine) {
		sd := between(r, 0.005, 0.03)
		m.noise = func(r *rand.Rand, _ int) float64 { return sd * studentNoise(r) }
	}},
	{"scatter differs 10 times by count", func(r *rand.Rand, m *machine) {
		sd := map[int]float64{}
		for _, n := range m.counts {
			sd[n] = 0.004 * math.Exp(between(r, 0, math.Log(10)))
		}
		m.noise = func(r *rand.Rand, count int) float64 { return sd[count] * r.NormFloat64() }
	}},
	{"late runs, exponential", func(r *rand.Rand, m *machine) {
		sd, tail := between(r, 0.005, 0.02), between(r, 0.02, 0.1)
		m.noise = func(r *rand.Rand, _ int) float64 { return sd*r.NormFloat64() - tail*r.ExpFloat64() }
	}},
}

// curves are ways in which the speed depends on the workers.
var curves = []func(r *rand.Rand) func(n float64) float64{
	func(r *rand.Rand) func(float64) float64 {
		a := between(r, 0.35, 0.95)
		return func(n float64) float64 { return 1000 * math.Pow(n, a) }
	},
	func(r *rand.Rand) func(float64) float64 {
		s := 0.3 * r.Float64() * r.Float64()
		return func(n float64) float64 { return 1000 / (s + (1-s)/n) }
	},
	func(r *rand.Rand) func(float64) float64 {
		most, k := 2+20*r.Float64(), 2+6*r.Float64()
		return func(n float64) float64 { return 1000 * math.Pow(math.Pow(n, -k)+math.Pow(most, -k), -1/k) }
	},
}

// newMachine draws a machine of a family.
func newMachine(r *rand.Rand, f family, counts []int, speed func(n float64) float64) *machine {
	m := &machine{counts: counts, speed: speed, repeat: map[int]int{}}
	f.draw(r, m)
	if m.noise == nil {
		m.noise = func(*rand.Rand, int) float64 { return 0 }
	}
	own := rand.New(rand.NewPCG(1, 2))
	for _, n := range m.counts {
		xs := make([]float64, 4001)
		for i := range xs {
			xs[i] = m.noise(own, n)
		}
		slices.Sort(xs)
		m.truth = append(m.truth, speed(float64(n))*math.Exp(xs[2000]))
	}
	return m
}

// run simulates one run at a count. All runs do the same work, so faster runs take less time.
func (m *machine) run(r *rand.Rand, n int) {
	e := m.noise(r, n)
	if m.drift != nil {
		e += m.drift(r, m.t)
	}
	x := m.speed(float64(n)) * math.Exp(e)
	m.repeat[n]++
	o := scaling.Observation{
		Run: fmt.Sprintf("s/w%d-r%d-a1", n, m.repeat[n]), Study: "s", Point: fmt.Sprintf("w%d", n), Repeat: m.repeat[n],
		Framework: "native", Workers: n, Nodes: 1, BeganUnix: 1.79e9 + 300*float64(m.t),
		Parameters: map[string]any{"workload.scaling": "strong", "global_batch": int64(1024), "workers": int64(n)},
		Values:     map[string]float64{"throughput": x, "init_seconds": 5},
	}
	if m.train != nil {
		m.train(r, &o)
	}
	m.obs = append(m.obs, o)
	m.t++
	m.hours += float64(n) * 1e6 / x / 3600
}

// blocks adds runs in blocks of random order until each count has its target number.
func (m *machine) blocks(r *rand.Rand, target map[int]int) {
	for {
		var block []int
		least := math.MaxInt
		for n, want := range target {
			if m.repeat[n] < want {
				least = min(least, m.repeat[n])
			}
		}
		for _, n := range m.counts {
			if m.repeat[n] < target[n] && m.repeat[n] == least {
				block = append(block, n)
			}
		}
		if len(block) == 0 {
			return
		}
		r.Shuffle(len(block), func(i, j int) { block[i], block[j] = block[j], block[i] })
		for _, n := range block {
			m.run(r, n)
		}
	}
}

// worth returns the quantity that the default question compares: the speed divided by 1.4 per
// doubling.
func (m *machine) worth(i int) float64 {
	return m.truth[i] / math.Pow(float64(m.counts[i]), math.Log2(1.4))
}

// best returns the best count, and how many times better it is than the next.
func (m *machine) best() (count int, margin float64) {
	order := make([]int, len(m.counts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if m.worth(a) > m.worth(b) {
			return -1
		}
		return 1
	})
	return m.counts[order[0]], m.worth(order[0])/m.worth(order[1]) - 1
}

// seconds returns the true median time of a million samples at count i, with initialisation.
func (m *machine) seconds(i int) float64 { return 1e6/m.truth[i] + 5 }

// again returns the same machine before its first run.
func (m *machine) again() *machine {
	return &machine{counts: m.counts, speed: m.speed, noise: m.noise, drift: m.drift, train: m.train, truth: m.truth, repeat: map[int]int{}}
}

// wrong reports whether a count is more than 2 % worse than the best.
func (m *machine) wrong(count int) bool {
	best, _ := m.best()
	return m.worth(slices.Index(m.counts, count)) < 0.98*m.worth(slices.Index(m.counts, best))
}
