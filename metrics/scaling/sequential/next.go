package sequential

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

const (
	// hopeless is a limit on the probability that a question with limits is decided after the
	// maximum number of runs. If the probability is lower, no more runs are made.
	hopeless = 0.25
	// leastFutile is the number of runs that each open count must have before this probability
	// is used.
	leastFutile = 4
	// near is the relative distance from a limit beyond which a count is never given up as too close to
	// it: a few slow runs widen the interval of 6 runs, but not that of 8 or 12.
	near = 0.05
)

// A Batch describes the runs to make before the next look.
type Batch struct {
	// Target has the number of runs that each worker count needs. Counts that already have
	// enough are omitted.
	Target map[int]int
	Runs   int     // number of further runs
	Hours  float64 // node-hours of the further runs
	// Chance is the probability that the next look decides the question; nil: too few runs to
	// estimate it.
	Chance *float64
}

// Next returns the runs to make next; nil if all open counts have as many runs as the design
// allows. left are the remaining node-hours; below 0: unlimited. If they do not suffice
// for all counts that may be better than the answer, Next omits those that promise the least
// per node-hour. unaffordable reports whether the study ends because there are too few
// node-hours.
//
// For a decided question with a Tie, it returns runs of the answer and of the tie.
func (q Question) Next(l *Look, left float64) (batch *Batch, unaffordable bool) {
	if l.Decided {
		if l.Tie == 0 {
			return nil, false
		}
		if b := q.batch(l, []int{*l.Advice.Workers, l.Tie}); b != nil && (left < 0 || b.Hours <= left) {
			return b, false
		}
		return nil, false
	}
	if l.Futile {
		return nil, false
	}
	whole := q.batch(l, l.Open)
	if whole == nil || left < 0 || whole.Hours <= left {
		return whole, false
	}
	if l.Advice == nil || l.Advice.Workers == nil || len(l.Open) < 3 {
		return nil, true
	}
	// Omit one contender after the other, the least promising first.
	answer := *l.Advice.Workers
	contenders := slices.DeleteFunc(slices.Clone(l.Open), func(n int) bool { return n == answer })
	slices.SortFunc(contenders, func(a, b int) int {
		if q.promise(l, a) > q.promise(l, b) {
			return -1
		}
		return 1
	})
	for len(contenders) > 1 {
		contenders = contenders[:len(contenders)-1]
		if b := q.batch(l, append([]int{answer}, contenders...)); b != nil && b.Hours <= left {
			return b, false
		}
	}
	return nil, true
}

// promise returns the probability that the count n is better than the answer, divided by the
// node-hours of one run. An unknown probability counts as 1/2.
func (q Question) promise(l *Look, n int) float64 {
	p := 0.5
	for _, c := range l.Advice.Undecided {
		if c.Workers == n {
			p = c.Probability
		}
	}
	return p / max(q.Hours(n), 1e-9)
}

// batch returns the runs that give all of counts the same number of runs: the number at the next
// look after the smallest number of runs among them.
func (q Question) batch(l *Look, counts []int) *Batch {
	least := q.Design.most()
	for _, n := range counts {
		least = min(least, l.Runs[n])
	}
	next := q.Design.Next(least)
	b := &Batch{Target: map[int]int{}}
	for _, n := range counts {
		if more := next - l.Runs[n]; more > 0 {
			b.Target[n] = next
			b.Runs += more
			b.Hours += float64(more) * q.Hours(n)
		}
	}
	if b.Runs == 0 {
		return nil
	}
	b.Chance = q.chance(l, next)
	return b
}

// chance returns the probability that the question is decided once the open counts have the
// given number of runs. For that, the distance of each contender from the answer must exceed
// what the level requires. With limits, so must the distance of each open count from the
// limit.
func (q Question) chance(l *Look, runs int) *float64 {
	if l.Advice == nil || len(l.Advice.Unproven) > 0 {
		return nil
	}
	return q.guess(l, runs)
}

// Chance returns the probability that an answer becomes certain once its worker counts have the given number of runs;
// nil: unknown. has are the present numbers of runs.
func Chance(a *advice.Advice, has map[int]int, runs int) *float64 {
	if a.Workers == nil {
		return nil
	}
	q := Question{Design: Design{Confidence: a.Confidence}}
	return q.chance(&Look{Advice: a, Runs: has, Open: slices.Collect(maps.Keys(has))}, runs)
}

