package scaling

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/measure"
)

// at returns runs of one point that started at the given times, in order of repeat, with values 1,
// 2, 3 …
func at(times ...float64) []made {
	var list []made
	for i, t := range times {
		list = append(list, made{float64(i + 1), &Observation{Study: "s", Repeat: i + 1, BeganUnix: t}})
	}
	return list
}

// The probability that all runs of one point are before all of the other is 2/C(12,6) = 0.2 % for
// six runs each, 2/252 = 0.8 % for five, and 2.9 % for four. That is low enough for four, since
// no interval exists anyway.
func TestOrder(t *testing.T) {
	long := func(list []made, seconds float64) []made {
		list = slices.Clone(list)
		for i := range list {
			o := *list[i].Observation
			o.JobSeconds = &seconds
			list[i].Observation = &o
		}
		return list
	}
	first, then := at(1, 2, 3, 4, 5, 6), at(11, 12, 13, 14, 15, 16)
	for _, tt := range []struct {
		name string
		a, b []made
		want bool
	}{
		{"one after the other", first, then, true},
		{"the other way round", then, first, true},
		{"five of each", first[:5], then[:5], true},
		{"four of each", first[:4], then[:4], true},
		{"three of each", first[:3], then[:3], false},
		{"six and one", first, then[:1], false},
		{"in turn", at(1, 3, 5, 7, 9, 11), at(2, 4, 6, 8, 10, 12), false},
		{"handed over one after the other, and run at once", long(first, 600), long(then, 600), false},
		{"short runs", long(first, 1), long(then, 1), true},
		{"not known", first, append(slices.Clone(then[:5]), made{1, &Observation{}}), false},
	} {
		if got := order(tt.a, tt.b) == MadeApart; got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	if got := order(first, at(0, 0)); got != OrderUnknown {
		t.Errorf("without times: %s", got)
	}
}

// Runs 1 and 2 share node a, 2 and 3 node b; the nodes of 5 and 6 are unknown.
func TestGroups(t *testing.T) {
	list := at(1, 2, 3, 4, 5, 6)
	for i, hosts := range [][]string{{"a"}, {"a", "b"}, {"b"}, {"c"}, nil, nil} {
		list[i].Hosts = hosts
	}
	if d := cmp.Diff([]float64{2, 4, 5, 6}, groups(list)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The machine gets slower by the same factor from run to run, down to a tenth. With interleaved
// runs, the speedup is still 2, with an interval of zero width. In plan order, the ratio is a fifth
// of that and has no interval. There is no interval either if most of the base's runs are the
// earlier ones.
func TestSpeedupOnADriftingMachine(t *testing.T) {
	machine := func(order func(workers, repeat int) int) []Observation {
		obs := join(runs(1, 100, 100, 100, 100, 100, 100, 100, 100), runs(2, 200, 200, 200, 200, 200, 200, 200, 200))
		for i := range obs {
			o := &obs[i]
			step := order(o.Workers, o.Repeat)
			o.BeganUnix = 1.79e9 + 60*float64(step)
			o.Values[measure.Throughput] *= math.Pow(0.1, float64(step)/15)
		}
		return obs
	}
	c := analyse(t, machine(func(workers, repeat int) int {
		return 2*(repeat-1) + (workers+repeat)%2 // the first one alternates
	}), Options{})[0]
	g := c.Points[1].Of(measure.Throughput).Gain()
	if g == nil || !g.Adjusted || g.Runs != 8 || g.Interval == nil || math.Abs(g.Value/2-1) > 1e-9 || math.Abs(g.Interval.Low/2-1) > 1e-9 || math.Abs(g.Interval.High/2-1) > 1e-9 {
		t.Errorf("in turns %+v", g)
	}
	if e := c.Points[1].Of(measure.Throughput).Efficiency(); e == nil || !e.Adjusted || math.Abs(e.Value*2/g.Value-1) > 1e-12 {
		t.Errorf("efficiency %+v of a speedup %+v", e, g)
	}
	if !slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.HasPrefix(w, "drift: throughput fell by ") }) {
		t.Errorf("warnings %q", c.Warnings)
	}
	for why, order := range map[string]func(workers, repeat int) int{
		madeApart: func(workers, repeat int) int { return 8*(workers-1) + repeat - 1 },
		// 1 1 1 1 1 2 2 1 1 2 2 1 2 2 2 2: the base's eight runs are at 0-4, 7, 8 and 11. Their
		// rank sum is 44 (possible: 36 to 100), two-sided p = 1.0 %. 1 1 1 1 2 2 1 2 1 1 2 2 1 2 2
		// 2: they are at 0-3, 6, 8, 9 and 12, with a rank sum of 49, p = 5 %.
		notInTurns: func(workers, repeat int) int {
			return [][]int{{0, 1, 2, 3, 6, 8, 9, 12}, {4, 5, 7, 10, 11, 13, 14, 15}}[workers-1][repeat-1]
		},
	} {
		c = analyse(t, machine(order), Options{})[0]
		if g := c.Points[1].Of(measure.Throughput).Gain(); g == nil || g.Interval != nil || g.Why != why {
			t.Errorf("%s: %+v", why, g)
		}
	}
}

// One of six nodes is slow, and each node has two of a point's 12 runs. With the node as the unit
// there are 6 groups, and the slow node is named.
func TestRunsThatShareANode(t *testing.T) {
	var obs []Observation
	for i := range 12 {
		node := i % 6
		x := 100 + float64(i)/10
		if node == 3 {
			x = 80
		}
		o := runs(1, x)[0]
		o.Run, o.Repeat, o.BeganUnix, o.Hosts = fmt.Sprint("s/w1-r", i, "-a1"), i+1, 1.79e9+float64(i), []string{fmt.Sprint("n", node)}
		p := runs(2, 2*x)[0]
		p.Run, p.Repeat, p.BeganUnix, p.Hosts = fmt.Sprint("s/w2-r", i, "-a1"), i+1, 1.79e9+float64(i)+0.5, []string{fmt.Sprint("n", node)}
		obs = append(obs, o, p)
	}
	c := analyse(t, obs, Options{})[0]
	if !slices.ContainsFunc(c.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "runs on n3 are 20.") && strings.Contains(w, "slower")
	}) {
		t.Errorf("warnings %q", c.Warnings)
	}
	m := c.Points[0].Of(measure.Throughput).Median
	if in := m.Interval; in == nil || in.Low != 80 || in.High != 100.8 || in.Level != 1-2.0/64 { // from the groups: 80 to (100.5+101.1)/2
		t.Errorf("%+v %+v", m, in)
	}
	// With only two nodes, the interval is missing.
	for i := range obs {
		if obs[i].Hosts[0] != "n3" {
			obs[i].Hosts = []string{"n0"}
		}
	}
	m = analyse(t, obs, Options{})[0].Points[0].Of(measure.Throughput).Median
	if m.Interval != nil || m.Why != "runs that share a node count as one, so 12 runs count as 2: too few runs for an interval (2 of 6 needed)" {
		t.Errorf("%+v", m)
	}
}

