package advice

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// next sets the measurement that would help most. It sets none if no run could change the answer,
// so always one if the answer is provisional. It sets none for imported runs.
func (s *study) next() {
	if len(s.runs) == 0 || s.imported() || len(s.Candidates) == 0 {
		return
	}
	for _, find := range []func() *Next{s.remeasure, s.fillIn, s.confirm, s.compare, s.open, s.widen, s.smaller, s.again} {
		if s.Next = find(); s.Next != nil {
			if s.Next.Neighbours == nil {
				s.Next.Neighbours = []int{}
			}
			return
		}
	}
}

// allowed reports whether that many workers can run; true if the cluster's size is unknown.
func (s *study) allowed(workers int) bool { return s.o.Most == 0 || workers <= s.o.Most }

// farthest returns the worker count to measure beyond the largest measured one: twice as many, or
// as many as the cluster has. 0: it has no more.
func (s *study) farthest() int {
	largest, node := s.largest(), s.node()
	n := 2 * largest
	if !s.allowed(n) {
		n = s.o.Most / node * node
	}
	if n <= largest {
		return 0
	}
	return n
}

// unmeasured returns a count that was not measured and may be better than the answer. It lies
// beyond the largest measured count, or in a gap next to the answer (in any gap if there is no
// answer). 0: none.
func (s *study) unmeasured() int {
	if n := s.farthest(); n > 0 && (s.Workers == nil || *s.Workers == s.largest()) {
		return n
	}
	if n := s.gap(); n > 0 {
		return n
	}
	return s.farthest()
}

// gap returns a count between two neighbouring measured counts that are more than a doubling
// apart. One of them must be the answer, if there is one. 0: none.
func (s *study) gap() int {
	node := s.node()
	before := 0
	for _, c := range s.Candidates {
		if c.Basis != Measured {
			continue
		}
		if before > 0 && c.Workers > 2*before && (s.Workers == nil || *s.Workers == c.Workers || *s.Workers == before) {
			if n := 2 * before / node * node; n > before && n < c.Workers {
				return n
			}
		}
		before = c.Workers
	}
	return 0
}

// reference returns the count that a new one is compared with: the answer if it was measured,
// else the largest measured count.
func (s *study) reference() int {
	if s.Workers != nil {
		if c := s.candidate(*s.Workers); c != nil && c.Basis == Measured {
			return c.Workers
		}
	}
	return s.largest()
}

func (s *study) nextTo(workers int) []int {
	if r := s.reference(); r > 0 && r != workers {
		return []int{r}
	}
	return nil
}

// remeasure suggests to measure the answer and its neighbours again, in blocks. It does so if a
// doubt about the order of the runs can change the answer, or if the runs of a count fall into
// two groups and the median may be in either.
func (s *study) remeasure() *Next {
	why := ""
	for _, d := range s.Caveats {
		switch {
		case !d.Changes || why != "":
		case d.Kind == decision.Order || d.Kind == decision.Drift:
			why = "in blocks, a run of each count in turn, a drift of the machine cancels out"
		case d.Kind == decision.TwoGroups:
			why = "half of the runs are fast and half slow; more of them tell which half has the median"
		case d.Kind == decision.Constant:
			why = "runs that are equal to the last digit do not show how much they scatter; record all digits of each run"
		}
	}
	if why == "" {
		return nil
	}
	return s.withNeighbours(why)
}

// withNeighbours suggests to measure the answer and its neighbours again; nil if no count was
// measured.
func (s *study) withNeighbours(why string) *Next {
	measured := s.measuredCounts()
	r := s.reference()
	i := slices.Index(measured, r)
	if i < 0 {
		return nil
	}
	n := &Next{Workers: r, Runs: fewRuns, Why: why}
	n.Neighbours = slices.Concat(measured[max(0, i-1):i], measured[i+1:min(len(measured), i+2)])
	return n
}

func (s *study) measuredCounts() (counts []int) {
	for _, c := range s.Candidates {
		if c.Basis == Measured {
			counts = append(counts, c.Workers)
		}
	}
	return counts
}

// smaller suggests half as many workers if a single count was measured and there are not more
// workers.
func (s *study) smaller() *Next {
	counts := s.measuredCounts()
	if len(counts) != 1 || counts[0] < 2 {
		return nil
	}
	n := counts[0] / 2
	if node := s.node(); n > node {
		n = n / node * node
	}
	return &Next{Workers: n, Runs: fewRuns, Neighbours: counts, Why: "a single worker count shows nothing about scaling"}
}

