package advice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// A play is a simulated study of a machine whose truth is known. It shares no code with the
// estimators: speeds are formulas, and runs are drawn one by one in their order.
type play struct {
	counts []int
	runs   []int                   // number of runs at each count
	speed  func(n float64) float64 // samples/s of an undisturbed run
	noise  []float64               // standard deviation of a run's logarithm, by count
	order  string                  // "blocks", "plan", "shuffled"
	mute   bool                    // runs have no start times, like those in a table
	strong bool                    // a fixed global batch

	ramp     float64 // change of the logarithm of the speed from the first run to the last
	swing    float64 // standard deviation of an AR(1) process, with coefficient 0.8
	slowPart float64 // share of slow nodes; each run draws its nodes
	slowBy   float64 // change of the logarithm of the speed on a slow node
	hit      float64 // probability that a run is disturbed, independent of its size
	hitBy    float64
	tail     bool // Student's t with 3 degrees of freedom instead of the normal distribution

	target bool                    // runs train to a target
	miss   func(n float64) float64 // probability that a run misses the target; nil: 0
	init   float64                 // seconds of initialisation
}

const playSamples = 1e6

// play returns the runs.
func (p *play) play(r *rand.Rand) []scaling.Observation {
	type at struct{ i, k int }
	var order []at
	for i := range p.counts {
		for k := range p.runs[i] {
			order = append(order, at{i, k})
		}
	}
	if p.order != "plan" {
		r.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	}
	if p.order == "blocks" {
		slices.SortStableFunc(order, func(a, b at) int { return a.k - b.k })
	}
	swing := p.swing * r.NormFloat64()
	var list []scaling.Observation
	for t, a := range order {
		n := float64(p.counts[a.i])
		z := r.NormFloat64()
		if p.tail {
			z /= math.Sqrt((math.Pow(r.NormFloat64(), 2) + math.Pow(r.NormFloat64(), 2) + math.Pow(r.NormFloat64(), 2)) / 3)
		}
		e := p.noise[a.i]*z + p.ramp*(float64(t)/float64(max(1, len(order)-1))-0.5) + swing
		swing = 0.8*swing + 0.6*p.swing*r.NormFloat64()
		if p.slowPart > 0 && r.Float64() > math.Pow(1-p.slowPart, n) {
			e -= p.slowBy
		}
		if r.Float64() < p.hit {
			e -= p.hitBy
		}
		x := p.speed(n) * math.Exp(e)
		mode, batch := "weak", int64(32*n)
		if p.strong {
			mode, batch = "strong", 1024
		}
		o := scaling.Observation{
			Run: fmt.Sprintf("s/w%d-r%d-a1", p.counts[a.i], a.k+1), Study: "s", Point: fmt.Sprintf("w%d", p.counts[a.i]), Repeat: a.k + 1,
			Framework: "native", Workers: p.counts[a.i], Nodes: p.counts[a.i],
			Parameters: map[string]any{"workload.scaling": mode, "global_batch": batch, "workers": int64(p.counts[a.i])},
			Values:     map[string]float64{"throughput": x},
		}
		if !p.mute {
			o.BeganUnix = 1.79e9 + 300*float64(t)
			o.Values["init_seconds"] = p.init
		}
		if p.target {
			o.Values["to_0.75"] = playSamples / x
			o.Evaluations = []scaling.Evaluation{{Seconds: playSamples / x, Epoch: 1, Samples: playSamples, Accuracy: 0.75}}
			if p.miss != nil && r.Float64() < p.miss(n) {
				o.Values["to_0.75"], o.Evaluations[0].Accuracy = math.Inf(1), 0.7
			}
		}
		list = append(list, o)
	}
	return list
}

