package advice

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

const (
	// enough is the probability from which on a candidate is called likely to meet the limits, in
	// the answer that none is chosen.
	enough = 5.0 / 6
	// newLimit is the assumed probability that each doubling of the workers beyond the measured
	// counts meets a bottleneck that no run shows. It is used to choose among those counts. It is not
	// known for any one cluster, so the output states no unconditional probability for them.
	newLimit = 0.1
)

// beyond reports whether the candidate lies above the measured counts.
func (c *Candidate) beyond() bool { return c.Basis == Extrapolated || c.Basis == Predicted }

// odds returns the probability that the candidate meets the limits, in words. If it lies beyond
// the measured counts, it holds on a condition.
func (s *study) odds(c *Candidate) string { return s.oddsTo(c, "") }

// oddsTo is like odds, with words after "likely".
func (s *study) oddsTo(c *Candidate, to string) string {
	if !c.beyond() {
		return Likely(*c.Keeps) + " likely" + to
	}
	p := c.Keeps
	if c.KeepsOn != nil {
		p = c.KeepsOn
	}
	if *p < 0.005 { // a new limit could only lower it
		return Likely(*p) + " likely" + to
	}
	return Likely(*p) + " likely" + to + s.unlessNewLimit(c)
}

// unlessNewLimit returns the condition on which the probability of a candidate holds; "" for
// none.
func (a *Advice) unlessNewLimit(c *Candidate) string {
	if c == nil || !c.beyond() {
		return ""
	}
	return fmt.Sprintf(" if no new limit appears beyond %s", number.Count(a.largest(), "worker"))
}

// withholdOdds replaces the probabilities of candidates beyond the measured counts by those that
// hold if no new limit appears there.
func (s *study) withholdOdds() {
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if !c.beyond() {
			continue
		}
		if c.KeepsOn == nil {
			c.KeepsOn = c.Keeps
		}
		c.Keeps = nil
		if s.Workers != nil && *s.Workers == c.Workers {
			s.Probability = nil
		}
	}
}

// atMost returns the probability that the value is at most x. ok is false without an
// interval.
func (f *Estimate) atMost(x, level float64) (p float64, ok bool) {
	if f == nil || f.Low == nil || f.High == nil {
		return 0, false
	}
	b := decision.Belief{Value: f.Value, Low: *f.Low, High: *f.High, Level: level}
	if f.oneSided != nil {
		b = *f.oneSided
	}
	return b.AtMost(x), true
}

// keeps returns a lower bound of the probability that the candidate meets all limits. It
// subtracts the probabilities of missing each limit from 1 (Bonferroni), because their dependence
// is unknown. It returns nil if a value has no interval, or one without width.
func (s *study) keeps(c *Candidate) *float64 {
	limits, _ := s.asked()
	if len(limits) == 0 || s.withoutScatter(c) {
		return nil
	}
	p := 1.0
	for _, l := range limits {
		q, ok := l.of(c).atMost(l.most, s.o.Confidence)
		if !ok {
			return nil
		}
		if l.floor && l.met(c) && *l.of(c).Low == *l.of(c).High {
			q = 0 // without an error, a value equal to the limit meets it
		}
		if !l.floor {
			q = 1 - q
		}
		p -= q
	}
	p = max(0, p)
	return &p
}

// likely sets the probability that the candidate meets the limits. Beyond the measured counts
// something new may limit scaling; the farther away, the more likely. The intervals of such a
// candidate therefore extend to the case that throughput stops growing.
func (s *study) likely(c *Candidate) {
	c.Keeps = s.keeps(c)
	still := s.stalled(c)
	if still == nil {
		return
	}
	c.KeepsOn = c.Keeps
	if q := s.keeps(still); c.Keeps != nil && q != nil {
		none := math.Pow(1-newLimit, math.Log2(float64(c.Workers)/float64(s.law.Largest())))
		c.Keeps = new(none**c.Keeps + (1-none)**q)
	}
	for _, f := range []struct{ own, still *Estimate }{{c.Throughput, still.Throughput}, {c.Efficiency, still.Efficiency},
		{c.Training, still.Training}, {c.Seconds, still.Seconds}, {c.Cost, still.Cost}} {
		if f.own != nil && f.still != nil && f.own.Low != nil && f.still.Low != nil {
			f.own.Low, f.own.High = new(min(*f.own.Low, *f.still.Low)), new(max(*f.own.High, *f.still.High))
		}
	}
}

// worth returns a number by which candidates are ranked for the user's question; a better
// candidate has a larger one.
func (s *study) worth(c *Candidate) float64 {
	switch {
	case s.o.Deadline > 0 && slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.Cost != nil && c.Cost.Value > 0 }):
		if c.Cost == nil {
			return 0
		}
		return 1 / max(c.Cost.Value, 1e-12)
	case s.o.Deadline > 0:
		return 1 / float64(c.Workers)
	case s.o.Budget > 0 && c.Seconds == nil:
		return 0
	case s.o.Budget > 0:
		return 1 / c.Seconds.Value
	}
	return float64(c.Workers)
}
