package advice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// conflict returns a clause for several limits that no count meets together, although each is met
// by some count: for each limit, the count that meets it and comes closest to the others. It is
// "" if some limit alone is met by no count, or one count meets all of them.
func (s *study) conflict(limits []limit, words []string) (text string) {
	if len(limits) < 2 {
		return ""
	}
	var counts []*Candidate
	keeps := map[*Candidate][]string{} // the limits that it meets, in words
	for i, l := range limits {
		var met []*Candidate
		for j := range s.Candidates {
			if c := &s.Candidates[j]; c.Workers <= 2*s.largest() && l.met(c) && !math.IsInf(excess(c, limits), 1) {
				met = append(met, c)
			}
		}
		if len(met) == 0 {
			return ""
		}
		c := slices.MinFunc(met, func(a, b *Candidate) int { return cmp.Compare(excess(a, limits), excess(b, limits)) })
		if excess(c, limits) <= 1 {
			return ""
		}
		if keeps[c] == nil {
			counts = append(counts, c)
		}
		keeps[c] = append(keeps[c], words[i])
	}
	for _, c := range counts {
		verb := "do"
		if c.Workers == 1 {
			verb = "does"
		}
		text += fmt.Sprintf("; %s %s %s: %s", number.Count(c.Workers, "worker"), verb, list(keeps[c]), s.figures(c))
	}
	return text + "; relax one of the limits"
}

// excess returns by what factor a candidate exceeds the limit that it misses the most; at most 1
// if it meets all of them, and +Inf if a value is unknown.
func excess(c *Candidate, limits []limit) float64 {
	most := 0.0
	for _, l := range limits {
		f := l.of(c)
		switch {
		case f == nil:
			return math.Inf(1)
		case l.floor:
			most = max(most, l.most/f.Value)
		default:
			most = max(most, f.Value/l.most)
		}
	}
	return most
}

// unmet returns the first limit that no candidate meets; nil if each is met by some.
func (s *study) unmet(limits []limit) *limit {
	for i := range limits {
		if !slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return limits[i].met(&c) }) {
			return &limits[i]
		}
	}
	return nil
}

// unproven returns the measured counts that have no interval and are so close to a limit that
// more runs may tell whether they meet it. From scaling.LeastSeparate runs on, a count is not close
// if it is twice as far from the limit as its runs are apart: for normal runs, 4 give an interval of
// 99 % that does not reach the limit, and for any others the sign test errs in at most 1/16.
//
// A count that is worse than the answer even if it meets the limits does not matter while the answer
// meets them.
func (s *study) unproven(limits []limit) (list []int) {
	worse := func(*Candidate) bool { return false }
	if s.Workers != nil {
		least := s.worth(s.candidate(*s.Workers)) * (1 - decision.Close)
		worse = func(c *Candidate) bool { return s.worth(c) < least }
	}
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Basis != Measured || c.Keeps != nil || worse(c) {
			continue
		}
		if s.mayReach(c.Workers) {
			list = append(list, c.Workers)
			continue
		}
		clear := decision.Clear
		if p := s.point(c.Workers); p != nil {
			if x := s.pace(p).Values; len(x) >= scaling.LeastSeparate && x[0] > 0 {
				clear = min(clear, max(x[len(x)-1]/x[0]*x[len(x)-1]/x[0], 1/(1-decision.Equivalent)))
			}
		}
		for _, l := range limits {
			if f := l.of(c); f != nil && f.Value < l.most*clear && f.Value > l.most/clear {
				list = append(list, c.Workers)
				break
			}
		}
	}
	return list
}

// mayReach reports whether the runs on a number of workers have no median, because half or more miss
// the target, but more runs may show that the median reaches it: fewer than scaling.LeastSeparate
// runs miss it, or so many reach it as a sign test at the level of one end of an interval allows.
func (s *study) mayReach(workers int) bool {
	p := s.point(workers)
	if p == nil || !s.byTime() {
		return false
	}
	t := s.pace(p)
	reach := len(t.Values)
	if reach == 0 {
		return t.Runs < scaling.LeastSeparate
	}
	return 2*reach <= t.Runs && reach >= decision.Rank(t.Runs, scaling.OneSidedLevel(s.o.Confidence))
}
