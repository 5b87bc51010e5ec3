package advice

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// enough is the least share of the best answer's worth that an answer must be
	// expected to have.
	enough = 5.0 / 6
	// newLimit is the probability that a limit which the data does not show yet
	// appears within a doubling of the workers. No data tells; it is an assumption.
	// With a fixed global batch it is larger: computing shrinks with every worker, and
	// what it hid (transfers beside the backward pass) comes to light. There it is such
	// that simulated clusters, with other seeds than the tests', break a limit four
	// times as far out as often as they are said to.
	newLimit       = 0.05
	newLimitStrong = 0.07
)

// atMost is the probability that the figure is no more than x. Its logarithm is taken
// as normal on either side of the value, with the ends of the interval, which has so
// high a level, as its quantiles (a two-piece normal, as of fan charts: Britton,
// Fisher & Whitley, Bank of England Quarterly Bulletin 38, 1998). ok is false without
// an interval.
func (f *Estimate) atMost(x, level float64) (p float64, ok bool) {
	if f == nil || f.Low == nil || f.High == nil {
		return 0, false
	}
	end, other := *f.High, max(0, *f.Low)
	if x < f.Value {
		end, other = other, end
	}
	if end == f.Value { // by chance, as of order statistics of few runs
		end = other
	}
	sigma := math.Abs(math.Log(end/f.Value)) / distuv.UnitNormal.Quantile((1+level)/2)
	if !(f.Value > 0 && x > 0 && sigma > 0) { // without error, or for nothing
		if f.Value <= x {
			return 1, true
		}
		return 0, true
	}
	return distuv.UnitNormal.CDF(math.Log(x/f.Value) / sigma), true
}

// keeps is the probability that the candidate keeps all limits, at least: nothing is
// assumed of how breaking one goes with breaking another (Bonferroni). nil where it is
// not known.
func (s *study) keeps(c *Candidate) *float64 {
	limits, _ := s.asked()
	if len(limits) == 0 {
		return nil
	}
	p := 1.0
	for _, l := range limits {
		q, ok := l.of(c).atMost(l.most, s.o.Confidence)
		if !ok {
			return nil
		}
		if l.floor && l.met(c) && *l.of(c).Low == *l.of(c).High {
			q = 0 // no error: just as much is enough
		}
		if !l.floor {
			q = 1 - q
		}
		p -= q
	}
	p = max(0, p)
	return &p
}

// likely works out how likely the candidate keeps the limits. Beyond the data a new
// limit may appear, the likelier the farther; its intervals then reach to where
// throughput stops growing.
func (s *study) likely(c *Candidate) {
	c.Keeps = s.keeps(c)
	still := s.stalled(c)
	if still == nil {
		return
	}
	if q := s.keeps(still); c.Keeps != nil && q != nil {
		limit := newLimit
		if s.curve.Scaling == "strong" {
			limit = newLimitStrong
		}
		none := math.Pow(1-limit, math.Log2(float64(c.Workers)/float64(s.edge.Workers)))
		p := none**c.Keeps + (1-none)**q
		c.Keeps = &p
	}
	for _, f := range []struct{ own, still *Estimate }{{c.Throughput, still.Throughput}, {c.Efficiency, still.Efficiency},
		{c.Training, still.Training}, {c.Seconds, still.Seconds}, {c.Cost, still.Cost}} {
		if f.own != nil && f.still != nil && f.own.Low != nil && f.still.Low != nil {
			low, high := min(*f.own.Low, *f.still.Low), max(*f.own.High, *f.still.High)
			f.own.Low, f.own.High = &low, &high
		}
	}
}

// prospect is a candidate that might be chosen.
type prospect struct {
	*Candidate
	keeps float64
	worth float64 // if it keeps the limits: the more the better, in a unit that all share
}

// best is the candidate of which the most is expected (Raiffa & Schlaifer, Applied
// Statistical Decision Theory, 1961); nil where that is not enough. Candidates up to
// upTo workers count. passed is one that may keep the limits and that a smaller beats.
func (s *study) best(limits []limit, upTo int) (chosen, passed *Candidate) {
	var all, open []prospect
	for i := range s.Candidates {
		c := &s.Candidates[i]
		switch {
		case c.Workers > upTo:
		case s.Ranking && c.Basis != Predicted:
			if !slices.ContainsFunc(limits, func(l limit) bool { return !l.met(c) }) {
				all = append(all, prospect{c, 1, s.worth(c)})
			}
		case c.Keeps != nil:
			all = append(all, prospect{c, *c.Keeps, s.worth(c)})
		}
	}
	for _, p := range all {
		switch {
		case !slices.ContainsFunc(all, func(q prospect) bool { return q.keeps >= p.keeps && s.beats(q.Candidate, p.Candidate) }):
			open = append(open, p)
		case p.keeps > 0.5:
			passed = p.Candidate
		}
	}
	slices.SortStableFunc(open, func(a, b prospect) int { return compare(b.keeps, a.keeps) })
	most := 0.0
	for _, p := range open {
		if share := expected(p, open); share > most && share >= enough {
			chosen, most = p.Candidate, share
		}
	}
	return chosen, passed
}

// worth of a candidate by what was asked for.
func (s *study) worth(c *Candidate) float64 {
	switch {
	case s.o.Deadline > 0 && slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.Cost != nil && c.Cost.Value > 0 }):
		if c.Cost == nil {
			return 0
		}
		return 1 / max(c.Cost.Value, 1e-12)
	case s.o.Deadline > 0:
		return 1 / float64(c.Workers)
	case s.o.Budget > 0:
		return 1 / c.Seconds.Value
	}
	return float64(c.Workers)
}

// expected is what choosing p is expected to bring, as a share of the worth of the best
// that keeps the limits: nothing if it breaks one. What one candidate is off its
// neighbours are as well (they share runs, law and base): in a share u of all worlds
// those keep the limits whose probability is u or more. all are sorted by it, highest
// first.
func expected(p prospect, all []prospect) float64 {
	share, best := 0.0, 0.0
	for i, q := range all {
		best = max(best, q.worth)
		next := 0.0
		if i+1 < len(all) {
			next = all[i+1].keeps
		}
		if top := min(q.keeps, p.keeps); top > next {
			share += (top - next) * p.worth / best
		}
	}
	return share
}
