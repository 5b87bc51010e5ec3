package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A reader cannot distinguish thousands of runs, and a page with all of them is too large
// to send. A series therefore shows at most mostDots dots and mostTraces lines of single
// runs, and fewer dots if the figure has more than mostInAll/mostDots series, but leastDots. Medians, intervals and
// ratios use all runs.
const (
	mostDots   = 400
	leastDots  = 40
	mostInAll  = 2000
	mostTraces = 100
)

// dotsFor returns the largest number of dots of a series in a figure of n series.
func dotsFor(n int) int { return min(mostDots, max(leastDots, mostInAll/max(1, n))) }

// thin leaves out single runs of a series that has too many, evenly; a series keeps at most the given number of dots.
// It chooses dots by position and value, so that their density still shows the distribution, and keeps the extremes at
// each position. It chooses lines by where they end.
func (c *chart) thin(dots int) {
	kept := map[int]bool{} // indices in c.marks
	shown, runs := 0, c.runs
	for _, group := range c.runMarks() {
		most := dots
		if c.marks[group[0]].Kind != Dot {
			most = mostTraces
		}
		runs = max(runs, len(group))
		choice := evenly(c.marks, group, most)
		shown = max(shown, len(choice))
		for _, i := range choice {
			kept[i] = true
		}
	}
	if shown == runs {
		return
	}
	ends := map[XY]bool{} // ends of the kept lines
	for i := range kept {
		if m := c.marks[i]; m.Kind != Dot {
			ends[m.Points[0]] = true
		}
	}
	var marks []Mark
	for i, m := range c.marks {
		switch {
		case m.Kind == Dot, endsRun(m):
			if !kept[i] {
				continue
			}
		case m.Kind == Trace:
			if !ends[m.Points[len(m.Points)-1]] {
				continue
			}
		}
		marks = append(marks, m)
	}
	c.marks = marks
	c.caption = append(c.caption, fmt.Sprintf("Drawn: at most %d of a series' %d runs, spread evenly over their range.", shown, runs))
}

// endsRun reports whether m ends the line of one run.
func endsRun(m Mark) bool {
	return m.Kind == End || m.Kind == Missed && !math.IsInf(m.Points[0].Y, 1)
}

// runMarks returns the indices of the marks that show one run each, grouped by kind and
// series. The end of a line represents it.
func (c *chart) runMarks() map[string][]int {
	groups := map[string][]int{}
	for i, m := range c.marks {
		switch {
		case m.Kind == Dot:
			groups["dot "+m.Series] = append(groups["dot "+m.Series], i)
		case endsRun(m):
			groups["line "+m.Series] = append(groups["line "+m.Series], i)
		}
	}
	return groups
}

// evenly selects about most marks of a group, evenly by rank, plus the first and the last
// at each position with many.
func evenly(marks []Mark, group []int, most int) []int {
	if len(group) <= most {
		return group
	}
	at := func(i int) XY { return marks[i].Points[0] }
	slices.SortStableFunc(group, func(a, b int) int { return cmp.Or(cmp.Compare(at(a).X, at(b).X), cmp.Compare(at(a).Y, at(b).Y)) })
	step := (len(group) + most - 1) / most
	var list []int
	for first := 0; first < len(group); {
		last := first
		for last+1 < len(group) && at(group[last+1]).X == at(group[first]).X {
			last++
		}
		for i := first; i <= last; i++ {
			if i%step == 0 || last-first >= step && (i == first || i == last) {
				list = append(list, group[i])
			}
		}
		first = last + 1
	}
	return list
}

// dotStep returns n if every n-th run of a trend is a dot. Marks of all runs of a large study would take more memory
// than its curves. The summaries' values are sorted, so that every n-th shows their distribution.
func (c *chart) dotStep(t trend) int {
	total := 0
	for i := range t.curve.Points {
		total += len(t.at(&t.curve.Points[i]).Values)
	}
	if total <= mostDots {
		return 1
	}
	c.runs = max(c.runs, total)
	return (total + mostDots - 1) / mostDots
}
