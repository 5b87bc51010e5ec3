package summary

import (
	"math"
	"math/rand/v2"
)

// process generates the step times of a simulated run. These processes were chosen before
// the rules that are tested on them.
type process struct {
	steps  int
	base   float64 // of a step, s
	noise  float64 // standard deviation of the logarithm of a step's time
	memory float64 // its AR(1) coefficient, from step to step

	hiccups  float64 // probability that a step has a hiccup
	hiccupBy float64 // factor on the time of such a step

	tails  bool                   // the scatter follows Student's t with 3 degrees of freedom instead of the normal distribution
	course func(step int) float64 // factor on a step's time at that point of the run, which is part of the true mean
	warmup func(step int) float64 // factor on a step's time during warm-up, which is not part of the true mean

	epoch   int     // steps of an epoch; 0: none is recorded
	firstBy float64 // factor on the time of each epoch's first step

	disturbed   [2]int  // first and last step that other work disturbs
	disturbedBy float64 // factor on the time of these steps
	pause       int     // steps from one evaluation to the next, which is within a step; 0: none
	pauseBy     float64 // factor on the time of that step
	changed     int     // step from which on the speed differs; 0: none
	changedBy   float64
}

// play returns the durations of the steps, and the true mean duration: with the first steps
// of epochs in their proportion, hiccups and disturbances as drawn, and without warm-up.
func (p *process) play(r *rand.Rand) (durations []float64, long float64) {
	swing := p.noise * r.NormFloat64()
	for i := range p.steps {
		if i > 0 {
			swing = p.memory*swing + math.Sqrt(1-p.memory*p.memory)*p.noise*r.NormFloat64()
		}
		if p.tails {
			swing = p.noise * r.NormFloat64() / math.Sqrt(square(r.NormFloat64())+square(r.NormFloat64())+square(r.NormFloat64()))
		}
		d := p.base * math.Exp(swing)
		if p.course != nil {
			d *= p.course(i)
		}
		if r.Float64() < p.hiccups {
			d *= p.hiccupBy
		}
		if i >= p.disturbed[0] && i < p.disturbed[1] {
			d *= p.disturbedBy
		}
		if p.changed > 0 && i >= p.changed {
			d *= p.changedBy
		}
		long += d / float64(p.steps)
		if p.pause > 0 && i%p.pause == p.pause-1 {
			d *= p.pauseBy
		}
		if p.epoch > 0 && i%p.epoch == 0 {
			d *= p.firstBy
		}
		if p.warmup != nil {
			d *= p.warmup(i)
		}
		durations = append(durations, d)
	}
	if p.epoch > 0 {
		long *= 1 + (p.firstBy-1)/float64(p.epoch)
	}
	if p.pause > 0 {
		long *= 1 + (p.pauseBy-1)/float64(p.pause)
	}
	return durations, long
}

// input returns the run as the summary reads it: one rank, and one sample per second of a
// step's base time.
func (p *process) input(durations []float64) Input {
	in := Input{Kind: "train", Workers: 1, World: 1, Ranks: []Rank{{World: 1}}}
	for i, d := range durations {
		in.Steps = append(in.Steps, Step{Index: i, Duration: d, Mean: d, Samples: 1})
		if p.epoch > 0 && (i+1)%p.epoch == 0 {
			in.EpochEnds = append(in.EpochEnds, i+1)
		}
	}
	return in
}

// A runFamily is a kind of run with random parameters.
type runFamily struct {
	name string
	// benign runs must not be refused a throughput.
	benign bool
	// silent is the share of runs that may have a wrong throughput without a warning; 0 means 1 %.
	silent float64
	draw   func(r *rand.Rand) process
}

