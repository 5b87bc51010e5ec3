package sequential

import (
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// A Question is the question that the runs of one series are to decide.
type Question struct {
	Wish   advice.Options // its Confidence, Sure, and Most are the design's
	Design Design
	// Hours returns the node-hours that one more run of a count takes.
	Hours func(workers int) float64
}

// A Look is the state of the question, by the runs of one series so far.
type Look struct {
	Series  string
	Advice  *advice.Advice // nil: some count has fewer than First runs
	Counts  []int          // that may be measured again, ascending
	Runs    map[int]int    // good ones, by workers
	Decided bool           // more runs cannot change the answer, at the design's level
	// Open are the counts whose runs may change the answer, the answer among them; ascending. Of an
	// undecided question without any, no run can decide it.
	Open []int
	// Tie is a count that a decided answer beats by less than decision.Equivalent, and that more
	// runs will probably show to be as good; 0: none.
	Tie int
	// Futile reports whether a limit is so near to what a count comes to that the most runs
	// would probably not decide.
	Futile bool
	// Doubt is why the answer stays provisional although no other count may be better; more
	// runs do not remove it. "" if there is none.
	Doubt string
}

// Options returns what the curves that Look takes are made with.
func (d Design) Options() scaling.Options {
	return scaling.Options{Confidence: d.Confidence, FewRuns: true}
}

// Look looks at the runs of a curve, which was made with the design's Options. Counts in
// closed are not measured again.
func (q Question) Look(c scaling.Curve, obs []scaling.Observation, closed map[int]bool) (*Look, error) {
	l := &Look{Series: c.Series, Runs: map[int]int{}}
	for _, p := range c.Points {
		l.Runs[p.Workers] += len(p.Runs)
		if !closed[p.Workers] {
			l.Counts = append(l.Counts, p.Workers)
		}
	}
	for _, n := range l.Counts {
		if l.Runs[n] < First {
			l.Open = append(l.Open, n)
		}
	}
	if len(l.Open) > 0 || len(c.Points) == 0 {
		return l, nil
	}
	wish := q.Wish
	wish.Confidence, wish.Sure, wish.Most = q.Design.Confidence, q.Design.Confidence, c.Points[len(c.Points)-1].Workers
	var err error
	if l.Advice, err = advice.Advise(c, obs, wish); err != nil {
		return nil, err
	}
	l.Decided, l.Doubt = q.decided(l.Advice), lasting(l.Advice)
	if !l.Decided && l.Doubt == "" {
		l.open(l.Advice, 1-q.Design.Confidence)
		l.compareWithBase(q.Wish)
	}
	l.Futile = q.futile(l)
	if l.Decided {
		l.Tie = q.tie(l, Scatter([]scaling.Curve{c}))
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

// tie returns a count whose equivalence with a decided answer more runs will probably
// show: the interval expected with the most runs lies within decision.Equivalent. Scatter is
// the relative standard deviation of runs.
func (q Question) tie(l *Look, scatter float64) int {
	a := l.Advice
	if a.Workers == nil || a.Limited() || len(a.Equivalent) > 0 {
		return 0
	}
	w := newWorths(l)
	w.relateTo(*a.Workers)
	room, tie := -math.Log(1-decision.Equivalent)-q.Design.half(q.Design.most())*scatter, 0
	for i, n := range w.counts {
		if away := math.Abs(w.log[i]); n != *a.Workers && away <= room && slices.Contains(l.Counts, n) {
			room, tie = away, n
		}
	}
	return tie
}

// lasting returns the doubt about the data that alone makes an answer provisional; "" if
// runs of some count may change the answer, or remove the doubt.
func lasting(a *advice.Advice) (text string) {
	if a.Workers == nil || len(a.Undecided) > 0 || len(a.Unproven) > 0 {
		return ""
	}
	for _, d := range a.Doubts {
		switch {
		case d.Changes && d.Kind != decision.Data:
			return ""
		case d.Changes && text == "":
			text = d.Text
		}
	}
	return text
}

// compareWithBase opens the base, too, where the question is about efficiency, which is over it.
func (l *Look) compareWithBase(wish advice.Options) {
	if b := l.Advice.Base; wish.MinEfficiency > 0 && len(l.Open) > 0 && b != nil && slices.Contains(l.Counts, b.Workers) {
		l.Open = append(l.Open, b.Workers)
		slices.Sort(l.Open)
		l.Open = slices.Compact(l.Open)
	}
}

// open finds the counts whose runs may change an answer that is not decided. A count keeps the
// limits with a probability of at most unlikely where it is out of the question.
func (l *Look) open(a *advice.Advice, unlikely float64) {
	var open []int
	if a.Workers != nil {
		open = append(open, *a.Workers)
	}
	for _, c := range a.Undecided {
		open = append(open, c.Workers)
	}
	open = append(open, a.Unproven...)
	if a.Limited() && a.Workers == nil {
		for _, c := range a.Candidates {
			if c.Keeps != nil && *c.Keeps > unlikely {
				open = append(open, c.Workers)
			}
		}
	}
	if len(open) == 0 || len(open) == 1 && !a.Limited() { // a doubt about all of them
		open = append(open, l.Counts...)
	}
	open = slices.DeleteFunc(open, func(n int) bool { return !slices.Contains(l.Counts, n) })
	if len(a.Candidates) == 0 || len(open) < 2 && !a.Limited() {
		return // nothing to compare: more runs do not help
	}
	slices.Sort(open)
	l.Open = slices.Compact(open)
}
