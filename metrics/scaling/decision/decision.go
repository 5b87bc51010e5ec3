// Package decision chooses one of several options: a number of workers, an amount of a resource, a
// number of replicas. It does not see runs. The caller states how likely each option is to meet the
// user's limits, how many times better one option is than another, and which reasons for doubt
// there are. The package returns the choice with its probability, the options that may be better,
// and those that are equally good. It has no side effects.
package decision

import (
	"cmp"
	"math"
	"slices"
)

const (
	// Sure is the minimum probability with which a choice counts as decided.
	Sure = 0.95
	// Equivalent is the relative difference up to which two options count as equally good.
	Equivalent = 0.02
	// Close is the relative difference from the best option that the answer may have if there
	// are limits.
	Close = 0.10
	// Clear is the factor by which an option must be better to count as better if there are too few
	// runs for an interval. Each of its runs must be better, too.
	Clear = 1.5
)

// An Option is one of the alternatives to choose from.
type Option struct {
	Size     int  // number of workers, replicas and so on, of which fewer is better; options are sorted by it
	Runs     int  // number of measured runs; 0: the option is predicted
	Measured bool // whether the option was measured
	// Keeps is the probability that the option meets all limits; nil: unknown. Without limits it
	// is not used.
	Keeps *float64
	// Worth is the option's value if it meets the limits; more is better.
	Worth float64
}

// A Comparison says how many times better one option is than another. A larger option must be
// better by a factor that depends on its size, which is already divided out.
type Comparison struct {
	Value float64 // 0: unknown
	// Belief is Value with its error; nil: without interval; Why gives the reason.
	Belief *Belief
	Caveat *Caveat // a reason why the comparison may be wrong, such as too few runs for an interval; nil: none
	// Overlaps reports whether at least one run of the first option is not better than one of
	// the second, after the same division.
	Overlaps bool
}

// leads reports whether an option with too few runs for an interval counts as better.
func (c Comparison) leads() bool { return c.Value >= Clear && !c.Overlaps }

// atLeast returns the probability that the ratio is x or more. Without an interval it is 0 or 1,
// depending on Value.
func (c Comparison) atLeast(x float64) float64 {
	if c.Belief != nil {
		return 1 - c.Belief.AtMost(x)
	}
	if c.Value >= x {
		return 1
	}
	return 0
}

// A Kind is the kind of reason for a Doubt.
type Kind string

// The kinds of doubts.
const (
	Order     Kind = "order"      // runs of different options were made at different times
	Drift     Kind = "drift"      // the machine's speed changed while the study ran
	FewRuns   Kind = "few-runs"   // too few runs for intervals
	TwoGroups Kind = "two-groups" // a median falls between fast and slow runs
	Constant  Kind = "constant"   // all runs of an option have the same value: there is no interval
	FewCounts Kind = "few-counts" // too few worker counts to know the shape of the curve
	Misses    Kind = "misses"     // some runs miss the target
	Beyond    Kind = "beyond"     // the answer was not measured
	Data      Kind = "data"       // warnings about the runs
)

// A Caveat is a reason why the answer may be wrong.
type Caveat struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	// Changes reports whether the doubt can change the answer. The answer is then provisional.
	Changes bool `json:"changes_answer"`
}

// A Question holds the options and how to compare them.
type Question struct {
	Options []Option
	// Over compares option i with option j. It is used without limits, to find the option that
	// no other option beats.
	Over func(i, j int) Comparison
	// Beats reports whether option i is as good as the larger option j for all possible limits.
	// Then j is not chosen. If Beats is nil, this is never so.
	Beats  func(i, j int) bool
	Limits bool // there are limits: Keeps and Worth decide instead of Over
	UpTo   int  // largest Size that may be chosen; 0: any
	// Least is the minimum probability of meeting the limits that the answer must have. It is
	// set, for example, for a service that must not be overloaded. 0: the expected worth
	// decides.
	Least   float64
	Caveats []Caveat
	// Sure replaces the constant Sure for a study that is analysed more than once. 0: use the
	// constant.
	Sure float64
}

// sure returns the minimum probability with which a choice counts as decided.
func (q *Question) sure() float64 { return cmp.Or(q.Sure, Sure) }

// A Contender is an option that may be better than the chosen one.
type Contender struct {
	Option int
	// Probability is the probability that the option is better by more than Equivalent or, with
	// limits, that it meets them.
	Probability float64
}

// A Result is a decision.
type Result struct {
	Chosen int // index of the chosen option; -1: no option is good enough
	// Probability is a lower bound of the probability that no other option is better than the
	// chosen one by more than Equivalent. With limits, it is the probability that the chosen
	// option meets them and is within Close of the best. nil: unknown.
	Probability *float64
	// Provisional reports whether more runs, or a doubt, may change the answer.
	Provisional bool
	Undecided   []Contender // options that may be better, most likely first
	// Unproven are options whose comparison with the chosen one has neither an interval nor a
	// clear lead. More runs of them may change the answer.
	Unproven   []int
	Equivalent []int    // options that are as good as the chosen one, within Equivalent
	Passed     int      // index of an option that may meet the limits but that a smaller option beats; -1: none
	Caveats    []Caveat // doubts about the answer
}

// Decide returns the choice for a question.
func Decide(q Question) Result {
	r := Result{Chosen: -1, Passed: -1, Caveats: slices.Clone(q.Caveats)}
	if q.Limits {
		q.within(&r)
	} else {
		q.best(&r)
	}
	r.Provisional = r.Chosen >= 0 && len(r.Undecided) > 0 || r.Chosen >= 0 && r.Probability == nil ||
		slices.ContainsFunc(r.Caveats, func(d Caveat) bool { return d.Changes })
	return r
}

// best chooses the option that is most likely better than each other option. Of equally good
// options, it chooses the smaller.
func (q *Question) best(r *Result) {
	r.Chosen = q.strongest()
	if r.Chosen < 0 {
		return
	}
	wrong, known := 0.0, true // wrong is an upper bound of the probability that another option is better
	for j := range q.Options {
		if j == r.Chosen {
			continue
		}
		c := q.Over(r.Chosen, j)
		r.addCaveat(c)
		if c.Belief == nil && !(c.leads() && c.Caveat != nil && c.Caveat.Kind == FewRuns) {
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
	for i, c := range r.Undecided { // keep only the contenders without which the choice would be sure
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

// strongest returns the index of the option that has the best worst case: the smallest of its
// comparisons with the other options is larger than that of any other option. -1: none.
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
			// Only the value is used, which is also the median of the belief.
			least = min(least, q.Over(i, j).Value)
		}
		if least > highest {
			chosen, highest = i, least
		}
	}
	return chosen
}

// addCaveat adds the doubt about a comparison of the chosen option with another, unless the same
// text was added before.
func (r *Result) addCaveat(c Comparison) {
	if c.Caveat == nil {
		return
	}
	d := *c.Caveat
	if d.Kind == FewRuns {
		d.Changes = !c.leads()
	}
	i := slices.IndexFunc(r.Caveats, func(e Caveat) bool { return e.Kind == d.Kind && e.Text == d.Text })
	if i < 0 {
		r.Caveats = append(r.Caveats, d)
		return
	}
	r.Caveats[i].Changes = r.Caveats[i].Changes || d.Changes
}