// typical returns the true median throughput. The distribution is a mixture of up to four shifts of
// one distribution; its median is found by bisection.
func (p *play) typical(n float64) float64 {
	i := 0
	for k, c := range p.counts { // the noise of the nearest smaller count
		if float64(c) <= n {
			i = k
		}
	}
	cdf := func(z float64) float64 {
		if p.tail { // Student's t with 3 degrees of freedom
			return 0.5 + (z/(math.Sqrt(3)*(1+z*z/3))+math.Atan(z/math.Sqrt(3)))/math.Pi
		}
		return math.Erfc(-z/math.Sqrt2) / 2
	}
	slow := 0.0
	if p.slowPart > 0 {
		slow = 1 - math.Pow(1-p.slowPart, n)
	}
	spread := p.noise[i] // swing is a property of the machine, and equal for all runs
	low, high := -2.0, 2.0
	for range 60 {
		x := (low + high) / 2
		below := (1-slow)*((1-p.hit)*cdf(x/spread)+p.hit*cdf((x+p.hitBy)/spread)) +
			slow*((1-p.hit)*cdf((x+p.slowBy)/spread)+p.hit*cdf((x+p.slowBy+p.hitBy)/spread))
		if below < 0.5 {
			low = x
		} else {
			high = x
		}
	}
	return p.speed(n) * math.Exp(low)
}

// seconds returns the true median time of runs that reach the target.
func (p *play) seconds(n int) float64 {
	init := p.init
	if p.mute {
		init = 0
	}
	return playSamples/p.typical(float64(n)) + init
}

// value returns the quantity that decides by default: the speed, or the runs that reach the target
// per second, divided by 1.4 per doubling.
func (p *play) value(n int) float64 {
	v := p.typical(float64(n))
	if p.target {
		v = 1 / p.seconds(n)
	}
	if p.target && p.miss != nil && !p.strong {
		v *= 1 - p.miss(float64(n))
	}
	return v / math.Pow(float64(n), math.Log2(1.4))
}

// best returns the measured count with the highest value.
func (p *play) best() int {
	best := p.counts[0]
	for _, n := range p.counts[1:] {
		if p.value(n) > p.value(best) {
			best = n
		}
	}
	return best
}

// gain returns the ratio of the true speeds of counts to and from.
func (p *play) gain(from, to int) float64 {
	if p.target {
		return p.seconds(from) / p.seconds(to)
	}
	return p.typical(float64(to)) / p.typical(float64(from))
}

// cell is a kind of study.
type cell struct {
	name string
	draw func(r *rand.Rand, p *play)
}

// playCurves are ways in which the speed depends on the workers.
var playCurves = []func(r *rand.Rand) func(n float64) float64{
	func(r *rand.Rand) func(float64) float64 { // a power
		a := 0.35 + 0.6*r.Float64()
		return func(n float64) float64 { return 1000 * math.Pow(n, a) }
	},
	func(r *rand.Rand) func(float64) float64 { // a serial part
		s := 0.3 * r.Float64() * r.Float64()
		return func(n float64) float64 { return 1000 / (s + (1-s)/n) }
	},
	func(r *rand.Rand) func(float64) float64 { // a serial part that grows
		s, k := 0.1*r.Float64(), 0.03*r.Float64()*r.Float64()
		return func(n float64) float64 { return 1000 * n / (1 + s*(n-1) + k*n*(n-1)) }
	},
	func(r *rand.Rand) func(float64) float64 { // a limit that fills up
		most, k := 2+20*r.Float64(), 2+6*r.Float64()
		return func(n float64) float64 { return 1000 * math.Pow(math.Pow(n, -k)+math.Pow(most, -k), -1/k) }
	},
}

