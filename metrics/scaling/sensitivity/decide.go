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

// candidate is a combination of amounts that are enough one by one.
type candidate struct {
	at    map[string]scaling.Value
	depth int // steps above the smallest
}

// candidates are all combinations of a factor's levels from its least that is
// enough up to the reference, the smallest first. Words keep to the reference's.
func (a *Answer) candidates() []candidate {
	list := []candidate{{at: maps.Clone(a.Reference.At)}}
	for _, f := range a.Factors {
		if f.Enough == nil {
			continue
		}
		var amounts []scaling.Value // rising
		for _, l := range slices.Backward(f.Levels) {
			if Compare(f.Key, l.At, f.Reference) > 0 {
				break // more than what is best
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

// decide asks for the smallest combination that is enough.
func (a *Answer) decide(measured map[string]*Allocation, o Options) {
	if a.Value == nil || a.Value.Interval == nil {
		a.Why = "the runs are too few for intervals; 6 of each combination are needed"
	}
	var short []Allocation // that fell short
	var options []*Allocation
	var depths []int
	q := decision.Question{Limits: true, Least: sure}
	option := func(m *Allocation, depth int) {
		options, depths = append(options, m), append(depths, depth)
		q.Options = append(q.Options, decision.Option{Size: depth + 1, Runs: m.Runs, Measured: true, Keeps: m.Keeps, Worth: 1 / float64(depth+1)})
	}
	found := -1 // the depth of the smallest that is enough
	for _, c := range a.candidates() {
		if steps(c.at, a.Reference.At) == 0 {
			break // nothing less is enough
		}
		if found >= 0 && c.depth > found {
			break
		}
		if slices.ContainsFunc(short, func(s Allocation) bool { return dominates(s.At, c.at, o.Factors) }) {
			continue // less than what is too little
		}
		m := measured[nameOf(c.at, o.Factors)]
		switch {
		case m == nil && found >= 0:
		case m == nil:
			// One step above what fell short, or the smallest of all.
			if c.depth == 0 || slices.ContainsFunc(short, func(s Allocation) bool { return steps(s.At, c.at) == 1 && dominates(c.at, s.At, o.Factors) }) {
				a.Next = append(a.Next, Allocation{At: c.at})
			}
		default:
			option(m, c.depth)
			switch m.Verdict {
			case Enough:
				found = c.depth
			case Undecided:
				if found < 0 {
					a.Next = append(a.Next, *m)
				}
				short = append(short, *m)
			default:
				short = append(short, *m)
			}
		}
	}
	for _, n := range a.Next {
		if n.Verdict == "" {
			q.Doubts = append(q.Doubts, decision.Doubt{Kind: decision.Beyond, Changes: true})
		}
	}
	if found < 0 && a.Why == "" && len(a.Next) == 0 && len(a.Factors) > 0 && !slices.ContainsFunc(a.Factors, Factor.open) {
		option(&a.Reference, math.MaxInt32)
	}
	if r := decision.Decide(q); r.Chosen >= 0 {
		a.Why, a.Spec, a.Provisional = "", options[r.Chosen], r.Provisional
		for _, u := range r.Undecided {
			a.Undecided = append(a.Undecided, Contender{options[u.Option].At, u.Probability})
		}
		for i, m := range options {
			if i != r.Chosen && depths[i] == depths[r.Chosen] && m.Verdict == Enough {
				a.Also = append(a.Also, *m)
			}
		}
		return
	}
	var undecided []Allocation
	for _, f := range a.Factors { // the first undecided amount of each
		i := slices.IndexFunc(f.Levels, func(l Level) bool { return l.At != f.Reference && l.Verdict == Undecided })
		if len(a.Next) == 0 && i >= 0 {
			undecided = append(undecided, *measured[nameOf(a.With(f.Key, f.Levels[i].At), o.Factors)])
		}
	}
	a.Next = append(a.Next, undecided...)
	if a.Why == "" {
		switch {
		case len(a.Factors) == 0:
			a.Why = "no run has less of anything with all else unchanged"
		case len(a.Next) > 0 && a.Next[0].Verdict == "":
			a.Why = "amounts that are enough one by one were not measured together"
		case len(a.Next) > 0 && a.Next[0].Keeps != nil:
			a.Why = fmt.Sprintf("the runs do not decide: %s is %s likely to be enough", nameOf(a.Next[0].At, o.Factors), decision.Likely(*a.Next[0].Keeps))
		case len(a.Next) > 0:
			a.Why = "the runs do not decide"
		default:
			a.Why = "the runs do not decide whether less is enough"
		}
	}
}

// beaten returns the best of the combinations that are shown to beat the reference; nil for
// none.
func (a *Answer) beaten() (best *Allocation) {
	for i := range a.measured {
		m := &a.measured[i]
		if m.Ratio == nil || m.Ratio.Interval == nil || m.Ratio.Interval.Low <= 1 {
			continue
		}
		if best == nil || m.Ratio.Value > best.Ratio.Value {
			best = m
		}
	}
	return best
}

// refuse takes the answer back.
func (a *Answer) refuse(why string) {
	a.Spec, a.Also, a.Undecided, a.Provisional, a.Why = nil, nil, nil, false, why
}

// undistinguished refuses an answer where resources are words, which have no order, and the
// runs do not tell whether another word is better than the reference's by more than may be
// lost.
func (a *Answer) undistinguished() {
	if a.Spec == nil {
		return
	}
	for _, f := range a.Factors {
		for _, l := range f.Levels {
			if f.Ordered || l.At == f.Reference || l.Verdict == TooLittle {
				continue
			}
			if l.Ratio == nil || l.Ratio.Interval == nil || l.Ratio.Interval.High > 1+a.Epsilon {
				a.refuse(fmt.Sprintf("the runs do not tell whether %s=%s is better than %s, and words have no order", last(f.Key), l.At, f.Reference))
				a.Next = append(a.Next, Allocation{At: a.With(f.Key, l.At), Runs: l.Runs, Verdict: Undecided})
				return
			}
		}
	}
}