func spread(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// evenly draws a value from a log-uniform distribution.
func evenly(r *rand.Rand, low, high float64) float64 {
	return math.Exp(spread(r, math.Log(low), math.Log(high)))
}

// ramp returns a factor that falls linearly from by to 1 within the given steps.
func ramp(by float64, steps int) func(int) float64 {
	return func(i int) float64 { return 1 + (by-1)*max(0, 1-float64(i)/float64(steps)) }
}

// decay returns a factor that falls exponentially from by towards 1.
func decay(by float64, steps float64) func(int) float64 {
	return func(i int) float64 { return 1 + (by-1)*math.Exp(-float64(i)/steps) }
}

// level returns a factor that is by for the given steps and then 1.
func level(by float64, steps int) func(int) float64 {
	return func(i int) float64 {
		if i < steps {
			return by
		}
		return 1
	}
}

func square(x float64) float64 { return x * x }

// even returns an undisturbed run with a number of steps between low and high.
func even(r *rand.Rand, low, high float64) process {
	p := process{steps: int(evenly(r, low, high)), base: evenly(r, 1e-3, 10), noise: evenly(r, 0.003, 0.08)}
	if r.IntN(2) == 0 {
		p.memory = spread(r, 0.3, 0.9)
	}
	if r.IntN(2) == 0 {
		p.hiccups, p.hiccupBy = spread(r, 0.002, 0.03), evenly(r, 1.5, 20)
	}
	return p
}

func runFamilies() []runFamily {
	const short, long = 12, 2000
	with := func(low, high float64, change func(*rand.Rand, *process)) func(*rand.Rand) process {
		return func(r *rand.Rand) process {
			p := even(r, low, high)
			change(r, &p)
			return p
		}
	}
	return []runFamily{
		{"even", true, 0, with(short, long, func(*rand.Rand, *process) {})},
		{"slow first step", true, 0, with(short, long, func(r *rand.Rand, p *process) { p.warmup = level(evenly(r, 2, 200), 1) })},
		{"ramp of 3 to 8 steps in 15 to 40", false, 0, with(15, 40, func(r *rand.Rand, p *process) { p.warmup = ramp(evenly(r, 1.3, 8), 3+r.IntN(6)) })},
		{"ramp of up to a third", false, 0, with(40, long, func(r *rand.Rand, p *process) {
			p.warmup = ramp(evenly(r, 1.2, 5), max(3, int(spread(r, 0.03, 0.33)*float64(p.steps))))
		})},
		{"decay", false, 0, with(25, long, func(r *rand.Rand, p *process) {
			p.warmup = decay(evenly(r, 1.2, 8), spread(r, 0.01, 0.12)*float64(p.steps))
		})},
		{"slow for up to a third", false, 0, with(short, long, func(r *rand.Rand, p *process) {
			p.warmup = level(evenly(r, 1.2, 5), max(1, int(spread(r, 0.02, 0.33)*float64(p.steps))))
		})},
		{"warm-up longer than the half", false, 0, with(short, long, func(r *rand.Rand, p *process) {
			p.warmup = ramp(evenly(r, 1.5, 5), int(spread(r, 0.6, 1.5)*float64(p.steps)))
		})},
		{"epochs", true, 0, with(60, long, func(r *rand.Rand, p *process) {
			p.epoch, p.firstBy = max(5, int(spread(r, 0.05, 0.45)*float64(p.steps))), evenly(r, 1.5, 20)
		})},
		{"epochs behind a ramp", false, 0, with(60, long, func(r *rand.Rand, p *process) {
			p.epoch, p.firstBy = max(5, int(spread(r, 0.05, 0.45)*float64(p.steps))), evenly(r, 1.5, 20)
			p.warmup = ramp(evenly(r, 1.2, 5), max(3, int(spread(r, 0.01, 0.2)*float64(p.steps))))
		})},
		{"disturbed", false, 0, with(40, long, func(r *rand.Rand, p *process) {
			from, part := spread(r, 0, 0.9), spread(r, 0.1, 0.5)
			p.disturbed = [2]int{int(from * float64(p.steps)), int((from + part) * float64(p.steps))}
			p.disturbedBy = spread(r, 1.4, 2)
		})},
		{"another speed in the end", false, 0, with(40, long, func(r *rand.Rand, p *process) {
			p.changed, p.changedBy = int(spread(r, 0.15, 0.85)*float64(p.steps)), []float64{evenly(r, 0.5, 0.85), evenly(r, 1.18, 2)}[r.IntN(2)]
		})},
	}
}

// shortFamilies are runs of 15 to 400 steps that scatter by 1 to 10 %, with warm-ups
// of 3 to 40 % of them. They were drawn after the rules held on the families above,
// and before those that came next.
func shortFamilies() []runFamily {
	with := func(change func(*rand.Rand, *process)) func(*rand.Rand) process {
		return func(r *rand.Rand) process {
			p := process{steps: int(evenly(r, 15, 401)), base: evenly(r, 1e-2, 3), noise: evenly(r, 0.01, 0.10)}
			if r.IntN(2) == 0 {
				p.memory = spread(r, 0.2, 0.8)
			}
			change(r, &p)
			return p
		}
	}
	part := func(r *rand.Rand, p *process) int {
		return max(1, int(math.Round(spread(r, 0.03, 0.40)*float64(p.steps))))
	}
	by := func(r *rand.Rand) float64 { return evenly(r, 1.2, 8) }
	epochs := func(r *rand.Rand, p *process) {
		p.epoch, p.firstBy = max(4, int(spread(r, 0.05, 0.45)*float64(p.steps))), evenly(r, 1.5, 12)
	}
	return []runFamily{
		{"short: even", true, 0, with(func(*rand.Rand, *process) {})},
		{"short: hiccups", true, 0, with(func(r *rand.Rand, p *process) {
			p.hiccups, p.hiccupBy = spread(r, 0.002, 0.03), evenly(r, 1.5, 10)
		})},
		{"short: slow first step", true, 0, with(func(r *rand.Rand, p *process) { p.warmup = level(evenly(r, 2, 100), 1) })},
		{"short: epochs", true, 0, with(epochs)},
		{"short: linear", false, 0, with(func(r *rand.Rand, p *process) { p.warmup = ramp(by(r), part(r, p)) })},
		{"short: exponential", false, 0, with(func(r *rand.Rand, p *process) { p.warmup = decay(by(r), float64(part(r, p))/3) })},
		{"short: slow exponential", false, 0, with(func(r *rand.Rand, p *process) { p.warmup = decay(by(r), float64(part(r, p))) })},
		{"short: step", false, 0, with(func(r *rand.Rand, p *process) { p.warmup = level(by(r), part(r, p)) })},
		{"short: longer than the half", false, 0, with(func(r *rand.Rand, p *process) {
			switch l := spread(r, 0.5, 1.5) * float64(p.steps); r.IntN(3) {
			case 0:
				p.warmup = ramp(by(r), int(l))
			case 1:
				p.warmup = decay(by(r), l/2)
			case 2:
				p.warmup = level(by(r), int(l*0.6))
			}
		})},
		{"short: epochs behind a ramp", false, 0, with(func(r *rand.Rand, p *process) {
			epochs(r, p)
			switch r.IntN(3) {
			case 0:
				p.warmup = ramp(by(r), part(r, p))
			case 1:
				p.warmup = decay(by(r), float64(part(r, p))/3)
			case 2:
				p.warmup = level(by(r), part(r, p))
			}
		})},
		{"short: another speed in the first half", false, 0, with(func(r *rand.Rand, p *process) {
			p.changed, p.changedBy = int(spread(r, 0.03, 0.5)*float64(p.steps)), []float64{evenly(r, 0.5, 0.9), evenly(r, 1.1, 2)}[r.IntN(2)]
		})},
		{"short: disturbed", false, 0, with(func(r *rand.Rand, p *process) {
			from, part := spread(r, 0, 0.95), spread(r, 0.05, 0.5)
			p.disturbed = [2]int{int(from * float64(p.steps)), int((from + part) * float64(p.steps))}
			p.disturbedBy = spread(r, 1.1, 2.5)
		})},
		{"short: pauses for evaluations", false, 0, with(func(r *rand.Rand, p *process) {
			p.pause, p.pauseBy = 4+int(spread(r, 0.05, 0.4)*float64(p.steps)), evenly(r, 3, 30)
		})},
	}
}

// laterFamilies are short runs of other kinds, drawn when the rules held on those
// above; nothing was changed for them.
func laterFamilies() []runFamily {
	with := func(change func(*rand.Rand, *process)) func(*rand.Rand) process {
		return func(r *rand.Rand) process {
			p := process{steps: int(evenly(r, 15, 401)), base: 1, noise: evenly(r, 0.01, 0.10)}
			change(r, &p)
			return p
		}
	}
	ramped := func(r *rand.Rand, p *process) {
		p.warmup = ramp(evenly(r, 1.2, 8), max(1, int(spread(r, 0.03, 0.4)*float64(p.steps))))
	}
	phases := func(r *rand.Rand, p *process) {
		first, second, by := 1+r.IntN(3), int(spread(r, 0.1, 0.4)*float64(p.steps)), spread(r, 1.1, 1.4)
		p.warmup = func(i int) float64 {
			switch {
			case i < first:
				return 5
			case i < second:
				return by
			}
			return 1
		}
	}
	slowing := func(r *rand.Rand, p *process) {
		by, n := spread(r, 0.1, 0.4), float64(p.steps)
		p.course = func(i int) float64 { return 1 + by*float64(i)/n }
	}
	teeth := func(r *rand.Rand, p *process) {
		period, by := 5+r.IntN(20), spread(r, 0.1, 1)
		p.course = func(i int) float64 { return 1 + by*float64(i%period)/float64(period) }
	}
	both := func(a, b func(*rand.Rand, *process)) func(*rand.Rand, *process) {
		return func(r *rand.Rand, p *process) { a(r, p); b(r, p) }
	}
	return []runFamily{
		{"later: heavy tails after a ramp", false, 0, with(func(r *rand.Rand, p *process) { p.tails = true; ramped(r, p) })},
		{"later: two phases of warm-up", false, 0, with(phases)},
		{"later: ever slower", false, 0, with(slowing)},
		{"later: ever slower after a ramp", false, 0, with(both(ramped, slowing))},
		{"later: one step in 20 three times as long, after a ramp", false, 0, with(func(r *rand.Rand, p *process) { p.hiccups, p.hiccupBy = 0.05, 3; ramped(r, p) })},
		{"later: saw-teeth", false, 0, with(teeth)},
		// The saw-teeth hide a second phase whose slowdown is smaller than their height. A stricter rule
		// left 2.5 % without a warning, but warned of a quarter of the short even runs.
		{"later: saw-teeth after two phases", false, 0.045, with(both(phases, teeth))},
	}
}