// again suggests to repeat the answer and its neighbours if the answer is provisional and nothing
// else helps. If the reason is a warning about the runs, its cause must be removed first.
func (s *study) again() *Next {
	switch {
	case !s.Provisional:
		return nil
	case slices.ContainsFunc(s.Caveats, func(d decision.Caveat) bool { return d.Changes && d.Kind == decision.Data }):
		n := s.withNeighbours("first remove the cause of the warning; more runs like these would not change the answer")
		if n != nil {
			n.AfterRepair = true
		}
		return n
	}
	return s.withNeighbours("the answer is provisional")
}

// fillIn suggests the runs that are missing for intervals, if a doubt says that they can change
// the answer.
func (s *study) fillIn() *Next {
	if !slices.ContainsFunc(s.Caveats, func(d decision.Caveat) bool { return d.Changes && d.Kind == decision.FewRuns }) && !s.Ranking {
		return nil
	}
	lacking := map[int]int{} // runs by worker count
	most := 0
	for _, c := range s.Candidates {
		if c.Basis != Measured {
			continue
		}
		useful, runs := s.useful(&c)
		if useful >= fewRuns {
			continue
		}
		// How many runs are needed to have fewRuns useful ones, if the same share of them is
		// useful as so far.
		lacking[c.Workers] = int(math.Ceil(float64(fewRuns)*float64(runs)/float64(max(1, useful)))) - runs
		if most == 0 || lacking[c.Workers] > lacking[most] {
			most = c.Workers
		}
	}
	if most == 0 {
		return nil
	}
	c := s.candidate(most)
	useful, _ := s.useful(c)
	n := &Next{Workers: most, Runs: lacking[most], Why: fmt.Sprintf("an interval needs %d runs%s; it has %d", fewRuns, s.reaching(), useful)}
	for _, o := range s.Candidates {
		if lacking[o.Workers] > 0 && o.Workers != most {
			n.Neighbours = append(n.Neighbours, o.Workers)
		}
	}
	if n.Neighbours == nil {
		n.Neighbours = s.nextTo(most)
	}
	return n
}

// useful returns how many runs of a measured candidate count for the interval of its speed, and
// how many there are. If times decide, only runs that reach the target count.
func (s *study) useful(c *Candidate) (useful, runs int) {
	for i := range s.curve.Points {
		if p := &s.curve.Points[i]; p.Workers == c.Workers && s.pace(p).Runs > 0 {
			return len(s.pace(p).Values), s.pace(p).Runs
		}
	}
	return c.Runs, c.Runs
}

// reaching returns a clause that restricts runs to those that reach the target; "" if none misses
// it or times do not decide.
func (s *study) reaching() string {
	if s.byTime() && s.misses.total > 0 {
		return " that reach " + s.goal()
	}
	return ""
}

// confirm suggests to measure the count beyond the data that may be better, but at most twice the
// largest measured count, because something that no run shows may limit scaling there. If there
// is no such count, it suggests the recommended count if that was not measured.
func (s *study) confirm() *Next {
	if largest := s.largest(); s.Beyond != nil {
		n := min(2*largest, *s.Beyond)
		return &Next{Workers: n, Runs: fewRuns, Neighbours: s.nextTo(n), Why: fmt.Sprintf("a limit not seen up to %s may appear there; do not count on %d before that", number.Count(largest, "worker"), *s.Beyond)}
	}
	if s.Workers == nil {
		return nil
	}
	if c := s.candidate(*s.Workers); c != nil && c.Basis != Measured {
		return &Next{Workers: c.Workers, Runs: fewRuns, Neighbours: s.nextTo(c.Workers), Why: "it is recommended but was not measured"}
	}
	return nil
}

