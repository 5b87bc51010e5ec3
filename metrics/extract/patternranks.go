package extract

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/number"
)

// Two ranks' values count as the same value if their ratio is at most sameValue. Synchronised
// ranks measure the same steps with different clocks.
const sameValue = 1.05

// copies fails if several ranks print different values. A rate that each rank measures
// for itself is only a part of the run's rate. If the ranks' rates of all workers differ only
// slightly, the study has to declare that each is the rate of the run.
func (l *log) copies(c *compiled, bySource map[string][]match) {
	of := map[string]float64{}
	for s, all := range bySource {
		of[s] = must(reduceBy(c.Reduce, numbers(matchValues(all))))
	}
	sources, byValue := slices.Sorted(maps.Keys(of)), func(a, b string) int { return cmp.Compare(of[a], of[b]) }
	at, to := slices.MinFunc(sources, byValue), slices.MaxFunc(sources, byValue)
	low, high := of[at], of[to]
	rate := strings.HasSuffix(c.unit.base, "/s")
	same := high <= low*sameValue || low < 0 && high-low <= (sameValue-1)*math.Abs(low)
	if c.unit.base == "" && high-low <= 0.02 { // fractions
		same = true
	}
	remedy := "log it on one rank, or let the pattern match that rank's lines only"
	switch {
	case low == high, same && (!rate || c.ofRun):
		return
	case rate && same:
		remedy = "write of = \"rank\" to add them up, or of = \"run\" if each is of all workers"
	case rate:
		remedy = "write of = \"rank\" to add them up"
	}
	l.fail(0, "ranks print different values of %s (%g on rank %s, %g on rank %s), so none is the run's: %s", c.Name, low, at, high, to, remedy)
}

// ofOneRank adds a note if only one rank states a rate, and the log does not say of which ranks.
func (l *log) ofOneRank(c *compiled, all []match) {
	rank := cmp.Or(all[0].source, all[0].rank)
	if !c.ofAll() || c.ofRun || c.unit.steps || l.o.Workers < 2 || rank == "" {
		return
	}
	for _, m := range all {
		if m.total || cmp.Or(m.source, m.rank) != rank {
			return
		}
	}
	l.note("only rank %s states %s, and nothing says whether it is its own or that of all %d workers, as which it is read: set of = \"rank\" or of = \"run\"", rank, c.Name, l.o.Workers)
}

// fewSettled is the smallest number of values in which a start-up phase is looked for: the first
// half of fewer values does not show a direction (see oneWay).
const fewSettled = 7

// settled returns the matches without the start-up phase, which would distort the median. For a
// long time, the rate in a progress bar includes the first steps, in which programs compile.
func (l *log) settled(c *compiled, all []match) []match {
	if c.Per != "step" || c.Reduce != "median" && c.Reduce != "mean" || len(all) < fewSettled || !strings.HasSuffix(c.unit.base, "/s") && c.unit.base != "s" {
		return all
	}
	values := matchValues(all)
	whole, later := c.reduced(values), c.reduced(values[len(values)-max(3, len(values)/4):])
	if !finite(later/whole) || within(later, whole, 1.03) || !oneWay(values[:len(values)-len(values)/2]) {
		return all
	}
	start := 0
	for start < len(values)-3 && !within(c.reduced(values[start:start+1]), later, 1.015) {
		start++
	}
	if mean := meanOf(all); mean != "" {
		l.note("%s is a running mean by its name (%q), which the slow first steps change for long: the first %d of %s are left out, and the rest may still be off; let the pattern match the value of each step, or write reduce = \"last\" for the mean of the run", c.Name, mean, start, number.Count(len(values), "value"))
		return all[start:]
	}
	l.note("the first %d of %s of %s are left out as warm-up; to choose others, set reduce = \"last\" or \"max\", or match fewer lines", start, number.Count(len(values), "value"), c.Name)
	return all[start:]
}

// within reports whether a value and the settled value differ by at most the factor.
func within(x, settled, factor float64) bool { return x <= factor*settled && settled <= factor*x }

// oneWay reports whether values drift in one direction, which noise alone does not cause.
func oneWay(values []Value) bool {
	rises, falls := 0, 0
	for i := 1; i < len(values); i++ {
		switch a, b := values[i-1].Number, values[i].Number; {
		case b > a:
			rises++
		case b < a:
			falls++
		}
	}
	return min(rises, falls) == 0 && max(rises, falls) >= 3
}
