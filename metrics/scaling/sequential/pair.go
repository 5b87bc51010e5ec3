package sequential

import (
	"github.com/scalebench/scalebench/metrics/compare"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// leastEqual is the number of equal runs of a setting from which on they are not due to chance, as
// in a sign test at 5 %: even if rounding made every other run equal to the first.
const leastEqual = 6

// Pair returns the state of the question which of two settings is better. The comparison must have
// been made at the level of a design ForTests. It is decided if the settings differ, or are AsGood
// as each other. Runs, Counts and Open of the Look have the pair's number of workers as the only
// count. closed reports whether no run is left to make.
func Pair(p *compare.Pair, closed bool) *Look {
	l := &Look{Runs: map[int]int{p.Workers: min(p.NA, p.NB)}}
	if p.Verdict == compare.Insufficient && !p.FewRuns && !p.Equal {
		l.Caveat = p.Why
	}
	l.Decided = p.Verdict != compare.Same && p.Verdict != compare.Insufficient || p.Why == "" && AsGood(p.Ratio)
	if p.Equal && min(p.NA, p.NB) >= leastEqual {
		l.Decided, l.Caveat = false, scaling.AllEqual+": check whether the values were copied or rounded"
	}
	if !l.Decided && l.Caveat == "" && !closed {
		l.Counts, l.Open = []int{p.Workers}, []int{p.Workers}
	}
	return l
}

// AsGood reports whether a ratio is certainly within decision.Equivalent of 1.
func AsGood(e *scaling.Estimate) bool {
	return e != nil && e.Interval != nil && e.Interval.Low >= 1-decision.Equivalent && e.Interval.High <= 1/(1-decision.Equivalent)
}
