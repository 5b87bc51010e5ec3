package sensitivity

import (
	"slices"

	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// Open returns the measured combinations of which more runs may change the answer: the reference,
// and those that are undecided, unless less than an insufficient amount or more than the answer. It
// returns nil if none is undecided.
func (a *Answer) Open() (list []Allocation) {
	if list, _ = a.undecided(); list != nil {
		list = append(list, a.Reference)
	}
	return list
}

// LeftOut returns the names of the combinations that have too few runs for an interval and are
// clearly too little.
func (a *Answer) LeftOut() (names []string) {
	_, far := a.undecided()
	for _, m := range far {
		names = append(names, nameOf(m.At, a.keys))
	}
	return names
}

// undecided returns the undecided combinations of which more runs may change the answer, and those
// that are far below. If nothing else can bring an answer, the latter are open, too.
func (a *Answer) undecided() (open, far []Allocation) {
	for _, m := range a.measured {
		switch {
		case m.Verdict != Undecided:
		case a.farBelow(m):
			far = append(far, m)
		case a.Spec != nil && dominates(m.At, a.Spec.At, a.keys):
		case !slices.ContainsFunc(a.measured, func(o Allocation) bool { return o.Verdict == TooLittle && dominates(o.At, m.At, a.keys) }):
			open = append(open, m)
		}
	}
	if open == nil && a.Spec == nil && !slices.ContainsFunc(a.Next, func(n Allocation) bool { return n.Verdict == "" }) {
		return far, nil
	}
	return open, far
}

// farBelow reports whether a combination that has too few runs for an interval is clearly too
// little: by decision.Clear, and in each run.
func (a *Answer) farBelow(m Allocation) bool {
	least := 1 - a.Epsilon
	return m.Ratio != nil && m.Ratio.Interval == nil && !m.Ratio.Constant() && m.Ratio.Value*decision.Clear <= least && len(m.Gains) > 0 && m.Gains[len(m.Gains)-1] < least
}
