package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Study is runs at several worker counts on a machine whose speed changes while
// they are made, or from node to node. It knows nothing of throughput but how
// fast each count is in truth: the machine is multiplied on.
type Study struct {
	Machine
	Counts []int
	Speed  []float64 // median throughput of each count on a machine without whims, samples/s
	Spread []float64 // standard deviation of its logarithm from run to run, by count
	Runs   []int     // by count
	Order  Order
	Epoch  float64 // when the first run begins, Unix seconds
	Length float64 // seconds from the begin of a run to that of the next
}

// Machine is how a machine's speed varies beside a run's own noise. Each of
// these is a standard deviation, or a change, of the logarithm of the speed.
type Machine struct {
	Ramp     float64 // from the first run to the last
	Swing    float64 // of an AR(1) process over the runs in the order they are made
	Memory   float64 // its coefficient
	Day      float64 // of a day
	Bursts   float64 // probability that, at a run, other work begins to disturb the machine
	BurstBy  float64 // what it then takes
	BurstFor float64 // runs that it lasts, on average

	Slow     []bool  // of each node there is; nil: every run has nodes of its own
	SlowPart float64 // of all nodes that are slow, where every run has its own
	SlowBy   float64 // what a slow node takes from a run that has one
	Sticky   float64 // probability that a run gets the nodes of the run before it, as far as it needs them
}

// Order is the order in which the runs of a study are made.
type Order int

// The orders.
const (
	Planned  Order = iota // all runs of a count, then all of the next
	Blocks                // a run of every count, shuffled, then another
	Shuffled              // all runs, shuffled
	Appended              // in blocks, but the largest count behind all others
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

// order lists the runs as they are made: count and repeat, both indices.
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

// Play makes the runs, in the order in which they are made.
func (s *Study) Play(r *rand.Rand) []Made {
	order := s.order(r)
	swing := s.Swing * r.NormFloat64()
	day, burst := map[int]float64{}, 0
	var placed []int // the nodes of the last run, and behind them others in any order
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

// Truth is how many times faster a count is than the smallest: the ratio of the
// medians over all runs that could be made of them, on any of the nodes. What
// the machine does over time it does to every count, so that it is not in it.
func (s *Study) Truth(count int) float64 {
	typical := func(i int) float64 {
		if s.SlowBy == 0 {
			return s.Speed[i]
		}
		// A mixture of two normals: its median by bisection.
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

// disturbed is the probability that a run of so many nodes has a slow one.
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

// Family is a kind of study, whose figures are drawn by chance.
type Family struct {
	Machine string
	Order   Order
	Sizes   string
	Draw    func(r *rand.Rand) *Study
}

// Name says the family in words.
func (f Family) Name() string { return f.Machine + ", " + f.Order.String() + ", " + f.Sizes }

// machines are the terms of the grammar that say how a machine behaves, sizes
// those that say how many runs there are of what spread. Families are all
// combinations of them with the orders. Figures were drawn wide, and before the
// estimators that are tried on them were written.
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

// Families are all that the grammar has.
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
