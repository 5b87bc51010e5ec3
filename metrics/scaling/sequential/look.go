package sequential

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// A Question is the question that the runs of one series must answer.
type Question struct {
	Wish   advice.Options // the user's requirements; Confidence, Sure and Most are set by the design
	Design Design
	// Hours returns the node-hours that one more run with this number of workers takes.
	Hours func(workers int) float64
}

// A Look is the result of an interim analysis: the state of the question according to all runs of
// one series so far.
type Look struct {
	Series  string
	Advice  *advice.Advice // nil: at least one worker count has fewer than First runs
	Counts  []int          // worker counts that may be measured again, ascending
	Runs    map[int]int    // number of good runs, by worker count
	Decided bool           // more runs cannot change the answer, at the design's level
	// Open are the worker counts whose further runs may change the answer, ascending. They include
	// the answer. If the question is not decided and Open is empty, no run can decide it.
	Open []int
	// Tie is a worker count that a decided answer beats by less than decision.Equivalent. More
	// runs will probably show that it is as good as the answer. 0: none exists.
	Tie int
	// Futile reports whether a count is so close to one of the user's limits that even the maximum
	// number of runs would probably not decide whether it meets the limit.
	Futile bool
	// Caveat is the reason why the answer stays provisional although no other count may be better.
	// More runs do not remove it. "" without such a reason.
	Caveat string

	scatter float64 // relative standard deviation of the throughput of runs; 0: unknown
}

// Options returns the options with which the curves for Look must be made.
func (d Design) Options() scaling.Options {
	return scaling.Options{Confidence: d.Confidence, FewRuns: true}
}

// Look analyses the runs of a curve, which must have been made with the design's Options, and
// returns the state of the question. The worker counts in closed cannot be measured again.
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
	if l.Caveat = q.timeless(c, l.Advice); l.Caveat == "" {
		l.Decided, l.Caveat = q.decided(l.Advice), lasting(l.Advice)
	}
	if !l.Decided && l.Caveat == "" {
		l.open(l.Advice, 1-q.Design.Confidence)
		l.compareWithBase(q.Wish)
	}
	l.scatter = Scatter([]scaling.Curve{c})
	l.Futile = q.futile(l)
	if l.Decided {
		l.Tie = q.tie(l, l.scatter)
	}
	return l, nil
}

// decided reports whether more runs cannot change the answer at the design's level. The answer may
// also be that no count meets the limits.
func (q Question) decided(a *advice.Advice) bool {
	switch {
	case len(a.Unproven) > 0:
		return false
	case a.Workers != nil:
		return !a.Provisional
	case slices.ContainsFunc(a.Caveats, doubtful):
		return false
	}
	return a.Limited() && !slices.ContainsFunc(a.Candidates, func(c advice.Candidate) bool {
		return c.Basis == advice.Measured && c.Keeps != nil && *c.Keeps > 1-q.Design.Confidence
	})
}

// timeless returns why the runs cannot decide a question about times, although each count has First runs: no time to a
// target was collected. It returns "" for any other question.
func (q Question) timeless(c scaling.Curve, a *advice.Advice) string {
	switch {
	case q.Wish.Deadline <= 0 && q.Wish.Budget <= 0 || len(a.Candidates) == 0 || a.Clock() != advice.Untimed:
		return ""
	case a.Goal == "":
		return "the runs have no time to a target, and --samples does not say how much to train"
	case slices.ContainsFunc(c.Points, func(p scaling.Point) bool { return p.Of(a.Goal).Runs > 0 }):
		return "" // runs that miss the target; others may reach it
	}
	return fmt.Sprintf("times to %s were not collected; add it to workload.targets, submit again (no run is repeated), and collect", a.Target.Text())
}

// tie returns a worker count of which more runs may show that it is as good as a decided answer;
// 0: none. It is as good if the interval that is expected after the maximum number of runs lies
// within decision.Equivalent; the probability of that must be at least hopeless. scatter is the
// relative standard deviation of runs.
func (q Question) tie(l *Look, scatter float64) int {
	a := l.Advice
	if a.Workers == nil || a.Limited() || len(a.Equivalent) > 0 {
		return 0
	}
	w := newWorths(l)
	w.relateTo(*a.Workers)
	most := q.Design.most()
	room := -math.Log(1-decision.Equivalent) - q.Design.half(most, scaling.OneSidedLevel(q.Design.Confidence))*scatter
	tie, likeliest := 0, hopeless
	for i, n := range w.counts {
		if n == *a.Workers || !slices.Contains(l.Counts, n) || math.IsNaN(w.log[i]) || room < 0 {
			continue
		}
		// The ratio of two medians of k normal runs has a standard deviation of √(π/2)·√(2/k)·scatter.
		left := math.Sqrt(math.Pi) * scatter * math.Sqrt(max(0, 1/float64(min(l.Runs[n], l.Runs[*a.Workers]))-1/float64(most)))
		p := within(w.log[i], left, room)
		if p >= likeliest {
			tie, likeliest = n, p
		}
	}
	return tie
}

// within returns the probability that a normal value is between -room and room.
func within(mean, sd, room float64) float64 {
	if sd == 0 {
		if math.Abs(mean) <= room {
			return 1
		}
		return 0
	}
	return distuv.UnitNormal.CDF((room-mean)/sd) - distuv.UnitNormal.CDF((-room-mean)/sd)
}

// doubtful reports whether a doubt is a warning about the runs that can change the answer. More runs
// would get the same warning.
func doubtful(d decision.Caveat) bool { return d.Changes && d.Kind == decision.Data }

// lasting returns a doubt that makes the answer provisional and that more runs do not remove; ""
// without one.
func lasting(a *advice.Advice) string {
	if i := slices.IndexFunc(a.Caveats, doubtful); i >= 0 {
		return Unremoved(a.Caveats[i].Text)
	}
	constant := func(d decision.Caveat) bool { return d.Changes && d.Kind == decision.Constant }
	if i := slices.IndexFunc(a.Caveats, constant); i >= 0 && a.Workers != nil {
		return a.Caveats[i].Text // at least as many equal runs as an interval of a median needs
	}
	return ""
}

// Unremoved returns a warning that more runs do not remove, with what to do.
func Unremoved(warning string) string {
	if remedy := scaling.Remedy(warning); remedy != "" {
		return warning + "; " + remedy + ", and measure again with another study.name"
	}
	return warning
}

// compareWithBase adds the base to the open counts if the user requires a minimum efficiency,
// since efficiency is measured relative to the base.
func (l *Look) compareWithBase(wish advice.Options) {
	if b := l.Advice.Base; wish.MinEfficiency > 0 && len(l.Open) > 0 && b != nil && slices.Contains(l.Counts, b.Workers) {
		l.Open = append(l.Open, b.Workers)
		slices.Sort(l.Open)
		l.Open = slices.Compact(l.Open)
	}
}

// open sets Open for an answer that is not decided: the counts whose runs may change it. A count
// that meets the limits with a probability of at most unlikely is not open.
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
			if p := cmp.Or(c.Keeps, c.KeepsOn); p != nil && *p > unlikely {
				open = append(open, c.Workers)
			}
		}
	}
	if len(open) == 0 || len(open) == 1 && !a.Limited() { // the reason for doubt concerns all counts
		open = append(open, l.Counts...)
	}
	slices.Sort(open)
	open = slices.DeleteFunc(slices.Compact(open), func(n int) bool { return !slices.Contains(l.Counts, n) })
	if len(a.Candidates) == 0 || len(open) < 2 && !a.Limited() {
		return // a single count: there is nothing to compare, and more runs do not help
	}
	l.Open = open
}
