// Package decision chooses one of several options: a number of workers, an amount of a
// resource, a number of replicas. It knows them by what curves say of them, never by
// their runs: how likely an option keeps the limits that were asked for, how many times
// better it is than another, and what is doubted. It returns the choice with its
// probability, what is undecided, what will do as well, and what to measure next. It is
// pure.
package decision

import (
	"cmp"
	"math"
	"slices"
)

const (
	// Sure is the probability from which on a choice counts as decided.
	Sure = 0.95
	// Equivalent is the difference, a fraction, that does not matter: of two options so
	// near to each other either will do.
	Equivalent = 0.02
	// Close is the difference from the best that an answer within limits may have.
	Close = 0.10
	// Clear is how many times better an option with too few runs for an interval must be
	// to count as better; each of its runs must be better, too.
	Clear = 1.5
)

// An Option is one that can be chosen.
type Option struct {
	Size     int  // what is to be spared: workers, replicas; options are sorted by it
	Runs     int  // that were measured; 0: it is predicted
	Measured bool // there are runs
	// Keeps is the probability that the option keeps all limits; nil: not known.
	// A question without limits ignores it.
	Keeps *float64
	// Worth is the option's value if it keeps the limits; more is better.
	Worth float64
}

// A Comparison tells how many times better one option is than another, after the price of
// its size.
type Comparison struct {
	Value float64 // 0: not known
	// Belief has the error; nil: there is no interval, and Why says why.
	Belief *Belief
	Doubt  *Doubt // why there is no interval, or what else is doubted; nil: nothing
	// Overlaps reports whether some run of the first option is no better than one of the second,
	// at the price.
	Overlaps bool
}

// leads reports whether an option with too few runs for an interval counts as better.
func (c Comparison) leads() bool { return c.Value >= Clear && !c.Overlaps }

// atLeast returns the probability that the ratio is x or more: without an interval
// that of the value alone.
func (c Comparison) atLeast(x float64) float64 {
	if c.Belief != nil {
		return 1 - c.Belief.AtMost(x)
	}
	if c.Value >= x {
		return 1
	}
	return 0
}

// A Kind says what a doubt is about.
type Kind string

// The kinds of doubts.
const (
	Order     Kind = "order"      // runs of different options were made at different times
	Drift     Kind = "drift"      // the machine's speed changed while the study ran
	FewRuns   Kind = "few-runs"   // too few runs for intervals
	TwoGroups Kind = "two-groups" // a median falls between fast and slow runs
	FewCounts Kind = "few-counts" // too few worker counts to see how the curve runs
	Misses    Kind = "misses"     // runs miss the target
	Beyond    Kind = "beyond"     // the answer was not measured
	Data      Kind = "data"       // warnings about the runs
)

// A Doubt is a reason why the answer may be wrong.
type Doubt struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	// Changes reports whether the doubt can change the answer, which is then
	// provisional.
	Changes bool `json:"changes_answer"`
}

// A Question has the options and what decides between them.
type Question struct {
	Options []Option
	// Over compares option i with option j, for a question without limits: it is asked
	// for the option that no other beats.
	Over func(i, j int) Comparison
	// Beats reports whether option i is as good as the larger option j whatever the
	// limits: then j is not chosen. nil: never.
	Beats  func(i, j int) bool
	Limits bool // Keeps and Worth decide, in place of Over
	UpTo   int  // largest Size that may be chosen; 0: any
	// Least is the probability of keeping the limits that the answer needs at least, such
	// as that of a service that must not be overloaded. 0: the expected worth decides.
	Least  float64
	Doubts []Doubt
	// Sure replaces the constant Sure where a study is looked at more than once. 0: Sure.
	Sure float64
}

// sure is the probability from which on a choice counts as decided.
func (q *Question) sure() float64 { return cmp.Or(q.Sure, Sure) }

// A Contender is an option that may be better than the chosen one.
type Contender struct {
	Option int
	// Probability is that it is better by more than Equivalent, or, within limits, that
	// it keeps them.
	Probability float64
}

