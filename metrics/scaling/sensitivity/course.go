package sensitivity

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// courseOf returns how much the machine's speed changed during a study. It uses pairs of
// consecutive blocks of runs of which the first starts and the second ends with the
// reference. For each pair, the result has the relative gain of the second run of the
// reference over the first, ascending. The launcher runs designs in this order; courseOf
// checks the start times.
func courseOf(full, all []*scaling.Observation, o Options) []float64 {
	type block struct {
		study  string
		repeat int
	}
	span := map[block][2]float64{} // start of the first and the last run, the reference excluded
	for _, run := range all {
		if slices.Contains(full, run) {
			continue
		}
		b := block{run.Study, run.Repeat}
		s, known := span[b]
		if !known {
			s = [2]float64{run.BeganUnix, run.BeganUnix}
		}
		span[b] = [2]float64{min(s[0], run.BeganUnix), max(s[1], run.BeganUnix)}
	}
	of := map[block]*scaling.Observation{}
	for _, run := range full {
		of[block{run.Study, run.Repeat}] = run
	}
	var changes []float64
	for b, first := range of {
		second := block{b.study, b.repeat + 1}
		last := of[second]
		before, after := span[b], span[second] // 0 without runs or times
		if b.repeat%2 == 0 || last == nil || before[0] == 0 || after[0] == 0 || first.BeganUnix == 0 ||
			first.BeganUnix > before[0] || before[1] > after[0] || after[1] > last.BeganUnix {
			continue
		}
		x, ok := first.Value(o.Measure.Name)
		y, also := last.Value(o.Measure.Name)
		if ok && also && x > 0 && y > 0 && !math.IsInf(x, 1) && !math.IsInf(y, 1) {
			changes = append(changes, o.Measure.Gain(y, x)-1)
		}
	}
	slices.Sort(changes)
	return changes
}

// drifts warns about a change as large as the loss that is judged. Its effect on a ratio is
// smaller, since half of the blocks start with the reference and half end with it.
func (a *Answer) drifts() {
	n := len(a.Course)
	if n < 2 || a.Course[0] < 0 && a.Course[n-1] > 0 {
		return
	}
	if change := scaling.Middle(a.Course); math.Abs(change) >= a.Epsilon {
		a.Warnings = append(a.Warnings, fmt.Sprintf("drift: runs with all resources became %s between two blocks, by the %s (median of %s, all in one direction); verdicts near the permitted loss of %s are uncertain",
			DescribeChange(change), a.Measure.Title, number.Count(n, "pair"), number.ExactPercent(a.Epsilon)))
	}
}

// DescribeChange describes a change: "2.0 % better".
func DescribeChange(change float64) string {
	if change < 0 {
		return number.Percent(-change) + " worse"
	}
	return number.Percent(change) + " better"
}
