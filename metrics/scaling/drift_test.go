package scaling

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// madeRuns returns runs of three points in blocks; the function what changes their values.
func madeRuns(r *rand.Rand, blocks int, spread float64, what func(i int, run *TimedRun)) []TimedRun {
	var list []TimedRun
	for range blocks {
		for _, point := range r.Perm(3) {
			i := len(list)
			run := TimedRun{Point: point, Began: 1.79e9 + 600*float64(i), Value: 100 * float64(point+1) * math.Exp(spread*r.NormFloat64())}
			what(i, &run)
			list = append(list, run)
		}
	}
	return list
}

func kinds(list []Drift) []DriftLink {
	var k []DriftLink
	for _, f := range list {
		k = append(k, f.Link)
	}
	return k
}

// Each kind of drift is found in data that have it, ten times as strong as the noise, with the
// right amount. The order of the input does not matter.
func TestFindings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	shuffled := func(list []TimedRun) []TimedRun {
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list
	}
	// 30 runs that fall by 10 % from the first to the last: the halves differ by 5 %.
	found := FindDrifts(shuffled(madeRuns(r, 10, 0.01, func(i int, run *TimedRun) { run.Value *= 1.05 - 0.1*float64(i)/29 })), 0.05)
	if i := slices.IndexFunc(found, func(f Drift) bool { return f.Link == DriftTrend }); i < 0 || math.Abs(found[i].Change+0.05) > 0.015 || found[i].P > 0.0125 {
		t.Errorf("a ramp: %+v", found)
	}
	// The same in plan order, ten runs of a point and then ten of the next. The values change by a
	// factor of e^0.3 from the first to the last of 30, and by e^0.155 over 15 runs.
	planned := madeRuns(r, 10, 0.001, func(int, *TimedRun) {})
	slices.SortStableFunc(planned, func(a, b TimedRun) int { return a.Point - b.Point })
	for i := range planned {
		planned[i].Began = 1.79e9 + 600*float64(i)
		planned[i].Value *= math.Exp(0.3 * float64(i) / 29)
	}
	found = FindDrifts(planned, 0.05)
	if i := slices.IndexFunc(found, func(f Drift) bool { return f.Link == DriftTrend }); i < 0 || math.Abs(found[i].Change-0.168) > 0.005 {
		t.Errorf("a ramp in plan order: %+v", found)
	}
	// Values that alternate every ten runs have no trend.
	found = FindDrifts(shuffled(madeRuns(r, 20, 0.01, func(i int, run *TimedRun) { run.Value *= 1 + 0.05*math.Sin(2*math.Pi*float64(i)/20) })), 0.05)
	if !slices.Contains(kinds(found), DriftNeighbours) || slices.Contains(kinds(found), DriftNode) {
		t.Errorf("a wave: %+v", found)
	}
	// Every second day is slow.
	found = FindDrifts(shuffled(madeRuns(r, 20, 0.01, func(i int, run *TimedRun) {
		run.Began = 86400*20000 + 86400*float64(i/6) + float64(i)
		run.Value *= 1 + 0.1*float64(i/6%2)
	})), 0.05)
	if !slices.Contains(kinds(found), DriftDay) {
		t.Errorf("days: %+v", found)
	}
	// A fifth of the runs uses a slow node, in random order.
	found = FindDrifts(shuffled(madeRuns(r, 10, 0.01, func(i int, run *TimedRun) {
		run.Nodes = []string{[]string{"a", "b", "c", "d", "e"}[i*7%5]}
		if run.Nodes[0] == "d" {
			run.Value *= 0.9
		}
	})), 0.05)
	if i := slices.IndexFunc(found, func(f Drift) bool { return f.Link == DriftNode }); i < 0 || found[i].Node != "d" || math.Abs(found[i].Change+0.1) > 0.02 {
		t.Errorf("a slow node: %+v", found)
	}
}

// In studies without drift, the share of false findings is at most the level, even if points
// scatter unequally, values have ties, and one node is in every run.
func TestFalseFindings(t *testing.T) {
	const studies, level = 1000, 0.05
	r := rand.New(rand.NewPCG(3, 4))
	wrong := 0
	for range studies {
		runs := madeRuns(r, 6, 0.02, func(i int, run *TimedRun) {
			run.Value = math.Round(run.Value * math.Exp(0.1*float64(run.Point)*r.NormFloat64()))
			run.Began = 1.79e9 + 7200*float64(i)
			run.Nodes = []string{"login", []string{"a", "b", "c", "d"}[r.IntN(4)]}
		})
		if FindDrifts(runs, level) != nil {
			wrong++
		}
	}
	t.Logf("%d of %d", wrong, studies)
	if limit := level + 4*math.Sqrt(level*(1-level)/studies); float64(wrong) > limit*studies || wrong == 0 {
		t.Errorf("findings in %d of %d studies without any, want %g of them", wrong, studies, level)
	}
}

// Runs that cannot show any dependence are not tested.
func TestNothingToTest(t *testing.T) {
	for name, runs := range map[string][]TimedRun{
		"no run":        nil,
		"two a point":   {{0, 1, 1, nil}, {0, 2, 2, nil}, {1, 1, 3, nil}, {1, 2, 4, nil}},
		"at once":       {{0, 1, 5, nil}, {0, 2, 5, nil}, {0, 3, 5, nil}, {0, 4, 5, nil}, {0, 5, 5, nil}},
		"all are alike": {{0, 1, 1, nil}, {0, 1, 2, nil}, {0, 1, 3, nil}, {0, 1, 4, nil}, {0, 1, 5, nil}, {0, 1, 6, nil}},
	} {
		if found := FindDrifts(runs, 0.05); found != nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