// If nodes matter in one series, other series are unaffected: one framework has runs on six nodes,
// one of them slow, and another has runs without known nodes.
func TestNodesOfOneSeries(t *testing.T) {
	var obs []Observation
	for _, framework := range []string{"native", "pytorch-ddp"} {
		for i := range 12 {
			x := 100 + float64(i)/10
			if i%6 == 3 {
				x = 80
			}
			for workers := 1; workers <= 2; workers++ {
				o := runs(workers, x*float64(workers))[0]
				o.Run, o.Framework, o.Repeat, o.BeganUnix = fmt.Sprint(framework, workers, "-", i), framework, i+1, 1.79e9+float64(i)+0.5*float64(workers-1)
				o.Values = map[string]float64{measure.Throughput: x * float64(workers), measure.Accuracy(0.9).Time().Name: 1 / x / float64(workers)}
				if framework == "native" {
					o.Hosts = []string{fmt.Sprint("n", i%6)}
				}
				obs = append(obs, o)
			}
		}
	}
	for i, c := range analyse(t, obs, Options{}) {
		on := i == 0
		if c.ByNode != on {
			t.Errorf("%s goes by node: %v", c.Series, c.ByNode)
		}
		for _, name := range []string{measure.Throughput, measure.Accuracy(0.9).Time().Name} {
			if g := c.Points[1].Of(name).Gain(); g == nil || (g.Interval != nil) == on && g.Interval.Low == 2 {
				t.Errorf("%s, %s: %+v", c.Series, name, g)
			}
		}
	}
}

// Runs that only have times are tested for a drift of these. A time that falls by a tenth from run
// to run is a drift, and the warning names the time.
func TestDriftOfTimes(t *testing.T) {
	for _, name := range []string{measure.TrainSeconds, measure.Accuracy(0.9).Time().Name} {
		var list []Observation
		for repeat := range 8 {
			for k, workers := range []int{1, 2} {
				at := 2*repeat + k
				list = append(list, Observation{
					Run: fmt.Sprintf("s/w%d-r%d", workers, repeat+1), Study: "s", Point: fmt.Sprint("w", workers), Repeat: repeat + 1, Framework: "native",
					Workers: workers, Nodes: 1, BeganUnix: 1e9 + 1000*float64(at), Parameters: map[string]any{},
					Values: map[string]float64{name: 100 * math.Pow(0.9, float64(at)) / float64(workers)},
				})
			}
		}
		curves, err := Analyse(list, Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := curves[0]
		if len(c.DriftWarnings) == 0 || !strings.Contains(c.DriftWarnings[0], " fell by ") || strings.Contains(c.DriftWarnings[0], "throughput") {
			t.Errorf("%s: %q", name, c.DriftWarnings)
		}
		// Without the drift, the ratio is 100/50.
		if g := c.Points[1].Of(name).Gain(); g == nil || !g.Adjusted || math.Abs(g.Value-2) > 0.02 {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// MeasuredApart is true for neighbouring points whose runs were made one point after the other, and false if they alternated.
func TestMeasuredApart(t *testing.T) {
	for _, inTurns := range []bool{false, true} {
		var obs []Observation
		for i, n := range []int{1, 2} {
			for k := range 6 {
				began := 1e9 + float64(1000*(6*i+k))
				if inTurns {
					began = 1e9 + float64(1000*(2*k+i))
				}
				obs = append(obs, Observation{Run: fmt.Sprintf("w%d-r%d", n, k), Study: "s", Point: fmt.Sprint(n), Repeat: k + 1, Framework: "native", Workers: n, Nodes: 1, BeganUnix: began,
					Parameters: map[string]any{"workers": int64(n)}, Values: map[string]float64{"throughput": float64(100*n) + []float64{3, 1, 4, 0, 5, 2}[k]}})
			}
		}
		curves, err := Analyse(obs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := curves[0].MeasuredApart(measure.Throughput); got == inTurns {
			t.Errorf("in turns %v: apart %v", inTurns, got)
		}
		if curves[0].MeasuredApart(measure.StepP50) {
			t.Error("a measure without runs is apart")
		}
	}
}
