package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Study is a set of runs at several worker counts, on a machine whose speed changes over time or
// differs between nodes. The true speed of each count is given; the effect of the machine is a
// factor on it.
type Study struct {
	Machine
	Counts []int
	Speed  []float64 // median throughput at each count on an undisturbed machine, samples/s
	Spread []float64 // standard deviation of the logarithm of the throughput, by count
	Runs   []int     // by count
	Order  Order
	Epoch  float64 // start of the first run, Unix seconds
	Length float64 // seconds from the start of a run to the start of the next
}

// Machine describes how a machine's speed varies, in addition to the noise of runs. All effects
// refer to the logarithm of the speed.
type Machine struct {
	Ramp     float64 // change from the first run to the last
	Swing    float64 // standard deviation of an AR(1) process over the runs in their order
	Memory   float64 // coefficient of the AR(1) process
	Day      float64 // standard deviation between days
	Bursts   float64 // probability per run that other work starts to disturb the machine
	BurstBy  float64 // slowdown by that work
	BurstFor float64 // mean duration of a burst, in runs

	Slow     []bool  // whether each node is slow; nil: every run has new nodes
	SlowPart float64 // share of slow nodes, if every run has new nodes
	SlowBy   float64 // slowdown of a run with a slow node
	Sticky   float64 // probability that a run reuses the nodes of the previous run
}

// Order is the order of the runs of a study.
type Order int

// The orders.
const (
	Planned  Order = iota // all runs of one count, then all of the next
	Blocks                // blocks with one run of every count, in random order
	Shuffled              // all runs in random order
	Appended              // in blocks, but the largest count after all others
)

func (o Order) String() string {
	return [...]string{"plan order", "blocks", "shuffled", "largest count later"}[o]
}

// Made is one run of a Study.
type Made struct {
	Workers    int
	Repeat     int     // from 1
	Began      float64 // Unix seconds
	Nodes      []string
	Throughput float64 // samples/s
}

// order returns the runs in their order: indices of count and repeat.
func (s *Study) order(r *rand.Rand) [][2]int {
	var list [][2]int
	for i := range s.Counts {
		for k := range s.Runs[i] {
			list = append(list, [2]int{i, k})
		}
	}
	if s.Order == Planned {
		return list
	}
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	last := len(s.Counts) - 1
	slices.SortStableFunc(list, func(a, b [2]int) int {
		switch {
		case s.Order == Appended && (a[0] == last) != (b[0] == last):
			if a[0] == last {
				return 1
			}
			return -1
		case s.Order == Shuffled:
			return 0
		}
		return a[1] - b[1]
	})
	return list
}

// Draw draws the runs and returns them in their order.
func (s *Study) Draw(r *rand.Rand) []Made {
	order := s.order(r)
	swing := s.Swing * r.NormFloat64()
	day, burst := map[int]float64{}, 0
	var placed []int // the nodes of the previous run, followed by the others in random order
	var list []Made
	for at, which := range order {
		i := which[0]
		m := Made{Workers: s.Counts[i], Repeat: which[1] + 1, Began: s.Epoch + s.Length*float64(at)}
		speed := s.Ramp * (float64(at)/float64(max(1, len(order)-1)) - 0.5)
		if at > 0 {
			swing = s.Memory*swing + math.Sqrt(1-s.Memory*s.Memory)*s.Swing*r.NormFloat64()
		}
		today := int(m.Began / (24 * 3600))
		if _, known := day[today]; !known {
			day[today] = s.Day * r.NormFloat64()
		}
		if burst == 0 && r.Float64() < s.Bursts {
			burst = 1 + int(r.ExpFloat64()*s.BurstFor)
		}
		if burst > 0 {
			speed -= s.BurstBy
			burst--
		}
		if s.Slow != nil {
			if placed == nil || r.Float64() >= s.Sticky {
				placed = r.Perm(len(s.Slow))
			}
			anySlow := false
			for _, node := range placed[:s.Counts[i]] {
				anySlow = anySlow || s.Slow[node]
				m.Nodes = append(m.Nodes, fmt.Sprintf("node%03d", node))
			}
			if anySlow {
				speed -= s.SlowBy
			}
		} else if s.SlowPart > 0 && r.Float64() >= math.Pow(1-s.SlowPart, float64(m.Workers)) {
			speed -= s.SlowBy
		}
		speed += swing + day[today] + s.Spread[i]*r.NormFloat64()
		m.Throughput = s.Speed[i] * math.Exp(speed)
		list = append(list, m)
	}
	return list
}

// Truth returns the true speed of a count divided by that of the smallest: the ratio of the medians
// over all possible runs, on any nodes. Changes of the machine over time affect every count alike
// and cancel.
func (s *Study) Truth(count int) float64 {
	typical := func(i int) float64 {
		if s.SlowBy == 0 {
			return s.Speed[i]
		}
		// Median of a mixture of two normal distributions, by bisection.
		p := s.disturbed(s.Counts[i])
		below := func(x float64) float64 {
			cdf := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
			return (1-p)*cdf(x/s.Spread[i]) + p*cdf((x+s.SlowBy)/s.Spread[i])
		}
		low, high := -s.SlowBy-8*s.Spread[i], 8*s.Spread[i]
		for range 100 {
			if mid := (low + high) / 2; below(mid) < 0.5 {
				low = mid
			} else {
				high = mid
			}
		}
		return s.Speed[i] * math.Exp(low)
	}
	return typical(slices.Index(s.Counts, count)) / typical(0)
}

