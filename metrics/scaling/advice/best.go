package advice

import (
	"cmp"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// An Answer is one series' advice with the candidate that it recommends.
type Answer struct {
	*Advice
	Candidate
}

// Ranked returns the answers of several series to one question, the best first. Series without an
// answer are left out. Harder targets come first. With a deadline, the order is then by cost or,
// without prices, by worker-seconds. Otherwise it is by the time to the target or, if no time is
// known, by throughput.
func Ranked(list []*Advice, wish Options) []Answer {
	var answers []Answer
	for _, a := range list {
		if a.Workers == nil {
			continue
		}
		i := slices.IndexFunc(a.Candidates, func(c Candidate) bool { return c.Workers == *a.Workers })
		if i >= 0 {
			answers = append(answers, Answer{a, a.Candidates[i]})
		}
	}
	known := func(of func(Answer) *Estimate) func(a, b Answer) int {
		return func(a, b Answer) int { // unknown values come last
			x, y := of(a), of(b)
			if x == nil || y == nil {
				return cmp.Compare(rank(x), rank(y))
			}
			return cmp.Compare(x.Value, y.Value)
		}
	}
	seconds := known(func(a Answer) *Estimate { return a.Seconds })
	slower := known(func(a Answer) *Estimate {
		switch rate := cmp.Or(a.Throughput, a.Figure); {
		case rate == nil:
			return nil
		case a.lower:
			return rate
		default:
			return &Estimate{Value: -rate.Value}
		}
	})
	slices.SortStableFunc(answers, func(a, b Answer) int {
		c := byGoal(b, a)
		if wish.Deadline > 0 {
			c = cmp.Or(c, known(func(a Answer) *Estimate { return a.Cost })(a, b), cmp.Compare(held(a), held(b)))
		}
		return cmp.Or(c, seconds(a, b), slower(a, b))
	})
	return answers
}

// rank orders known values before unknown ones.
func rank(e *Estimate) int {
	if e == nil {
		return 1
	}
	return 0
}

// byGoal compares what two answers reach: no target comes first, then targets by difficulty, then
// the program's own target.
func byGoal(a, b Answer) int {
	rank := func(a Answer) int {
		switch {
		case a.Goal == "":
			return 0
		case a.Target == nil:
			return 2
		}
		return 1
	}
	if a.Target != nil && b.Target != nil {
		return measure.Harder(*a.Target, *b.Target)
	}
	return cmp.Compare(rank(a), rank(b))
}

// held returns workers × seconds to the target; 0 if the time is unknown.
func held(a Answer) float64 {
	if a.Seconds == nil {
		return 0
	}
	return a.Seconds.Value * float64(a.Candidate.Workers)
}

// Order says whether the intervals of two answers separate them.
type Order int

// The values of Order.
const (
	Unproven Order = iota // at least one has no interval
	Overlap
	Apart
)

// Compare compares the intervals of the times of two answers or, if one has no time, of their
// throughputs.
func Compare(a, b Answer) Order {
	x, y := a.Seconds, b.Seconds
	if x == nil || y == nil {
		x, y = cmp.Or(a.Throughput, a.Figure), cmp.Or(b.Throughput, b.Figure)
	}
	switch {
	case x == nil || y == nil || x.Low == nil || y.Low == nil || x.High == nil || y.High == nil:
		return Unproven
	case *x.High < *y.Low || *y.High < *x.Low:
		return Apart
	}
	return Overlap
}
