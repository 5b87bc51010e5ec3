package advice

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

func TestAtMost(t *testing.T) {
	estimate := func(value, low, high float64) *Estimate { return &Estimate{Value: value, Low: &low, High: &high} }
	for _, test := range []struct {
		of   *Estimate
		x    float64
		want float64
	}{
		// The ends of a 95 % interval are its 2.5 % and 97.5 % quantiles, separately for each side.
		{estimate(100, 80, 110), 80, 0.025},
		{estimate(100, 80, 110), 100, 0.5},
		{estimate(100, 80, 110), 110, 0.975},
		{estimate(100, 80, 110), 0, 0},
		{estimate(100, 80, 110), 1e300, 1},
		// If an end equals the value, which happens by chance, the other side's error is used.
		{estimate(100, 100, 125), 80, 0.025},
		// A value without error.
		{estimate(1, 1, 1), 1, 1},
		{estimate(1, 1, 1), 0.999, 0},
		// Zero, or an interval that starts at zero.
		{estimate(0, 0, 0), 5, 1},
		{estimate(100, -20, 110), 50, 0.5},
		{estimate(100, 90, math.Inf(1)), 200, 0.5},
	} {
		if p, ok := test.of.atMost(test.x, 0.95); !ok || math.Abs(p-test.want) > 1e-9 {
			t.Errorf("%v at most %g: %g, %v, want %g", test.of.Value, test.x, p, ok, test.want)
		}
	}
	if _, ok := (&Estimate{Value: 1}).atMost(2, 0.95); ok {
		t.Error("a probability without an interval")
	}
}

func TestLikely(t *testing.T) {
	for p, want := range map[float64]string{1: "over 99 %", 0.996: "over 99 %", 0.994: "99 %", 0.5: "50 %", 0.004: "under 1 %", 0: "under 1 %"} {
		if got := Likely(p); got != want {
			t.Errorf("%g: %q, want %q", p, got, want)
		}
	}
}

// Five measured counts, on one node. Efficiencies of 8 and 16 workers are 80 % and
// 79.9 %, with runs that scatter by 2 %. So it is undecided which count is the largest
// with 80 %, and a wrong answer would be twice or half the right one.
func TestUndecided(t *testing.T) {
	level := func(n float64) float64 {
		switch {
		case n == 1:
			return 1000
		case n == 16:
			return 799 * n
		}
		return 800 * n
	}
	change := func(o *scaling.Observation) {
		o.Nodes = 1
		o.Values["throughput"] *= 1 + 0.008*(float64(o.Repeat)-3.5)
	}
	s := series{counts: octaves, runs: 6, x: level, change: change}
	a := s.advise(t, Options{MinEfficiency: 0.8})
	if a.Workers != nil {
		t.Fatalf("%d, %q", *a.Workers, a.Reason)
	}
	// All counts reach 60 % with near certainty.
	if a := s.advise(t, Options{MinEfficiency: 0.6}); a.Workers == nil || *a.Workers != 16 || !strings.Contains(a.Reason[0], "or more (over 99 % likely): ") {
		t.Errorf("%v, %q", a.Workers, a.Reason)
	}
	want := "The runs cannot tell how many workers can run at an efficiency of 80 % or more: "
	if !strings.HasPrefix(a.Reason[0], want) || !strings.Contains(a.Reason[0], "likely to, 16 workers 4") {
		t.Errorf("%q, want %q", a.Reason[0], want)
	}
}

// Runs that are equal to the last digit have an interval without width. It says nothing, so the
// answer has no probability and is provisional, however large the gain.
func TestEqualRuns(t *testing.T) {
	equal := func(counts ...int) func(o *scaling.Observation) {
		return func(o *scaling.Observation) {
			for _, n := range counts {
				if o.Workers == n {
					o.Values["throughput"] = 1000 * float64(n)
				}
			}
		}
	}
	for _, test := range []struct {
		name    string
		counts  []int
		equal   []int
		options Options
		workers int
		doubt   string
	}{
		{"all of two counts", []int{1, 2}, []int{1, 2}, Options{}, 2, "all runs of 1 and 2 workers have exactly the same throughput"},
		{"the answer", []int{1, 2, 4, 8}, []int{8}, Options{}, 8, "all runs of 8 workers have exactly the same throughput"},
		{"a smaller count", []int{1, 2, 4, 8}, []int{1}, Options{}, 8, "all runs of 1 worker have exactly the same throughput"},
		{"five counts and a limit", octaves, octaves, Options{MinEfficiency: 0.9}, 16, "all runs of 1, 2, 4, 8 and 16 workers have exactly the same throughput"},
		{"the base and a limit", octaves, []int{1}, Options{MinEfficiency: 0.9}, 16, "all runs of 1 worker have exactly the same throughput"},
		// 1e6 samples take 125 s on 8 workers.
		{"a deadline", []int{1, 2, 4, 8}, []int{8}, Options{Samples: 1e6, Deadline: 150}, 8, "all runs of 8 workers have exactly the same throughput"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := series{counts: test.counts, runs: 6, x: linear, change: equal(test.equal...)}.advise(t, test.options)
			if a.Workers == nil || *a.Workers != test.workers {
				t.Fatalf("%v, %q", a.Workers, a.Reason)
			}
			said := strings.HasPrefix(a.Reason[0], "Provisional: ") && strings.Contains(a.Reason[0], test.doubt+", so there is no interval")
			if !a.Provisional || !said || strings.Contains(a.Reason[0], "over 99 %") {
				t.Errorf("provisional %v, %q", a.Provisional, a.Reason[0])
			}
			if c := candidate(t, a, test.workers); c.Keeps != nil {
				t.Errorf("said to be %g likely", *c.Keeps)
			}
			if a.Next == nil || a.Next.Workers != test.workers {
				t.Errorf("next %+v", a.Next)
			}
		})
	}
	// With scatter the same answers are sure.
	if a := (series{counts: octaves, runs: 6, x: linear}).advise(t, Options{MinEfficiency: 0.9, Most: 16}); a.Provisional || !strings.Contains(a.Reason[0], "(over 99 % likely)") {
		t.Errorf("%q", a.Reason[0])
	}
}

// A provisional answer always says what to measure.
func TestProvisionalHasNext(t *testing.T) {
	warned := Options{Warnings: []string{"3 of 12 runs could not be read: a1/point.json is damaged"}}
	for _, test := range []struct {
		name    string
		counts  []int
		most    int
		workers int
		beside  []int
		repair  bool
	}{
		{"one count on a full cluster", []int{4}, 4, 2, []int{4}, false},
		{"one worker on a cluster of one", []int{1}, 1, 1, []int{}, true},
		{"four counts on a full cluster", []int{1, 2, 4, 8}, 8, 8, []int{4}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := warned
			o.Most = test.most
			a := series{counts: test.counts, runs: 6, x: linear}.advise(t, o)
			if !a.Provisional || a.Next == nil {
				t.Fatalf("provisional %v, next %+v", a.Provisional, a.Next)
			}
			if n := a.Next; n.Workers != test.workers || !slices.Equal(n.Neighbours, test.beside) || n.AfterRepair != test.repair {
				t.Errorf("%+v", n)
			}
		})
	}
}
