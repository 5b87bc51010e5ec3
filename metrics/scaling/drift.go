package scaling

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// This file tests whether results depend on when, or on which nodes, the runs were made.
//
//
// All tests are permutation tests (Good, Permutation, Parametric, and Bootstrap Tests of
// Hypotheses, 2005): a statistic is compared with its values after the runs of each point were
// reordered at random. This assumes neither a distribution of the runs' scatter nor an equal
// scatter at all points. The value of a run is replaced by its normal score among the runs of its
// point, so that a single disturbed run does not look like a drift.

// A TimedRun is the value of a run with its start time.
type TimedRun struct {
	Point int      // runs with equal Point are repeats
	Value float64  // positive
	Began float64  // Unix seconds
	Nodes []string // nodes of the run; nil if unknown
}

// A DriftLink names a cause of differences between a point's runs: their order, the day, or the node.
type DriftLink string

// The values of DriftLink.
const (
	DriftTrend      DriftLink = "trend"      // values rise or fall over the study
	DriftNeighbours DriftLink = "neighbours" // consecutive runs are similar
	DriftDay        DriftLink = "day"        // runs of one day are similar
	DriftNode       DriftLink = "node"       // runs on one node are faster or slower than others
)

// A Drift is a dependence of the results on the time or the node of the runs.
type Drift struct {
	Link DriftLink
	Node string
	// Change is the relative difference between runs of the same point. For a trend, it compares
	// the second half of the runs with the first, according to the slope within points. For a
	// node, it compares runs on it with other runs. It is 0 for the other links.
	Change float64
	P      float64
	// Clear reports whether P is below 3/5 of the requested level.
	Clear bool
}

const (
	mostOrders  = 999
	leastOrders = 199     // enough to distinguish p = 0.05/4 from chance
	work        = 5000000 // number of runs × orders above which fewer random orders are used
	day         = 24 * 3600
	clearly     = 0.6
)

// FindDrifts returns the dependences that the runs show, the strongest first. For runs that
// depend on neither time nor node, it finds one in at most the share level of studies. It ignores
// points with fewer than three runs.
func FindDrifts(runs []TimedRun, level float64) []Drift {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b TimedRun) int { return cmp.Compare(a.Began, b.Began) })
	scores, relative, points := normalScores(runs)
	looks := looksAt(runs)
	if len(looks) == 0 || len(points) == 0 {
		return nil
	}
	level /= float64(len(looks))
	orders := min(mostOrders, max(leastOrders, work/len(runs)))
	observed, exceeded := make([]float64, len(looks)), make([]int, len(looks))
	for i, l := range looks {
		observed[i] = l.statistic(scores)
	}
	// Use a fixed seed, so that a study always has the same answer.
	rng := rand.New(rand.NewPCG(2026, uint64(len(runs))))
	most := int(level*float64(orders+1)) - 1 // largest significant number of exceedances
	for range orders {
		for _, at := range points {
			rng.Shuffle(len(at), func(i, j int) { scores[at[i]], scores[at[j]] = scores[at[j]], scores[at[i]] })
		}
		open := false
		for i, l := range looks {
			if exceeded[i] > most {
				continue
			}
			if l.statistic(scores) >= observed[i]-1e-9 {
				exceeded[i]++
			}
			open = open || exceeded[i] <= most
		}
		if !open {
			return nil
		}
	}
	scores, _, _ = normalScores(runs)
	var list []Drift
	for i, l := range looks {
		if exceeded[i] <= most {
			f := Drift{Link: l.kind, P: float64(exceeded[i]+1) / float64(orders+1)}
			f.Clear = f.P <= clearly*level
			l.describe(&f, scores, relative)
			list = append(list, f)
		}
	}
	slices.SortStableFunc(list, func(a, b Drift) int { return cmp.Compare(a.P, b.P) })
	return list
}

// normalScores returns each run's normal score among the runs of its point, its value relative to the
// point's median, and the runs of each point by index. The scores of a point add up to 0. Equal
// values have equal scores.
func normalScores(runs []TimedRun) (scores, relative []float64, points [][]int) {
	scores, relative = make([]float64, len(runs)), make([]float64, len(runs))
	of := map[int][]int{}
	for i, r := range runs {
		of[r.Point] = append(of[r.Point], i)
	}
	for _, point := range slices.Sorted(maps.Keys(of)) {
		at := of[point]
		n := len(at)
		sorted := slices.Clone(at)
		slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(runs[a].Value, runs[b].Value) })
		middle := (runs[sorted[(n-1)/2]].Value + runs[sorted[n/2]].Value) / 2
		for _, i := range at {
			relative[i] = runs[i].Value / middle
		}
		if n < 3 {
			continue
		}
		points = append(points, at)
		for from := 0; from < n; {
			to := from + 1
			for to < n && runs[sorted[to]].Value == runs[sorted[from]].Value {
				to++
			}
			rank := float64(from+1+to) / 2
			for _, i := range sorted[from:to] {
				scores[i] = distuv.UnitNormal.Quantile((rank - 0.5) / float64(n))
			}
			from = to
		}
	}
	return scores, relative, points
}

