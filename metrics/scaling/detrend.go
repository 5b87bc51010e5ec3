package scaling

import (
	"cmp"
	"math"
	"slices"
)

const (
	// window is the number of runs before a run, and after it, from which the machine's speed at
	// the time of the run is estimated.
	window = 6
	// leastBlock is the smallest number of runs in a block from which the machine's speed at the
	// time of the block is estimated. With so many, the estimate is good even if some were
	// disturbed.
	leastBlock = 6
	// allPairs is the largest number of runs of a point for which the slopes between all pairs of
	// runs are computed.
	allPairs = 200
)

// changing reports whether one of the drifts is a change over time, and not only a dependence on
// nodes.
func changing(found []Drift) bool {
	return slices.ContainsFunc(found, func(f Drift) bool { return f.Link != DriftNode })
}

// detrend returns the values of all points of a curve without the machine's drift over time,
// which it estimates by comparing runs of the same point only.
//
// First it removes the median slope of the logarithms (Theil, Indagationes Mathematicae 12, 1950;
// Sen, J. Am. Stat. Assoc. 63, 1968). From the logarithms relative to each point's median it then
// removes the median of the run's block, if blocks are large, or else a running median. It
// returns the points unchanged if a start time is unknown or a value has no logarithm.
// TestTruthOfRatios justifies this method.
func detrend(points [][]made) [][]made {
	type at struct {
		point, run int
		began      float64
		rest       float64 // logarithm without the slope; +Inf for a missed target
	}
	var all []at
	for i, runs := range points {
		for k, m := range runs {
			if m.BeganUnix == 0 || m.value <= 0 {
				return points
			}
			all = append(all, at{i, k, m.BeganUnix, math.Log(m.value)})
		}
	}
	slices.SortFunc(all, func(a, b at) int {
		return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(points[a.point][a.run].Run, points[b.point][b.run].Run))
	})
	if len(all) == 0 {
		return points
	}
	slope, first := slopeOf(points), all[0].began
	logs := make([][]float64, len(points))
	for i := range all {
		a := &all[i]
		a.rest -= slope * (a.began - first)
		logs[a.point] = append(logs[a.point], a.rest)
	}
	medians := make([]float64, len(points))
	for i, xs := range logs {
		if len(xs) > 0 {
			medians[i] = Middle(xs)
		}
	}
	rests := make([]float64, len(all)) // relative to the point's median; NaN if half of its runs miss the target
	for i, a := range all {
		rests[i] = a.rest - medians[a.point]
	}
	sorted := make([]made, len(all))
	for i, a := range all {
		sorted[i] = points[a.point][a.run]
	}
	in := blocks(sorted)
	// Subtract the mean of what is removed, so that the curve is not shifted as a whole.
	out := make([]float64, len(all))
	mean := 0.0
	near := make([]float64, 0, 2*window+1)
	for i := range all {
		from := max(0, min(i-window, len(all)-1-2*window))
		to := min(len(all), from+2*window+1)
		if b := in[i]; b.to > 0 {
			from, to = b.from, b.to
		}
		near = slices.DeleteFunc(append(near[:0], rests[from:to]...), func(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) })
		out[i] = slope * (all[i].began - first)
		if len(near) > 0 {
			out[i] += Middle(near)
		}
		mean += out[i] / float64(len(all))
	}
	list := make([][]made, len(points))
	for i := range points {
		list[i] = slices.Clone(points[i])
	}
	for i, a := range all {
		list[a.point][a.run].value *= math.Exp(mean - out[i])
	}
	return list
}

// slopeOf returns the median slope of the logarithms over time, computed from pairs of runs of
// the same point. For a point with many runs, it pairs only the first half with the second.
func slopeOf(points [][]made) float64 {
	var slopes []float64
	between := func(a, b made) {
		if by := b.BeganUnix - a.BeganUnix; by != 0 && !math.IsInf(a.value, 1) && !math.IsInf(b.value, 1) {
			slopes = append(slopes, (math.Log(b.value)-math.Log(a.value))/by)
		}
	}
	for _, runs := range points {
		if n := len(runs); n > allPairs {
			runs = slices.SortedStableFunc(slices.Values(runs), func(a, b made) int { return cmp.Compare(a.BeganUnix, b.BeganUnix) })
			for i := range n / 2 {
				between(runs[i], runs[i+(n+1)/2])
			}
			continue
		}
		for i := range runs {
			for k := range i {
				between(runs[k], runs[i])
			}
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	return Middle(slopes)
}

// span is a range of runs; to is exclusive; the zero value is empty.
type span struct{ from, to int }

// blocks returns for each run the range of its block; runs must be sorted by start time. A block
// has one run of each of at least leastBlock points, without other runs in between. A run that
// was retried later belongs to no block. If that excludes more than a quarter of the blocks, the
// function returns none.
func blocks(runs []made) []span {
	of := map[block]*span{}
	count := map[block]int{}
	for i, m := range runs {
		k := m.block()
		if of[k] == nil {
			of[k] = &span{i, i}
		}
		of[k].to = i + 1
		count[k]++
	}
	in := make([]span, len(runs))
	whole := 0
	for k, s := range of {
		if s.to-s.from != count[k] {
			continue
		}
		if whole++; count[k] >= leastBlock {
			for i := s.from; i < s.to; i++ {
				in[i] = *s
			}
		}
	}
	if 4*whole < 3*len(of) {
		return make([]span, len(runs))
	}
	return in
}