// compare suggests as many more runs of the answer and of the count that may be better as may
// decide between them.
func (s *study) compare() *Next {
	if len(s.Undecided) == 0 || s.Workers == nil {
		return nil
	}
	c := s.Undecided[0]
	a, b := s.measuredPoint(*s.Workers), s.measuredPoint(c.Workers)
	if a == nil || b == nil {
		return nil
	}
	runs := min(s.pace(a).Runs, s.pace(b).Runs)
	of := s.over(b, a).comparison()
	more := decision.Narrower(runs, s.o.Confidence) - runs
	if of.Belief != nil {
		// distance is the ratio's distance from 1, beyond the difference that does not matter;
		// half is the half width of its interval. Both are logarithms.
		distance := math.Abs(math.Log(of.Value)) - math.Log(1-decision.Equivalent)
		half := math.Max(math.Log(of.Belief.High/of.Value), math.Log(of.Value/of.Belief.Low))
		more = decision.More(runs, half, distance, s.o.Confidence)
	}
	return &Next{Workers: c.Workers, Runs: more, Neighbours: []int{*s.Workers},
		Why: fmt.Sprintf("%s; %s of each would tell more", s.contender(c), number.Count(more, "more run"))}
}

// open suggests the count whose probability of meeting the limits is most uncertain, among those
// that would be better than the answer. If the answer itself was measured and is not sure to meet
// the limits, it suggests the answer.
func (s *study) open() *Next {
	limits, _ := s.asked()
	if len(limits) == 0 {
		return nil
	}
	_, better := s.better()
	var answer *Candidate
	if s.Workers != nil {
		answer = s.candidate(*s.Workers)
	}
	farthest := 2 * s.largest()
	var open *Candidate
	width := 0.0
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if answer != nil && (!better(c, answer) || s.beats(answer, c)) || c.Workers > farthest || !s.allowed(c.Workers) || c.Basis == Predicted {
			continue
		}
		if c.Keeps == nil || *c.Keeps <= 1-decision.Sure || answer == nil && *c.Keeps >= decision.Sure {
			continue // the runs decide already
		}
		w := math.Inf(1)
		if f := c.main(); f != nil && f.Low != nil {
			w = *f.High / *f.Low
		}
		// The closer the probability is to 50 %, the more its runs tell.
		if w *= 1 - math.Abs(2**c.Keeps-1); w > width {
			open, width = c, w
		}
	}
	if answer != nil && answer.Keeps != nil && *answer.Keeps < decision.Sure && answer.Basis == Measured {
		open = answer
	}
	if open == nil {
		return nil
	}
	n := &Next{Workers: open.Workers, Runs: fewRuns, Why: "it is " + s.oddsTo(open, " to do what was asked")}
	if open.Basis == Measured {
		n.Runs = decision.More(open.Runs, 1, 0, s.o.Confidence)
	} else {
		n.Neighbours = s.nextTo(open.Workers)
	}
	return n
}

// widen suggests a count that was not measured and may be better.
func (s *study) widen() *Next {
	limits, _ := s.asked()
	few := slices.ContainsFunc(s.Caveats, func(d decision.Caveat) bool { return d.Kind == decision.FewCounts })
	n := s.unmeasured()
	if n == 0 || s.timeless != "" && len(limits) > 0 && (s.o.Deadline > 0 || s.o.Budget > 0) {
		return nil
	}
	at := func(workers int, why string) *Next {
		return &Next{Workers: workers, Runs: fewRuns, Neighbours: s.nextTo(workers), Why: why}
	}
	largest := s.largest()
	switch {
	case len(limits) == 0 && s.Workers != nil && *s.Workers == largest && n > largest:
		return at(n, "doubling still pays off at the largest count measured"+s.gain())
	case len(limits) == 0 && s.gap() > 0:
		return at(s.gap(), "it lies next to the answer and was not measured")
	case s.Workers == nil && s.o.Deadline > 0 && s.Refused != "" && s.farthest() > 0:
		return at(s.farthest(), "everything measured is too slow, and more workers were not measured")
	case s.Workers == nil && s.farthest() > 0 && s.hope() != nil:
		c := s.hope()
		return at(s.farthest(), fmt.Sprintf("%d workers are %s", c.Workers, s.oddsTo(c, " to do what was asked")))
	case few:
		return at(n, fmt.Sprintf("%d worker counts are needed to know the shape of the curve", fewCounts))
	}
	return nil
}

// hope returns the count beyond the data that is the most likely to meet the limits; nil if none
// may.
func (s *study) hope() (best *Candidate) {
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if c.Workers > s.largest() && c.Keeps != nil && *c.Keeps > 1-decision.Sure && (best == nil || *c.Keeps > *best.Keeps) {
			best = c
		}
	}
	return best
}

func (s *study) node() int { return max(s.nodeSize, 1) }
