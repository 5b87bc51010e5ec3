package advice

import (
	"fmt"
	"math"
	"slices"
)

// next names the measurement that would help most, where the data does not
// decide.
func (s *study) next() {
	if len(s.runs) == 0 {
		return
	}
	for _, find := range []func() *Next{s.fillIn, s.confirm, s.decide, s.widen} {
		if s.Next = find(); s.Next != nil {
			return
		}
	}
}

// fillIn asks, where only medians are ranked, for the runs that a proof lacks:
// first at counts that have some.
func (s *study) fillIn() *Next {
	if !s.Ranking {
		return nil
	}
	full := 0
	for _, c := range s.Candidates {
		if c.Runs >= provenRuns {
			full++
		}
	}
	for _, c := range s.Candidates {
		if c.Runs < provenRuns {
			return &Next{c.Workers, provenRuns - c.Runs, fmt.Sprintf("an interval needs %d runs; it has %d", provenRuns, c.Runs)}
		}
	}
	n := s.node()
	if len(s.Candidates) > 0 {
		n = 2 * s.Candidates[len(s.Candidates)-1].Workers
	}
	return &Next{n, provenRuns, wanting(full)}
}

// confirm asks for what lies beyond the data and may be better, but for no more than
// twice as many workers as were measured, since a limit that no run has met shows
// there; else for the recommended count where it was not measured.
func (s *study) confirm() *Next {
	if largest := s.largest(); s.Beyond != nil {
		return &Next{min(2*largest, *s.Beyond), provenRuns, fmt.Sprintf("a limit not seen up to %d workers may appear there; do not count on %d before that", largest, *s.Beyond)}
	}
	if s.Workers == nil {
		return nil
	}
	for _, c := range s.Candidates {
		if c.Workers == *s.Workers && c.Basis != Measured {
			return &Next{c.Workers, provenRuns, "it is recommended but was not measured"}
		}
	}
	return nil
}

// decide asks for the count with the widest interval among those that would be
// better than the answer, and not slower with more workers, and keep the limits by the middle of their interval,
// though not by its end.
func (s *study) decide() *Next {
	limits, _ := s.asked()
	if len(limits) == 0 {
		return nil
	}
	_, better := s.better()
	var answer *Candidate
	if s.Workers != nil {
		answer = &s.Candidates[slices.IndexFunc(s.Candidates, func(c Candidate) bool { return c.Workers == *s.Workers })]
	}
	var open *Candidate
	width := 0.0
	for i := range s.Candidates {
		c := &s.Candidates[i]
		if answer != nil && (!better(c, answer) || s.beats(answer, c)) {
			continue
		}
		ok := true
		for _, l := range limits {
			ok = ok && l.met(c)
		}
		if !ok {
			continue
		}
		w := math.Inf(1)
		if f := c.main(); f != nil && f.Low != nil {
			w = *f.High / *f.Low
		}
		if w > width {
			open, width = c, w
		}
	}
	if open == nil {
		return nil
	}
	return &Next{min(2*s.largest(), open.Workers), max(1, provenRuns-open.Runs), "it may do what was asked, but its interval is too wide to tell"}
}

// widen asks for a larger count where a limit that more workers could keep is
// kept by none, or the knee lies at the end of what was measured.
func (s *study) widen() *Next {
	if len(s.Candidates) == 0 {
		return nil
	}
	largest := s.largest()
	limits, _ := s.asked()
	if len(limits) == 0 && s.Workers != nil && *s.Workers == largest {
		return &Next{2 * largest, provenRuns, "doubling still pays off at the largest count measured" + s.gain()}
	}
	if s.Workers == nil && s.o.Deadline > 0 && s.timeless == "" && s.Refused != "" {
		return &Next{2 * largest, provenRuns, "everything measured is too slow, and more workers were not measured"}
	}
	return nil
}

func (s *study) node() int { return max(s.nodeSize, 1) }