// A Result is a decision.
type Result struct {
	Chosen int // index of the option; -1: none is good enough
	// Probability is that no other option is better than the chosen one by more than
	// Equivalent, at least; within limits, that the chosen one keeps them and is within
	// Close of the best. nil: it is not known.
	Probability *float64
	// Provisional reports whether more runs may change the answer, or a doubt.
	Provisional bool
	Undecided   []Contender // the likeliest first
	// Unproven are options whose comparison with the chosen one has no interval and no clear
	// lead: runs of them may change the answer.
	Unproven   []int
	Equivalent []int   // options as good as the chosen one, within Equivalent
	Passed     int     // an option that may keep the limits and is beaten by a smaller; -1: none
	Doubts     []Doubt // of the question
}

// Decide answers a question.
func Decide(q Question) Result {
	r := Result{Chosen: -1, Passed: -1, Doubts: slices.Clone(q.Doubts)}
	if q.Limits {
		q.within(&r)
	} else {
		q.best(&r)
	}
	r.Provisional = r.Chosen >= 0 && len(r.Undecided) > 0 || r.Chosen >= 0 && r.Probability == nil ||
		slices.ContainsFunc(r.Doubts, func(d Doubt) bool { return d.Changes })
	return r
}

// best chooses the option that most probably beats each other one, the smaller of
// equal ones.
func (q *Question) best(r *Result) {
	r.Chosen = q.strongest()
	if r.Chosen < 0 {
		return
	}
	wrong, known := 0.0, true // the probability that some option is better, at most
	for j := range q.Options {
		if j == r.Chosen {
			continue
		}
		c := q.Over(r.Chosen, j)
		r.doubt(c)
		if c.Belief == nil && !(c.leads() && c.Doubt != nil && c.Doubt.Kind == FewRuns) {
			known = false
			r.Unproven = append(r.Unproven, j)
		}
		p := 1 - c.atLeast(1-Equivalent)
		wrong += p
		if p > 0 {
			r.Undecided = append(r.Undecided, Contender{j, p})
		}
		if c.Belief != nil && p <= 1-q.sure() && 1-c.Belief.AtMost(1/(1-Equivalent)) <= 1-q.sure() {
			r.Equivalent = append(r.Equivalent, j)
		}
	}
	slices.SortStableFunc(r.Undecided, func(a, b Contender) int { return cmp.Compare(b.Probability, a.Probability) })
	rest := wrong
	for i, c := range r.Undecided { // those without which the choice is sure
		if rest <= 1-q.sure()+1e-12 {
			r.Undecided = r.Undecided[:i]
			break
		}
		rest -= c.Probability
	}
	if p := max(0, 1-wrong); known {
		r.Probability = &p
	}
}

// strongest returns the option whose worst comparison with another is the best; -1: none.
func (q *Question) strongest() int {
	n := len(q.Options)
	chosen := -1
	highest := math.Inf(-1)
	for i := range n {
		if q.UpTo > 0 && q.Options[i].Size > q.UpTo {
			continue
		}
		least := math.Inf(1)
		for j := range n {
			if i == j {
				continue
			}
			// By the value alone, which is the median of the belief, too.
			least = min(least, q.Over(i, j).Value)
		}
		if least > highest {
			chosen, highest = i, least
		}
	}
	return chosen
}

// doubt adds the doubts about the chosen option over another, each text once.
func (r *Result) doubt(c Comparison) {
	if c.Doubt == nil {
		return
	}
	d := *c.Doubt
	if d.Kind == FewRuns {
		d.Changes = !c.leads()
	}
	i := slices.IndexFunc(r.Doubts, func(e Doubt) bool { return e.Kind == d.Kind && e.Text == d.Text })
	if i < 0 {
		r.Doubts = append(r.Doubts, d)
		return
	}
	r.Doubts[i].Changes = r.Doubts[i].Changes || d.Changes
}
