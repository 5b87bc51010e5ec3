package sequential

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// hopeless is the probability to be decided with the most runs below which a question
	// within limits is not measured further.
	hopeless = 0.25
	// leastFutile is the number of runs of each open count from which on that is judged.
	leastFutile = 6
)

// A Batch is the runs to make until the next look.
type Batch struct {
	// Target has the number of runs that each count needs, without counts that have enough.
	Target map[int]int
	Runs   int     // more ones
	Hours  float64 // node-hours that these take
	// Chance is the probability that the next look decides; nil: too few runs to tell.
	Chance *float64
}

// Next returns what to measure next; nil where all open counts have as many runs as the
// design allows. Of the counts that may be better than the answer it takes those that
// promise the most per node-hour, as far as left node-hours go; a left below 0 is no limit.
// The second result reports whether node-hours end the study.
//
// Of a decided question with a Tie it returns runs of the two counts.
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
	// Without one contender after the other, the least promising first.
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

// promise is the probability that a count is better than the answer, per node-hour of a run.
// An unknown probability counts as 1/2.
func (q Question) promise(l *Look, n int) float64 {
	p := 0.5
	for _, c := range l.Advice.Undecided {
		if c.Workers == n {
			p = c.Probability
		}
	}
	return p / max(q.Hours(n), 1e-9)
}

// batch brings counts to the next look of the one with the fewest runs.
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

// chance is the probability that the study is decided once the open counts have so many runs:
// for each contender, that its distance from the answer then exceeds what the level asks, and
// within limits, for each open count, that its distance from the limit does.
func (q Question) chance(l *Look, runs int) *float64 {
	if l.Advice == nil || len(l.Advice.Unproven) > 0 {
		return nil
	}
	all, known := 1.0, false
	settle := func(workers, n int, p float64) bool {
		grown := float64(runs) / float64(n)
		if n == 0 || p <= 0 || p >= 1 || grown <= 1 {
			return false
		}
		all, known = all*settles(-distuv.UnitNormal.Quantile(p), grown, q.Design.Confidence), true
		return true
	}
	if l.Advice.Limited() {
		for _, c := range l.Advice.Candidates {
			if c.Keeps != nil && slices.Contains(l.Open, c.Workers) {
				settle(c.Workers, l.Runs[c.Workers], *c.Keeps)
			}
		}
	} else {
		for _, c := range l.Advice.Undecided {
			if !settle(c.Workers, min(l.Runs[c.Workers], l.Runs[*l.Advice.Workers]), c.Probability) {
				return nil
			}
		}
	}
	if !known {
		return nil
	}
	return &all
}

// settles is the probability that a distance, now in standard errors, exceeds what a level
// asks, on either side, once the number of runs has grown by a factor. The distance grows with
// its square root and has an error itself.
func settles(away, grown, level float64) float64 {
	enough := distuv.UnitNormal.Quantile(level)
	error := math.Sqrt(grown - 1)
	either := distuv.UnitNormal.CDF((away*math.Sqrt(grown)-enough)/error) + distuv.UnitNormal.CDF((-away*math.Sqrt(grown)-enough)/error)
	return min(1, either)
}

// futile reports whether a question within limits would, with the most runs, probably still
// be open: a count is too near to a limit.
func (q Question) futile(l *Look) bool {
	if l.Decided || l.Advice == nil || !l.Advice.Limited() {
		return false
	}
	for _, n := range l.Open {
		if l.Runs[n] < leastFutile {
			return false
		}
	}
	p := q.chance(l, q.Design.most())
	return p != nil && *p < hopeless
}

// Probable returns the fewest more runs, and their node-hours, after which the study is more
// likely decided than not; none within ten times the most of the design: ok is false.
func (q Question) Probable(l *Look) (runs int, hours float64, ok bool) {
	for n := q.Design.most(); n <= 10*q.Design.most(); n++ {
		p := q.chance(l, n)
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
