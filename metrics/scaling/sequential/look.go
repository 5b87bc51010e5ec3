package sequential

import (
	"cmp"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// A Question is what a study is measured for.
type Question struct {
	Wish   advice.Options // its Confidence, Sure and Most are the design's
	Design Design
	Counts []int // workers that may be measured, ascending
}

// A Look is what the runs so far say of the question, for one series.
type Look struct {
	Advice  *advice.Advice // nil: some count has fewer than First runs
	Curve   scaling.Curve
	Runs    map[int]int // by workers
	Decided bool        // no run could change the answer, as far as the level goes
	// Open are the counts whose runs may change the answer, the answer among them; ascending.
	Open []int
}

// Look looks at the runs of one series.
func (q Question) Look(obs []scaling.Observation) (*Look, error) {
	l := &Look{Runs: map[int]int{}}
	for i := range obs {
		l.Runs[obs[i].Workers]++
	}
	for _, n := range q.Counts {
		if l.Runs[n] < First {
			l.Open = append(l.Open, n)
		}
	}
	if len(l.Open) > 0 {
		return l, nil
	}
	curves, err := scaling.Analyse(obs, scaling.Options{Confidence: q.Design.Confidence, FewRuns: true})
	if err != nil {
		return nil, err
	}
	l.Curve = curves[0]
	wish := q.Wish
	wish.Confidence, wish.Sure, wish.Most = q.Design.Confidence, q.Design.Confidence, slices.Max(q.Counts)
	if l.Advice, err = advice.Advise(l.Curve, obs, wish); err != nil {
		return nil, err
	}
	if l.Decided = q.decided(l.Advice); !l.Decided {
		l.Open = q.open(l.Advice)
	}
	return l, nil
}

// decided reports whether more runs of the counts cannot change the answer at the design's
// level, which may be that none of them keeps the limits.
func (q Question) decided(a *advice.Advice) bool {
	switch {
	case len(a.Unproven) > 0:
		return false
	case a.Workers != nil:
		return !a.Provisional
	}
	return a.Limited() && !slices.ContainsFunc(a.Candidates, func(c advice.Candidate) bool {
		return c.Basis == advice.Measured && c.Keeps != nil && *c.Keeps > 1-q.Design.Confidence
	})
}

// open returns the counts whose runs may change an answer that is not decided.
func (q Question) open(a *advice.Advice) []int {
	var open []int
	if a.Workers != nil {
		open = append(open, *a.Workers)
	}
	for _, c := range a.Undecided {
		open = append(open, c.Workers)
	}
	open = append(open, a.Unproven...)
	open = slices.DeleteFunc(open, func(n int) bool { return !slices.Contains(q.Counts, n) })
	if a.Limited() {
		for _, c := range a.Candidates { // no answer yet: what may keep the limits
			if a.Workers == nil && c.Keeps != nil && *c.Keeps > 1-q.Design.Confidence && slices.Contains(q.Counts, c.Workers) {
				open = append(open, c.Workers)
			}
		}
	} else if len(open) < 2 { // a doubt about all of them
		open = nil
	}
	if len(open) == 0 {
		open = slices.Clone(q.Counts)
	}
	slices.SortFunc(open, cmp.Compare[int])
	return slices.Compact(open)
}

// Target returns how many runs each open count is to have at the next look; nil where all
// have the most that the design allows.
func (q Question) Target(l *Look) map[int]int {
	least := q.Design.most()
	for _, n := range l.Open {
		least = min(least, l.Runs[n])
	}
	next := q.Design.Next(least)
	target := map[int]int{}
	for _, n := range l.Open {
		if l.Runs[n] < next {
			target[n] = next
		}
	}
	if len(target) == 0 {
		return nil
	}
	return target
}
