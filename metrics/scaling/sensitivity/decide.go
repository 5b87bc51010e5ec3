package sensitivity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// A candidate is a combination of amounts, each of which suffices if the other resources are
// plentiful.
type candidate struct {
	at    map[string]scaling.Value
	depth int // number of steps above the smallest
}

// candidates returns all combinations of each factor's levels from its smallest sufficient
// one up to the reference, smallest first. Words stay at the reference's value.
func (a *Answer) candidates() []candidate {
	list := []candidate{{at: maps.Clone(a.Reference.At)}}
	for _, f := range a.Factors {
		if f.Enough == nil {
			continue
		}
		var amounts []scaling.Value // ascending
		for _, l := range slices.Backward(f.Levels) {
			if Compare(f.Key, l.At, f.Reference) > 0 {
				break // more than the best
			}
			if len(amounts) > 0 || l.At == *f.Enough {
				amounts = append(amounts, l.At)
			}
		}
		var next []candidate
		for _, c := range list {
			for i, v := range amounts {
				at := maps.Clone(c.at)
				at[f.Key] = v
				next = append(next, candidate{at, c.depth + i})
			}
		}
		list = next
	}
	slices.SortStableFunc(list, func(x, y candidate) int { return cmp.Compare(x.depth, y.depth) })
	return list
}

// A search finds the smallest combination that suffices.
type search struct {
	*Answer
	measured map[string]*Allocation
	keys     []string
	found    int          // the chosen combination's number of steps above the smallest one; -1: none yet
	short    []Allocation // insufficient or undecided
	question decision.Question
	options  []*Allocation // options of the question
	depths   []int         // number of steps of each above the smallest combination
}

// decide finds the smallest combination that suffices.
func (a *Answer) decide(measured map[string]*Allocation, o Options) {
	if _, _, ok := a.Value.Ends(); !ok && !(o.FewRuns && a.Value != nil) {
		a.Why = "the runs are too few for intervals; 6 of each combination are needed"
	}
	s := search{Answer: a, measured: measured, keys: o.Factors, found: -1, question: decision.Question{Limits: true, Least: o.sure()}}
	for _, text := range a.Because {
		s.question.Caveats = append(s.question.Caveats, decision.Caveat{Kind: decision.Data, Text: text, Changes: true})
	}
	s.visit()
	for _, n := range a.Next {
		if n.Verdict == "" {
			s.question.Caveats = append(s.question.Caveats, decision.Caveat{Kind: decision.Beyond, Changes: true})
		}
	}
	if s.found < 0 && a.Why == "" && len(a.Next) == 0 && len(a.Factors) > 0 && !slices.ContainsFunc(a.Factors, Factor.open) {
		s.option(&a.Reference, math.MaxInt32)
	}
	if r := decision.Decide(s.question); r.Chosen >= 0 {
		s.choose(r)
		return
	}
	if len(a.Next) == 0 {
		s.nextUndecided()
	}
	if a.Why == "" {
		a.Why = s.whyOpen()
	}
}

// visit tries the combinations, smallest first, until all with the size of the first
// sufficient one were tried.
func (s *search) visit() {
	for _, c := range s.candidates() {
		if steps(c.at, s.Reference.At) == 0 || s.found >= 0 && c.depth > s.found {
			return
		}
		if slices.ContainsFunc(s.short, func(m Allocation) bool { return dominates(m.At, c.at, s.keys) }) {
			continue // even less than an insufficient amount
		}
		m := s.measured[nameOf(c.at, s.keys)]
		if m == nil {
			s.propose(c)
			continue
		}
		s.option(m, c.depth)
		if m.Verdict == Enough {
			s.found = c.depth
			continue
		}
		if m.Verdict == Undecided && s.found < 0 {
			s.Next = append(s.Next, *m)
		}
		s.short = append(s.short, *m)
	}
}

// propose adds a combination to the next measurements: the smallest of all, or one a step
// above an insufficient one.
func (s *search) propose(c candidate) {
	above := func(m Allocation) bool { return steps(m.At, c.at) == 1 && dominates(c.at, m.At, s.keys) }
	if s.found < 0 && (c.depth == 0 || slices.ContainsFunc(s.short, above)) {
		s.Next = append(s.Next, Allocation{At: c.at})
	}
}

func (s *search) option(m *Allocation, depth int) {
	s.options, s.depths = append(s.options, m), append(s.depths, depth)
	s.question.Options = append(s.question.Options, decision.Option{Size: depth + 1, Runs: m.Runs, Measured: true, Keeps: m.Keeps, Worth: 1 / float64(depth+1)})
}

