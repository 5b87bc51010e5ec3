package compare

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// holm corrects the verdicts for multiple testing (Holm, Scandinavian Journal of Statistics 6,
// 1979). If no point really differs, the probability that any point shows a difference is then at
// most alpha. In ascending order, each p-value is compared with alpha divided by the number of
// points left. From the first larger one on, all differences are withdrawn.
func holm(points []Pair, alpha float64) {
	var tested []*Pair
	for i := range points {
		if points[i].P != nil && points[i].Verdict != Insufficient {
			tested = append(tested, &points[i])
		}
	}
	slices.SortStableFunc(tested, func(a, b *Pair) int { return cmp.Compare(*a.P, *b.P) })
	differ := true
	for i, p := range tested {
		if differ = differ && *p.P <= alpha/float64(len(tested)-i); !differ {
			p.Verdict = Same
		}
	}
}

// otherDays reports that the sets share no day (UTC) on which runs were made; "" if
// they share one or the days are unknown.
func otherDays(a, b []scaling.Observation) string {
	days := func(list []scaling.Observation) map[string]bool {
		set := map[string]bool{}
		for _, o := range list {
			if at := cmp.Or(o.BeganUnix, o.CreatedUnix); at > 0 {
				set[time.Unix(int64(at), 0).UTC().Format(time.DateOnly)] = true
			}
		}
		return set
	}
	x, y := days(a), days(b)
	if len(x) == 0 || len(y) == 0 {
		return ""
	}
	for day := range x {
		if y[day] {
			return ""
		}
	}
	span := func(set map[string]bool) string {
		list := slices.Sorted(maps.Keys(set))
		if len(list) == 1 {
			return "on " + list[0]
		}
		return "from " + list[0] + " to " + list[len(list)-1]
	}
	return fmt.Sprintf("A was measured %s and B %s: anything that changed in between looks like a difference between A and B; to tell, measure both again, alternating", span(x), span(y))
}

// whenUnknown names the sets with imported runs of unknown date. The day of the import
// does not tell when they ran.
func whenUnknown(a, b []scaling.Observation) string {
	var sets []string
	for i, runs := range [][]scaling.Observation{a, b} {
		if scaling.InUnknownOrder(runs) {
			sets = append(sets, []string{"A", "B"}[i])
		}
	}
	if sets == nil {
		return ""
	}
	return fmt.Sprintf("it is unknown when the imported runs of %s were made, so a change over time may look like a difference; for tables, import --map started=COLUMN", strings.Join(sets, " and "))
}

// again returns the studies to run again in turns; nil if that would not recreate the sets. asked
// is true if the sets differ in requested parameters. ground is true if they differ in
// fingerprints; only a scheduler can reproduce that, by choosing nodes for the requested
// parameters.
func again(a, b []scaling.Observation, asked, ground bool) []string {
	x, y := studies(a), studies(b)
	scheduled := func(o scaling.Observation) bool { return o.Job != "" }
	switch {
	case len(x) != 1 || len(y) != 1:
		return nil
	case x[0] == y[0] && !asked:
		return nil
	case ground && !slices.ContainsFunc(slices.Concat(a, b), scheduled):
		return nil
	}
	return []string{x[0], y[0]}
}

func studies(list []scaling.Observation) []string {
	var names []string
	for _, o := range list {
		if !slices.Contains(names, o.Study) {
			names = append(names, o.Study)
		}
	}
	return names
}
