package scaling

import (
	"cmp"
	"math"
	"slices"
)

const (
	// window is the number of runs before and after a run from which the speed of the
	// machine at its time is estimated.
	window = 6
	// leastBlock is the number of runs of a block from which the speed of the machine at
	// its time is estimated, even if some of them were disturbed.
	leastBlock = 6
	// allPairs is the most runs of a point of which every two give a slope.
	allPairs = 200
)

// changing reports whether the machine was found to change over time.
func changing(found []Drift) bool {
	return slices.ContainsFunc(found, func(f Drift) bool { return f.Link != DriftNode })
}

// detrend takes out of the values of all points of a curve what the machine did over
// time. Only what runs of one point say of each other is used: first the median slope
// of the logarithms (Theil, Indagationes Mathematicae 12, 1950; Sen, J. Am. Stat.
// Assoc. 63, 1968), then what remains over each point's median, of which the median over a large block, or
// else the running median, is the machine's.
// The points are returned as they are if a start time is unknown, or a value has no
// logarithm. TestTruthOfRatios holds what this was chosen by.
func detrend(points [][]made) [][]made {
	type at struct {
		point, run int
		began      float64
		rest       float64 // logarithm, over the median of its point; +Inf for a miss
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
	for i := range all {
		all[i].rest -= medians[all[i].point] // NaN where half of the point miss: left out below
	}
	sorted := make([]made, len(all))
	for i, a := range all {
		sorted[i] = points[a.point][a.run]
	}
	block := blocks(sorted)
	// What is taken out is 0 in the mean, so that it does not shift a curve.
	out := make([]float64, len(all))
	mean := 0.0
	near := make([]float64, 0, 2*window+1)
	for i := range all {
		from := max(0, min(i-window, len(all)-1-2*window))
		to := min(len(all), from+2*window+1)
		if b := block[i]; b.to > 0 {
			from, to = b.from, b.to
		}
		near = near[:0]
		for _, a := range all[from:to] {
			if !math.IsInf(a.rest, 0) && !math.IsNaN(a.rest) {
				near = append(near, a.rest)
			}
		}
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

// slopeOf is the median slope of the logarithms over time between runs of one point; of
// a point with many runs those of its first half to those of its second alone.
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

// span is a stretch of runs, of which to is the first that is not in it; zero: none.
type span struct{ from, to int }

// blocks are the blocks that runs, sorted by when they began, are in: a run of each point,
// then another of each. A block has a run of leastBlock points or more and no other run
// within it. A run that was tried again later is in none; where that leaves out more than
// a quarter of the blocks, there are none.
func blocks(runs []made) []span {
	type key struct {
		study  string
		repeat int
	}
	of := map[key]*span{}
	count := map[key]int{}
	for i, m := range runs {
		k := key{m.Study, m.Repeat}
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
