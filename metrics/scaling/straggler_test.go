package scaling

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

func TestStraggler(t *testing.T) {
	obs := runs(4, 10, 10, 10)
	obs[0].Slowest = []int{1, 1, 90, 8}
	obs[1].Slowest = []int{10, 0, 85, 5}
	obs[2].Slowest = []int{50, 50} // another number of ranks than planned
	for i := range obs {
		obs[i].Values[measure.Skew] = 0.1
	}
	point := func() Point {
		return analyse(t, obs, Options{})[0].Points[0]
	}
	warned := func(p Point) bool {
		return slices.ContainsFunc(p.Warnings, func(w string) bool {
			return strings.Contains(w, "rank 2 is the slowest in 88 % of the steps, where chance gives 25 %")
		})
	}
	p := point()
	if s := p.Straggler; s == nil || s.Rank != 2 || s.Steps != 200 || s.Share != 175.0/200 || !warned(p) {
		t.Errorf("%+v, warnings %q", s, p.Warnings)
	}
	for i := range obs {
		obs[i].Values[measure.Skew] = 0.01 // and the skew is negligible
	}
	if p := point(); p.Straggler == nil || warned(p) {
		t.Errorf("%+v, warnings %q", p.Straggler, p.Warnings)
	}
	obs[0].Slowest, obs[1].Slowest = []int{30, 20, 30, 20}, []int{20, 30, 20, 30}
	if p := point(); p.Straggler == nil || p.Straggler.Share != 0.25 || len(p.Warnings) != 1 { // too few runs for an interval
		t.Errorf("%+v, warnings %q", p.Straggler, p.Warnings)
	}
	obs[0].Slowest, obs[1].Slowest = nil, nil
	if p := point(); p.Straggler != nil {
		t.Errorf("%+v without a record", p.Straggler)
	}
}

// The warning names the node to check. A rank that is slow on several nodes has another cause.
func TestStragglerHost(t *testing.T) {
	for _, tt := range []struct {
		hosts [2][]string // hosts of the ranks in two runs
		want  string
	}{
		{[2][]string{{"n1", "n1", "n07", "n07"}, {"n1", "n1", "n07", "n07"}}, "rank 2 on n07 is the slowest in 88 % of the steps, where chance gives 25 %: look at its node and device"},
		{[2][]string{{"n1", "n1", "n2", "n2"}, {"n2", "n2", "n1", "n1"}}, "rank 2 on n1, n2 is the slowest in 88 % of the steps, where chance gives 25 %: it ran on several nodes, so look at what this rank alone does"},
		{[2][]string{nil, {"n1", "n1", "n2", "n2"}}, "rank 2 on n2 is the slowest"},
		{[2][]string{nil, nil}, "rank 2 is the slowest in 88 % of the steps, where chance gives 25 %: look at its node"},
	} {
		obs := runs(4, 10, 10)
		obs[0].Slowest, obs[1].Slowest = []int{1, 1, 90, 8}, []int{10, 0, 85, 5}
		for i := range obs {
			obs[i].Values[measure.Skew] = 0.1
			obs[i].RankHosts = tt.hosts[i]
		}
		p := analyse(t, obs, Options{})[0].Points[0]
		if !slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.HasPrefix(w, tt.want) }) {
			t.Errorf("%v: %q, want %q", tt.hosts, p.Warnings, tt.want)
		}
	}
}

// Skew and end-to-end throughput are medians of the measured values. Karp and Flatt's fraction has
// an interval from the speedup's. At twice the base's workers and a speedup of 1.6, it is (1/1.6 −
// 1/2)/(1/2) = 0.25. The runs scatter by 1 %, so that the ends of the speedup are 1.6·exp(±h) with
// h = hypot(ln(1/0.99), ln 1.01) = 0.0141426: 1.57753 and 1.62279.
func TestPointFigures(t *testing.T) {
	obs := join(runs(1, 100, 101, 99, 99, 101, 100), runs(2, 160, 161.6, 158.4, 158.4, 161.6, 160))
	for i := range obs {
		obs[i].Values[measure.EndToEnd] = float64(50 + i)
		if i != 1 {
			obs[i].Values[measure.Skew] = float64(i) / 10
		}
	}
	c := analyse(t, obs, Options{})[0]
	one, two := c.Points[0], c.Points[1]
	if m := one.Of(measure.EndToEnd).Median; m == nil || m.Value != 52.5 || m.Runs != 6 || m.Interval == nil {
		t.Errorf("end to end %+v", m)
	}
	if m := one.Of(measure.Skew).Median; m == nil || m.Value != 0.3 { // of 0, 0.2, 0.3, 0.4 and 0.5
		t.Errorf("skew %v", m)
	}
	if e, in := two.Of(measure.Throughput).KarpFlatt(); in == nil || *e < in.Low || *e > in.High || math.Abs(in.Low-0.232446) > 1e-5 || math.Abs(in.High-0.267804) > 1e-5 || math.Abs(*e-0.25) > 1e-12 {
		t.Errorf("Karp–Flatt %v, %+v", e, in)
	}
	if e, in := one.Of(measure.Throughput).KarpFlatt(); e != nil || in != nil {
		t.Error("Karp–Flatt at the base")
	}
}
