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

// holm takes back the differences that are not significant among all points
// together: in a study without any, some point has one in at most the given share
// of comparisons (Holm, Scandinavian Journal of Statistics 6, 1979). The points'
// p-values, smallest first, are held against alpha over how many are left; from
// the first that is larger on, none is a difference.
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

// otherDays says when no run of one set was made on a day, in UTC, on which one
// of the other was; "" where they share one, or where that is not known.
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

// whenUnknown names the sets with imported runs of which nothing says when they were
// made. The day of the import says nothing of that.
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
	return fmt.Sprintf("when the imported runs of %s were made is unknown: anything that changed between A and B looks like a difference between them; for a table, import --map started=COLUMN says when", strings.Join(sets, " and "))
}

// again are the studies to run again in turns, nil where that would not make the
// sets again. asked: they differ in what was asked for; ground: in what they ran on,
// which a scheduler chooses by what was asked, and nobody else does.
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