// look is a permutation test for one kind of dependence.
type look struct {
	kind      DriftLink
	statistic func(scores []float64) float64 // larger for a stronger dependence
	describe  func(f *Drift, scores, relative []float64)
}

func describeNothing(*Drift, []float64, []float64) {}

// looksAtDays returns the look that compares days; some is false if all runs began on one day.
func looksAtDays(runs []TimedRun) (l look, some bool) {
	days := make([]int, len(runs)) // numbered from 0
	for i := 1; i < len(runs); i++ {
		days[i] = days[i-1]
		if math.Floor(runs[i].Began/day) != math.Floor(runs[i-1].Began/day) {
			days[i]++
		}
	}
	last := days[len(runs)-1]
	sums, counts := make([]float64, last+1), make([]float64, last+1)
	for _, d := range days {
		counts[d]++
	}
	return look{DriftDay, func(scores []float64) float64 {
		clear(sums)
		for i, z := range scores {
			sums[days[i]] += z
		}
		total := 0.0
		for d, s := range sums {
			total += s * s / counts[d]
		}
		return total
	}, describeNothing}, last > 0
}

func looksAt(runs []TimedRun) []look {
	n := len(runs)
	var list []look
	if n > 1 && runs[0].Began < runs[n-1].Began {
		list = append(list, look{DriftTrend, func(scores []float64) float64 {
			sum := 0.0
			for i, z := range scores {
				sum += z * (float64(i) - float64(n-1)/2)
			}
			return math.Abs(sum)
		}, func(f *Drift, _, _ []float64) {
			f.Change = math.Exp(slope(runs)*float64(n)/2) - 1
		}}, look{DriftNeighbours, func(scores []float64) float64 {
			sum := 0.0
			for i := range n - 1 {
				sum += scores[i] * scores[i+1]
			}
			return sum
		}, describeNothing})
		if l, some := looksAtDays(runs); some {
			list = append(list, l)
		}
	}
	if l, some := looksAtNodes(runs); some {
		list = append(list, l)
	}
	return list
}

// looksAtNodes returns the test for a dependence on nodes. It considers nodes that at least two
// runs used and at least two did not; some is false if none exist.
func looksAtNodes(runs []TimedRun) (l look, some bool) {
	on := map[string][]int{}
	for i, r := range runs {
		for _, node := range r.Nodes {
			on[node] = append(on[node], i)
		}
	}
	var names []string
	for node, at := range on {
		if m := len(at); m >= 2 && len(runs)-m >= 2 {
			names = append(names, node)
		}
	}
	slices.Sort(names)
	most := func(scores []float64) (node string, size float64) {
		for _, name := range names {
			sum := 0.0
			for _, i := range on[name] {
				sum += scores[i]
			}
			m, n := float64(len(on[name])), float64(len(runs))
			if s := math.Abs(sum) / math.Sqrt(m*(1-m/n)); s > size {
				node, size = name, s
			}
		}
		return node, size
	}
	return look{DriftNode, func(scores []float64) float64 {
		_, size := most(scores)
		return size
	}, func(f *Drift, scores, relative []float64) {
		f.Node, _ = most(scores)
		var with, without []float64
		for i, x := range relative {
			if slices.Contains(on[f.Node], i) {
				with = append(with, x)
			} else {
				without = append(without, x)
			}
		}
		f.Change = Middle(with)/Middle(without) - 1
	}}, len(names) > 0
}

// pairs limits the number of pairs of runs from which slope is computed.
const pairs = 200000

// slope returns the change of the values' logarithm from one run to the next: the median over
// pairs of runs of the same point (Theil & Sen). Differences between points do not affect it,
// even if the points were measured one after the other.
func slope(runs []TimedRun) float64 {
	of := map[int][]int{}
	all := 0
	for i, r := range runs {
		all += len(of[r.Point])
		of[r.Point] = append(of[r.Point], i)
	}
	every := 1 + all/pairs
	var slopes []float64
	seen := 0
	for _, point := range slices.Sorted(maps.Keys(of)) { // sorted, so that the pairs are always the same
		at := of[point]
		for i := range at {
			for _, j := range at[:i] {
				if seen++; seen%every == 0 {
					slopes = append(slopes, math.Log(runs[at[i]].Value/runs[j].Value)/float64(at[i]-j))
				}
			}
		}
	}
	return Middle(slopes)
}