func uniform(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// drawPlay draws the part of a study that all cells share: 3 to 6 counts, 6 to 20 runs in
// blocks, noise of 0.5 to 4 %.
func drawPlay(r *rand.Rand) *play {
	p := &play{order: "blocks", speed: playCurves[r.IntN(len(playCurves))](r)}
	for i, n := 4+r.IntN(3), 1; len(p.counts) < i; n *= 2 {
		p.counts = append(p.counts, n)
	}
	runs, noise := []int{6, 6, 8, 10, 20}[r.IntN(5)], 0.005*math.Exp(2*r.Float64())
	for range p.counts {
		p.runs, p.noise = append(p.runs, runs), append(p.noise, noise)
	}
	if r.IntN(3) == 0 {
		p.target, p.init = true, uniform(r, 0, 40)
	}
	return p
}

var cells = []cell{
	{"even", func(*rand.Rand, *play) {}},
	{"fixed batch", func(_ *rand.Rand, p *play) { p.strong = true }},
	{"uneven noise and runs", func(r *rand.Rand, p *play) {
		for i := range p.noise {
			p.noise[i] *= uniform(r, 0.5, 5)
			p.runs[i] = []int{6, 7, 8, 10, 20}[r.IntN(5)]
		}
	}},
	{"heavy tails", func(r *rand.Rand, p *play) { p.tail = true }},
	{"ramp of 5 to 30 %, blocks", func(r *rand.Rand, p *play) { p.ramp = uniform(r, 0.05, 0.3) * float64(1-2*r.IntN(2)) }},
	{"ramp, shuffled", func(r *rand.Rand, p *play) {
		p.ramp, p.order = uniform(r, 0.05, 0.3)*float64(1-2*r.IntN(2)), "shuffled"
	}},
	{"ramp, plan order", func(r *rand.Rand, p *play) {
		p.ramp, p.order = uniform(r, 0.05, 0.3)*float64(1-2*r.IntN(2)), "plan"
	}},
	{"autocorrelated, blocks", func(r *rand.Rand, p *play) { p.swing = uniform(r, 1, 4) * p.noise[0] }},
	{"slow nodes", func(r *rand.Rand, p *play) { p.slowPart, p.slowBy = uniform(r, 0.02, 0.3), uniform(r, 0.05, 0.4) }},
	{"disturbed runs", func(r *rand.Rand, p *play) { p.hit, p.hitBy = uniform(r, 0.05, 0.3), uniform(r, 0.1, 0.7) }},
	{"chance misses", func(r *rand.Rand, p *play) {
		p.target = true
		chance := uniform(r, 0.02, 0.25)
		p.miss = func(float64) float64 { return chance }
	}},
	{"misses of larger batches", func(r *rand.Rand, p *play) {
		p.target = true
		half := 4 * math.Exp(2*r.Float64())
		p.miss = func(n float64) float64 { return 1 / (1 + math.Pow(half/n, 2)) }
	}},
	{"plateau", func(r *rand.Rand, p *play) {
		// From some count on, speed is constant for one or two doublings, and then grows again.
		from, long, rate := 2*math.Exp2(float64(r.IntN(2))), math.Exp2(float64(1+r.IntN(2))), uniform(r, 0.5, 0.8)
		p.counts = []int{1, 2, 4, 8, 16, 32}
		for len(p.runs) < 6 {
			p.runs, p.noise = append(p.runs, p.runs[0]), append(p.noise, p.noise[0])
		}
		p.speed = func(n float64) float64 {
			return 1000 * math.Pow(min(n, from), 0.9) * math.Pow(max(1, n/(from*long)), rate)
		}
	}},
	{"near the threshold", func(r *rand.Rand, p *play) {
		a := math.Log2(1.4) * uniform(r, 0.9, 1.1)
		p.speed = func(n float64) float64 { return 1000 * math.Pow(n, a) }
	}},
	{"two or three counts", func(r *rand.Rand, p *play) {
		n := 2 + r.IntN(2)
		p.counts, p.runs, p.noise = p.counts[:n], p.runs[:n], p.noise[:n]
	}},
	{"three to five runs", func(r *rand.Rand, p *play) {
		for i := range p.runs {
			p.runs[i] = 3 + r.IntN(3)
		}
	}},
	{"table", func(_ *rand.Rand, p *play) { p.mute = true }},
	{"table, ramp of 10 %, plan order", func(r *rand.Rand, p *play) {
		p.mute, p.order, p.ramp = true, "plan", 0.1*float64(1-2*r.IntN(2))
	}},
	{"drift, slow nodes and misses", func(r *rand.Rand, p *play) {
		p.ramp, p.slowPart, p.slowBy, p.target = uniform(r, -0.1, 0.1), uniform(r, 0.02, 0.1), uniform(r, 0.05, 0.2), true
		chance := uniform(r, 0, 0.1)
		p.miss = func(float64) float64 { return chance }
	}},
}