// disturbed returns the probability that a run on this number of nodes has a slow one.
func (s *Study) disturbed(nodes int) float64 {
	if s.Slow == nil {
		return 1 - math.Pow(1-s.SlowPart, float64(nodes))
	}
	fast := 0
	for _, slow := range s.Slow {
		if !slow {
			fast++
		}
	}
	none := 1.0
	for i := range nodes {
		none *= max(0, float64(fast-i)) / float64(len(s.Slow)-i)
	}
	return 1 - none
}

// Family is a kind of study with random parameters.
type Family struct {
	Machine string
	Order   Order
	Sizes   string
	Draw    func(r *rand.Rand) *Study
}

// Name returns a description of the family.
func (f Family) Name() string { return f.Machine + ", " + f.Order.String() + ", " + f.Sizes }

// machines are behaviours of machines, and sizes are numbers and spreads of runs. Families are all
// their combinations with the orders. The parameters vary widely, and were fixed before the tested
// estimators were written.
var machines = []struct {
	name string
	draw func(r *rand.Rand, s *Study)
}{
	{"even machine", func(*rand.Rand, *Study) {}},
	{"autocorrelated", func(r *rand.Rand, s *Study) {
		s.Swing, s.Memory = between(r, 1, 4)*s.Spread[0], 0.5+0.45*r.Float64()
	}},
	{"ramp", func(r *rand.Rand, s *Study) {
		s.Ramp = between(r, 0.03, 0.3) * sign(r)
	}},
	{"days", func(r *rand.Rand, s *Study) {
		s.Day, s.Length = between(r, 0.01, 0.06), between(r, 1800, 6*3600)
	}},
	{"bursts", func(r *rand.Rand, s *Study) {
		s.Bursts, s.BurstBy, s.BurstFor = between(r, 0.02, 0.1), between(r, 0.05, 0.5), between(r, 2, 8)
	}},
	{"slow nodes", func(r *rand.Rand, s *Study) {
		s.SlowPart, s.SlowBy = between(r, 0.02, 0.3), between(r, 0.05, 0.4)
	}},
	{"few nodes", func(r *rand.Rand, s *Study) {
		s.SlowBy = between(r, 0.05, 0.4)
		part := between(r, 0.02, 0.3)
		for range 16 + r.IntN(9) {
			s.Slow = append(s.Slow, r.Float64() < part)
		}
		s.Sticky = 0.7 * r.Float64()
	}},
	{"ramp, days and bursts", func(r *rand.Rand, s *Study) {
		s.Ramp, s.Day, s.Length = between(r, 0.02, 0.1)*sign(r), between(r, 0.01, 0.03), between(r, 1800, 4*3600)
		s.Bursts, s.BurstBy, s.BurstFor = 0.03, between(r, 0.05, 0.2), 3
	}},
}

var sizes = []struct {
	name string
	draw func(r *rand.Rand, s *Study)
}{
	{"equal counts", func(r *rand.Rand, s *Study) {
		n := []int{6, 10, 20}[r.IntN(3)]
		for i := range s.Runs {
			s.Runs[i] = n
		}
	}},
	{"uneven counts", func(r *rand.Rand, s *Study) {
		for i := range s.Runs {
			s.Runs[i] = []int{4, 6, 8, 10, 20}[r.IntN(5)]
		}
	}},
	{"uneven spread", func(r *rand.Rand, s *Study) {
		for i := range s.Runs {
			s.Runs[i] = []int{4, 6, 10, 20}[r.IntN(4)]
			s.Spread[i] *= between(r, 0.5, 8)
		}
	}},
}

// Sound returns the families of a stable machine with as many runs at each count, in blocks or shuffled: nothing in
// them deserves a warning.
func Sound() []Family {
	return slices.DeleteFunc(Families(), func(f Family) bool {
		return f.Machine != "even machine" || f.Sizes != "equal counts" || f.Order != Blocks && f.Order != Shuffled
	})
}

// Families returns all combinations of machines, sizes and orders.
func Families() []Family {
	var list []Family
	for _, machine := range machines {
		for _, order := range []Order{Planned, Blocks, Shuffled, Appended} {
			for _, size := range sizes {
				list = append(list, Family{Machine: machine.name, Order: order, Sizes: size.name, Draw: func(r *rand.Rand) *Study {
					s := &Study{Counts: []int{1, 2, 4, 8}, Order: order, Epoch: 1_790_000_000 + 86400*r.Float64(), Length: between(r, 60, 1800)}
					spread, exponent := between(r, 0.005, 0.05), 0.6+0.4*r.Float64()
					for _, n := range s.Counts {
						s.Speed = append(s.Speed, 100*math.Pow(float64(n), exponent))
						s.Spread = append(s.Spread, spread)
					}
					s.Runs = make([]int, len(s.Counts))
					size.draw(r, s)
					machine.draw(r, s)
					return s
				}})
			}
		}
	}
	return list
}

func sign(r *rand.Rand) float64 {
	if r.IntN(2) == 0 {
		return -1
	}
	return 1
}