// choose sets the answer, and other sufficient combinations of the same size.
func (s *search) choose(r decision.Result) {
	s.Why, s.Spec, s.Provisional = "", s.options[r.Chosen], r.Provisional
	for _, u := range r.Undecided {
		s.Undecided = append(s.Undecided, Contender{s.options[u.Option].At, u.Probability})
	}
	for i, m := range s.options {
		if i != r.Chosen && s.depths[i] == s.depths[r.Chosen] && m.Verdict == Enough {
			s.Also = append(s.Also, *m)
		}
	}
}

// nextUndecided proposes the first undecided amount of each resource.
func (s *search) nextUndecided() {
	for _, f := range s.Factors {
		i := slices.IndexFunc(f.Levels, func(l Level) bool { return l.At != f.Reference && l.Verdict == Undecided })
		if i >= 0 {
			s.Next = append(s.Next, *s.measured[nameOf(s.With(f.Key, f.Levels[i].At), s.keys)])
		}
	}
}

// whyOpen says why the question is open.
func (s *search) whyOpen() string {
	switch {
	case len(s.Factors) == 0:
		return "no run has less of anything with all else unchanged"
	case len(s.Next) == 0:
		return "the runs do not decide whether less is enough"
	case s.Next[0].Verdict == "":
		return "amounts that are enough one by one were not measured together"
	case s.Next[0].Keeps != nil:
		return fmt.Sprintf("the runs do not decide: %s is %s likely to be enough", nameOf(s.Next[0].At, s.keys), decision.Likely(*s.Next[0].Keeps))
	}
	return "the runs do not decide"
}

// beaten returns the best of the combinations that surely beat the reference; nil for none.
func (a *Answer) beaten() (best *Allocation) {
	for i := range a.measured {
		m := &a.measured[i]
		if low, _, ok := m.Ratio.Ends(); !ok || low <= 1 {
			continue
		}
		if best == nil || m.Ratio.Value > best.Ratio.Value {
			best = m
		}
	}
	return best
}

// refuse withdraws the answer.
func (a *Answer) refuse(why string) {
	a.Spec, a.Also, a.Undecided, a.Provisional, a.Why = nil, nil, nil, false, why
}

// undistinguished withdraws an answer if resources are words, which have no order, and the
// runs do not tell whether another word is better than the reference's by more than the
// permitted loss.
func (a *Answer) undistinguished() {
	if a.Spec == nil {
		return
	}
	for _, f := range a.Factors {
		for _, l := range f.Levels {
			if f.Ordered || l.At == f.Reference || l.Verdict == TooLittle {
				continue
			}
			if _, high, ok := l.Ratio.Ends(); !ok || high > 1+a.Epsilon {
				a.refuse(fmt.Sprintf("the runs do not tell whether %s=%s is better than %s, and words have no order", last(f.Key), l.At, f.Reference))
				a.Next = append(a.Next, Allocation{At: a.With(f.Key, l.At), Runs: l.Runs, Verdict: Undecided})
				return
			}
		}
	}
}

// judge compares the interval of a ratio with the permitted loss.
func judge(ratio *scaling.Estimate, epsilon float64) Verdict {
	low, high, ok := ratio.Ends()
	switch {
	case !ok:
		return Undecided
	case low >= 1-epsilon:
		return Enough
	case high < 1-epsilon:
		return TooLittle
	}
	return Undecided
}

// keeps returns the probability that an amount suffices; nil without an interval.
func (o *Options) keeps(ratio *scaling.Estimate) *float64 {
	low, high, ok := ratio.Ends()
	if !ok {
		return nil
	}
	p := 1 - decision.Belief{Value: ratio.Value, Low: low, High: high, Level: o.Confidence}.AtMost(1-o.Epsilon)
	switch judge(ratio, o.Epsilon) { // without width, the interval's ends equal its value
	case Enough:
		p = max(p, o.sure())
	case TooLittle:
		p = min(p, 1-o.sure())
	}
	return &p
}

// open reports whether less than the reference may suffice: the next amount, or any other
// word, is not insufficient.
func (f Factor) open() bool {
	for _, l := range f.Levels {
		switch {
		case l.At == f.Reference:
		case l.Verdict != TooLittle:
			return true
		case f.Ordered:
			return false
		}
	}
	return false
}