// guess is like chance. With a limit, it also includes counts that have too few runs for an interval:
// it takes their distance from the scatter of all runs.
func (q Question) guess(l *Look, runs int) *float64 {
	if !l.Advice.Limited() && len(l.Advice.Unproven) > 0 {
		return nil
	}
	all, known := 1.0, false
	settle := func(n int, p float64) bool {
		grown := float64(runs) / float64(n)
		if n == 0 || p <= 0 || p >= 1 || grown <= 1 {
			return false
		}
		all, known = all*settles(-distuv.UnitNormal.Quantile(p), grown, q.Design.Confidence), true
		return true
	}
	if l.Advice.Limited() {
		for _, c := range l.Advice.Candidates {
			n := l.Runs[c.Workers]
			p := cmp.Or(c.Keeps, c.KeepsOn)
			if away := q.away(&c); p == nil && l.scatter > 0 && n > 0 && !math.IsInf(away, 1) {
				// The median of n normal runs has a standard deviation of √(π/2n) times theirs.
				p = new(distuv.UnitNormal.CDF(-away / l.scatter / math.Sqrt(math.Pi/2/float64(n))))
			}
			if p != nil && slices.Contains(l.Open, c.Workers) {
				settle(n, *p)
			}
		}
	} else {
		for _, c := range l.Advice.Undecided {
			if !settle(min(l.Runs[c.Workers], l.Runs[*l.Advice.Workers]), c.Probability) {
				return nil
			}
		}
	}
	if !known {
		return nil
	}
	return &all
}

// settles returns the probability that a distance exceeds what a level requires, on either
// side, after the number of runs has grown by the factor grown. away is the present distance
// in standard errors. It grows with the square root of the number of runs, and has an error
// itself.
func settles(away, grown, level float64) float64 {
	enough := distuv.UnitNormal.Quantile(level)
	error := math.Sqrt(grown - 1)
	either := distuv.UnitNormal.CDF((away*math.Sqrt(grown)-enough)/error) + distuv.UnitNormal.CDF((-away*math.Sqrt(grown)-enough)/error)
	return min(1, either)
}

// futile reports whether a question with limits would probably still be open after the maximum
// number of runs, because a count is too close to a limit.
func (q Question) futile(l *Look) bool {
	if l.Decided || l.Advice == nil || !l.Advice.Limited() {
		return false
	}
	for _, n := range l.Open {
		if l.Runs[n] < leastFutile {
			return false
		}
	}
	if !slices.ContainsFunc(l.Advice.Candidates, func(c advice.Candidate) bool {
		return slices.Contains(l.Open, c.Workers) && q.away(&c) < near
	}) {
		return false
	}
	p := q.guess(l, q.Design.most())
	return p != nil && *p < hopeless
}

// away returns the smallest relative distance of a count's values from their limits, as a logarithm.
func (q Question) away(c *advice.Candidate) float64 {
	least := math.Inf(1)
	add := func(e *advice.Estimate, limit float64) {
		if e != nil && limit > 0 {
			least = min(least, math.Abs(math.Log(e.Value/limit)))
		}
	}
	add(c.Seconds, q.Wish.Deadline)
	add(c.Cost, q.Wish.Budget)
	add(c.Efficiency, q.Wish.MinEfficiency)
	return least
}

// Probable returns the smallest number of further runs, and their node-hours, after which the
// question is decided with a probability above 1/2. ok is false if not even ten times the
// design's maximum suffices.
func (q Question) Probable(l *Look) (runs int, hours float64, ok bool) {
	if l.Advice == nil {
		return 0, 0, false
	}
	for n := q.Design.most(); n <= 10*q.Design.most(); n++ {
		p := q.guess(l, n)
		if p == nil || *p < 0.5 {
			continue
		}
		for _, w := range l.Open {
			if more := n - l.Runs[w]; more > 0 {
				runs += more
				hours += float64(more) * q.Hours(w)
			}
		}
		return runs, hours, true
	}
	return 0, 0, false
}
