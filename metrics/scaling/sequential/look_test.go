package sequential

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// studyOf returns the runs of a study in blocks; values are throughputs by count.
func studyOf(values map[int][]float64) (obs []scaling.Observation) {
	for at, n := range slices.Sorted(maps.Keys(values)) {
		for i, x := range values[n] {
			obs = append(obs, scaling.Observation{Run: fmt.Sprintf("s/w%d-r%d-a1", n, i+1), Study: "s", Point: fmt.Sprint(n), Repeat: i + 1, Framework: "native",
				Workers: n, Nodes: n, BeganUnix: 1.79e9 + 3600*float64(i) + 600*float64(at),
				Parameters: map[string]any{"workload.scaling": "strong", "global_batch": int64(64), "workers": int64(n)},
				Values:     map[string]float64{"throughput": x, "init_seconds": 0}})
		}
	}
	return obs
}

func question(t *testing.T, wish advice.Options) Question {
	t.Helper()
	d, err := NewDesign(6)
	if err != nil {
		t.Fatal(err)
	}
	return Question{Wish: wish, Design: d, Hours: func(n int) float64 { return float64(n) }}
}

func lookAt(t *testing.T, q Question, runs map[int][]float64) *Look {
	t.Helper()
	obs := studyOf(runs)
	curves, err := scaling.Analyse(obs, q.Design.Options())
	if err != nil {
		t.Fatal(err)
	}
	l, err := q.Look(curves[0], obs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLook(t *testing.T) {
	deadline := advice.Options{Samples: 1000, Deadline: 6}
	for _, test := range []struct {
		name    string
		q       Question
		runs    map[int][]float64
		decided bool
		answer  int // 0: none
		open    []int
		target  map[int]int
	}{
		{"a count lacks one", question(t, advice.Options{}), map[int][]float64{1: {100}, 2: {190, 191}}, false, 0, []int{1}, map[int]int{1: 2}},
		// Worth of 4 workers over 1.4 twice: 340/1.96 = 173, 1.73 times 1 worker, and 1.26 times 2.
		{"one is far behind after two runs", question(t, advice.Options{}),
			map[int][]float64{1: {100, 101}, 2: {191, 193}, 4: {340, 342}}, false, 4, []int{2, 4}, map[int]int{2: 4, 4: 4}},
		{"decided after four", question(t, advice.Options{}),
			map[int][]float64{1: {100, 101}, 2: {191, 193, 192, 190}, 4: {340, 342, 341, 345}}, true, 4, nil, nil},
		// The medians are 99 and 138.5: 1.4 times, to 0.1 %.
		{"undecided at the limit", question(t, advice.Options{}),
			map[int][]float64{1: {90, 110, 95, 105, 100, 98}, 2: {147, 126, 137, 133, 154, 140}}, false, 1, []int{1, 2}, nil},
		// 1000 samples take 10, 5.3 and 2.9 s: the fewest within 6 s are 2 workers, and 1 is far off.
		{"deadline, too few runs near it", question(t, deadline),
			map[int][]float64{1: {100, 101}, 2: {190, 191}, 4: {340, 342}}, false, 2, []int{2}, map[int]int{2: 4}},
		// 4 workers take 5 s, which is near the deadline, too, but cost more than 2, which meet it.
		{"deadline near a count that is worse", question(t, deadline),
			map[int][]float64{1: {100, 101}, 2: {190, 191}, 4: {200, 202}}, false, 2, []int{2}, map[int]int{2: 4}},
		{"deadline", question(t, deadline),
			map[int][]float64{1: {100, 101}, 2: {190, 191, 189, 192, 190, 188}, 4: {340, 342}}, true, 2, nil, nil},
		// The median time of 2 workers is 1000/190.5 = 5.249 s. Their runs are apart by log(192/189) = 1.57
		// %: a deadline of 4.9 s is 6.9 % away, more than twice that, and one of 5.1 s 2.9 %.
		{"deadline that 4 runs clearly miss", question(t, advice.Options{Samples: 1000, Deadline: 4.9}),
			map[int][]float64{1: {100, 101}, 2: {190, 191, 189, 192}, 4: {340, 342, 341, 339, 343, 338}}, true, 4, nil, nil},
		{"deadline that 4 runs just miss", question(t, advice.Options{Samples: 1000, Deadline: 5.1}),
			map[int][]float64{1: {100, 101}, 2: {190, 191, 189, 192}, 4: {340, 342, 341, 339, 343, 338}}, false, 4, []int{2, 4}, map[int]int{2: 6}},
		// One of 8 runs is slow. That 7 or 8 of 8 runs meet a deadline that the median misses has a
		// probability of 9/256 = 3.5 %, which the level of 96.15 % for each look allows.
		{"deadline that one of 8 runs misses", Question{Wish: advice.Options{Samples: 1000, Deadline: 5.564}, Design: Design{Looks: []int{2, 4, 6, 8}, Confidence: 0.9615}, Hours: question(t, advice.Options{}).Hours},
			map[int][]float64{1: {100, 101}, 2: {190, 191, 160, 194, 188, 192, 189, 193}, 4: {340, 342}}, true, 2, nil, nil},
		// 92 % at 2 workers and 85 % at 4 are both near the limit, and the base's error contributes
		// to theirs.
		{"efficiency", question(t, advice.Options{MinEfficiency: 0.9}),
			map[int][]float64{1: {100, 101}, 2: {184, 186}, 4: {340, 342}}, false, 2, []int{1, 2, 4}, map[int]int{1: 4, 2: 4, 4: 4}},
		{"deadline that nothing meets", question(t, advice.Options{Samples: 1000, Deadline: 1}),
			map[int][]float64{1: {100, 101}, 2: {190, 191}, 4: {340, 342}}, true, 0, nil, nil},
	} {
		l := lookAt(t, test.q, test.runs)
		answer := 0
		if l.Advice != nil && l.Advice.Workers != nil {
			answer = *l.Advice.Workers
		}
		var target map[int]int
		if b, _ := test.q.Next(l, -1); b != nil && !l.Decided {
			target = b.Target
		}
		if l.Decided != test.decided || answer != test.answer || !slices.Equal(l.Open, test.open) || !maps.Equal(target, test.target) {
			t.Errorf("%s: decided %v, answer %d, open %v, target %v", test.name, l.Decided, answer, l.Open, target)
		}
	}
}

// 2 workers are worth 0.8 % more than 1 at the price of 1.4, and at most 2.5 %: decided, but not
// yet equivalent. Runs scatter by 0.58 %, so after 6 of each the interval is expected to reach
// √2·1.28·0.58 = 1.05 % to either side, within 2 %. With five times the scatter it is not.
func TestTie(t *testing.T) {
	q := question(t, advice.Options{})
	l := lookAt(t, q, map[int][]float64{1: {100, 100.5, 99.5, 100}, 2: {141.12, 142.8, 140.4, 141.12}})
	if !l.Decided || *l.Advice.Workers != 2 || len(l.Advice.Equivalent) > 0 || l.Tie != 1 {
		t.Fatalf("%+v", l)
	}
	if b, _ := q.Next(l, -1); b == nil || !maps.Equal(b.Target, map[int]int{1: 6, 2: 6}) {
		t.Errorf("%+v", b)
	}
	if b, over := q.Next(l, 5.9); b != nil || over { // two runs of each take 6 node-hours
		t.Errorf("%+v, %v", b, over)
	}
	if got := q.tie(l, 0.029); got != 0 {
		t.Errorf("tie with %d", got)
	}
}

// 2 workers train 1000 samples in 5.249 s. The range of 6 runs is an interval of 96.9 %, so a standard
// error is log(190.5/186)/2.15 = 1.11 %. A deadline of 5.26 s is 0.2 of them away. After twice the runs
// the distance is expected at 0.27 with an error of 1, and exceeds the 1.77 that 96.15 % ask for in 7 +
// 2 % of cases. One of 5.32 s is 1.21 away, then 1.71: 48 %. If one of the runs is slow, the standard
// error is log(190.5/160)/2.15 = 8.1 %, and a deadline of 5.56 s, 5.8 % away, would be exceeded in 23 %.
// But 5 % or more is not too close: after 8 runs the slow one no longer counts. After 4 runs with a
// median at the limit, three times the runs exceed 1.77, with an error of √2, in 21 %.
func TestFutile(t *testing.T) {
	for _, test := range []struct {
		deadline float64
		runs     int
		slowest  float64
		want     bool
	}{{5.26, 6, 186, true}, {1000.0 / 190.5, 4, 186, true}, {5.26, 3, 186, false}, {5.4, 4, 186, false}, {5.32, 6, 186, false}, {5.564, 6, 160, false}, {5.4, 6, 160, true}} {
		q := question(t, advice.Options{Samples: 1000, Deadline: test.deadline})
		q.Design, _ = NewDesign(12)
		runs := []float64{190, 191, test.slowest, 194, 188, 192}
		l := lookAt(t, q, map[int][]float64{1: {100, 101}, 2: runs[:test.runs], 4: {340, 342}})
		if l.Decided || l.Futile != test.want {
			t.Errorf("%g s after %d runs: futile %v, decided %v, open %v", test.deadline, test.runs, l.Futile, l.Decided, l.Open)
		}
		if _, _, ok := q.Probable(l); test.want && test.deadline != 1000.0/190.5 && !ok {
			t.Errorf("%g s after %d runs: no number of runs would probably decide", test.deadline, test.runs)
		}
		if b, _ := q.Next(l, -1); (b == nil) != test.want {
			t.Errorf("%g s after %d runs: %+v", test.deadline, test.runs, b)
		}
	}
}

// The runs of 1, 2 and 4 workers take 1, 2 and 4 node-hours.
func TestNextWithinNodeHours(t *testing.T) {
	q := question(t, advice.Options{})
	l := lookAt(t, q, map[int][]float64{1: {100, 101}, 2: {150, 152}, 4: {222, 224}})
	if !slices.Equal(l.Open, []int{1, 2, 4}) || *l.Advice.Workers != 4 {
		t.Fatalf("open %v, answer %d", l.Open, *l.Advice.Workers)
	}
	for _, test := range []struct {
		left   float64
		target map[int]int
		hours  float64
	}{
		{-1, map[int]int{1: 4, 2: 4, 4: 4}, 14},
		{14, map[int]int{1: 4, 2: 4, 4: 4}, 14},
		{13.9, map[int]int{1: 4, 4: 4}, 10}, // a run of 1 worker is the cheaper one
		{9.9, nil, 0},
	} {
		b, over := q.Next(l, test.left)
		if b == nil {
			b = &Batch{}
		}
		if !maps.Equal(b.Target, test.target) || b.Hours != test.hours || over != (test.target == nil) {
			t.Errorf("%g left: %+v, unaffordable %v", test.left, b, over)
		}
	}
}

// A contender that is better with 20 % is 0.842 standard errors away, and the design of one look asks for
// 1.645. With four times the runs the distance is expected at 1.683 with an error of sqrt(3): it
// exceeds 1.645 with Φ(0.022) = 50.9 %, and the other way with Φ(-1.921) = 2.7 %.
func TestChance(t *testing.T) {
	two := 2
	q := Question{Design: Design{Looks: []int{4, 16}, Confidence: 0.95}, Hours: func(int) float64 { return 0.5 }}
	l := &Look{Runs: map[int]int{1: 4, 2: 4}, Open: []int{1, 2}, Advice: &advice.Advice{Workers: &two, Undecided: []advice.Contender{{Workers: 1, Probability: 0.2}}}}
	b, _ := q.Next(l, -1)
	if b == nil || b.Chance == nil || math.Abs(*b.Chance-0.536) > 0.002 {
		t.Fatalf("%+v", b)
	}
	if runs, hours, ok := q.Probable(l); runs != 24 || hours != 12 || !ok {
		t.Errorf("%d runs, %g node-hours, %v", runs, hours, ok)
	}
}

// The largest of 4 normal values is expected 1.029 standard deviations above the mean, of 6 1.267, and the
// second of 12 1.116 (Harter, Biometrika 48, 1961). Blom's formula is off by 2 % at most.
func TestForecast(t *testing.T) {
	d := Design{Looks: []int{2, 4, 6, 12}, Confidence: 0.965}
	list := d.Forecast([]int{1, 2}, func(n int) float64 { return float64(n) }, 0.02)
	for i, want := range []Forecast{{2, 0, 4, 6}, {4, 2 * 1.029 * 0.02, 8, 12}, {6, math.Sqrt2 * 1.267 * 0.02, 12, 18}, {12, math.Sqrt2 * 1.116 * 0.02, 24, 36}} {
		got := list[i]
		if got.Repeats != want.Repeats || got.Runs != want.Runs || got.Hours != want.Hours || math.Abs(got.Half-want.Half) > 0.025*want.Half {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// Deviations of the logarithms are ±0.01 and ±0.03, with one degree of freedom each: variances 0.0002 and 0.0018.
func TestScatter(t *testing.T) {
	runs := map[int][]float64{1: {100 * math.Exp(0.01), 100 * math.Exp(-0.01)}, 2: {190 * math.Exp(0.03), 190 * math.Exp(-0.03)}, 4: {300}}
	curves, err := scaling.Analyse(studyOf(runs), scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := Scatter(curves); math.Abs(got-math.Sqrt(0.001)) > 1e-9 {
		t.Errorf("%g", got)
	}
}

// Runs that are all equal have no interval, however many there are. Six of them are as many as an
// interval needs: even if rounding made every other run equal to the first, six would be equal in
// 1/32 = 3.1 % of studies only. So the study ends there.
func TestEqualRunsEnd(t *testing.T) {
	design, err := NewDesign(Most)
	if err != nil {
		t.Fatal(err)
	}
	same := func(x float64, n int) []float64 { return slices.Repeat([]float64{x}, n) }
	six := []float64{190, 191, 189, 192, 190.5, 188}
	for _, c := range []struct {
		name string
		wish advice.Options
		runs map[int][]float64
		ends bool
	}{
		{"four equal runs", advice.Options{}, map[int][]float64{1: same(100, 4), 2: same(190, 4)}, false},
		{"six equal runs", advice.Options{}, map[int][]float64{1: same(100, 6), 2: same(190, 6)}, true},
		{"six equal runs of one count", advice.Options{}, map[int][]float64{1: same(100, 6), 2: six}, true},
		{"runs that scatter near the limit", advice.Options{}, map[int][]float64{1: {100, 104, 96, 101, 99, 102}, 2: {140, 146, 135, 141, 139, 137}}, false},
		{"six equal runs, deadline", advice.Options{Samples: 1000, Deadline: 6}, map[int][]float64{1: same(100, 6), 2: same(190, 6)}, true},
		{"four equal runs, deadline near", advice.Options{Samples: 1000, Deadline: 5.3}, map[int][]float64{1: same(100, 4), 2: same(190, 4)}, false},
		{"six equal runs, efficiency", advice.Options{MinEfficiency: 0.9}, map[int][]float64{1: same(100, 6), 2: same(190, 6)}, true},
	} {
		q := question(t, c.wish)
		q.Design = design
		l := lookAt(t, q, c.runs)
		b, _ := q.Next(l, -1)
		if l.Decided || (b == nil) != c.ends || (l.Caveat != "") != c.ends {
			t.Errorf("%s: decided %v, caveat %q, next %+v", c.name, l.Decided, l.Caveat, b)
		}
	}
}

// A warning that every run will get is known at the first look, and more runs do not remove it: the
// study ends there, and says what to change.
func TestWarningThatStaysEnds(t *testing.T) {
	crowded := []string{"2 ranks on n1 compute with 4 threads on 2 CPUs"}
	for name, c := range map[string]struct {
		wish advice.Options
		runs map[int][]float64
	}{
		"counts that may both be best":   {advice.Options{Warnings: crowded}, map[int][]float64{1: {100, 101}, 2: {140, 142}}},
		"a deadline that 2 workers meet": {advice.Options{Warnings: crowded, Samples: 1000, Deadline: 6}, map[int][]float64{1: {100, 101}, 2: {190, 191}}},
		"a deadline that nothing meets":  {advice.Options{Warnings: crowded, Samples: 1000, Deadline: 1}, map[int][]float64{1: {100, 101}, 2: {190, 191}}},
	} {
		q := question(t, c.wish)
		l := lookAt(t, q, c.runs)
		b, _ := q.Next(l, -1)
		if want := crowded[0] + "; use fewer workers or threads, or more CPUs, and measure again with another study.name"; l.Decided || b != nil || l.Caveat != want {
			t.Errorf("%s: decided %v, next %+v, caveat %q", name, l.Decided, b, l.Caveat)
		}
		c.wish.Warnings = []string{"some runs did not record what they ran on"}
		if l := lookAt(t, question(t, c.wish), c.runs); l.Caveat != "" {
			t.Errorf("%s, minor warning: caveat %q", name, l.Caveat)
		}
	}
}

// Two settings whose runs are all equal are compared no longer than six runs, and the test, which
// would tell 6 from 6 equal runs at p = 2/924, decides nothing.
func TestEqualPairsEnd(t *testing.T) {
	for _, c := range []struct {
		runs    int
		a, b    float64
		scatter float64
		ends    bool
		decided bool
	}{{4, 100, 190, 0, false, false}, {6, 100, 190, 0, true, false}, {6, 100, 100, 0, true, false}, {6, 100, 190, 1, true, true}} {
		m := &machine{}
		for i := range c.runs {
			for n, x := range map[int]float64{1: c.a, 2: c.b} {
				o := studyOf(map[int][]float64{n: {x + c.scatter*float64(i)}})[0]
				o.Run, o.Repeat, o.BeganUnix, o.Point = fmt.Sprintf("s/w%d-r%d-a1", n, i+1), i+1, o.BeganUnix+3600*float64(i)+600*float64(n), fmt.Sprintf("w%d", n)
				m.obs = append(m.obs, o)
			}
		}
		l := Pair(pair(t, m, 0.9825), false)
		if l.Decided != c.decided || (len(l.Open) == 0) != c.ends || (l.Caveat != "") != (c.ends && !c.decided) {
			t.Errorf("%+v: decided %v, open %v, caveat %q", c, l.Decided, l.Open, l.Caveat)
		}
	}
}

// Of 2 workers, one of two runs reaches the target, within the deadline. Their median is unknown, not
// too late: they may be the fewest that reach it. Neither do two misses show that half or more miss
// (1/4 by chance); four do (1/16).
func TestMissesNearDeadline(t *testing.T) {
	late := math.Inf(1)
	for _, c := range []struct {
		name string
		two  []float64 // seconds of the runs of 2 workers
		open bool      // whether more runs of 2 workers may change the answer
	}{
		{"one of two", []float64{5, late}, true},
		{"none of two", []float64{late, late}, true},
		{"none of four", []float64{late, late, late, late}, false},
		{"two of four", []float64{5, 5.1, late, late}, true},
		{"one of eight", []float64{5, late, late, late, late, late, late, late}, false}, // 9/256
		{"two of eight", []float64{5, 5.1, late, late, late, late, late, late}, true},   // 37/256
	} {
		l := lookAtTimes(t, c.two, advice.Options{Target: new(measure.Accuracy(0.75)), Deadline: 6})
		if slices.Contains(l.Open, 2) != c.open || l.Decided == c.open {
			t.Errorf("%s: open %v, decided %v; %s", c.name, l.Open, l.Decided, l.Advice.Sentences())
		}
	}
}

// Without a deadline, too, two misses do not show that 2 workers are no good. One run that is much
// faster than all others does not show that they are best, if the other misses: at most 95 % of runs
// may miss, and a twentieth of 4.7 is less than 1.
func TestMissesByDefault(t *testing.T) {
	late := math.Inf(1)
	for _, c := range []struct {
		name string
		two  []float64
		open bool
	}{
		{"none of two", []float64{late, late}, true},
		{"one of two, 3 times as fast", []float64{0.9, late}, true},
		{"none of four", []float64{late, late, late, late}, false},
		{"all, 3 times as slow", []float64{9, 9.1}, false},
		{"one of two, 3 times as slow", []float64{9, late}, false}, // missing makes it worse
	} {
		l := lookAtTimes(t, c.two, advice.Options{Target: new(measure.Accuracy(0.75))})
		if slices.Contains(l.Open, 2) != c.open || l.Decided == c.open {
			t.Errorf("%s: open %v, decided %v; %s", c.name, l.Open, l.Decided, l.Advice.Sentences())
		}
	}
}

// lookAtTimes looks at two runs of 1 worker that reach 75 % in 30 s, runs of 2 workers that take as
// long as given or, if infinite, miss it, and eight of 4 workers that take 3 s.
func lookAtTimes(t *testing.T, two []float64, wish advice.Options) *Look {
	t.Helper()
	seconds := map[int][]float64{1: {30, 31}, 2: two, 4: {3, 3.1, 3.05, 3.02, 3.01, 3.04, 3.03, 3.06}}
	rates := map[int][]float64{}
	for n, list := range seconds {
		for range list {
			rates[n] = append(rates[n], 100*float64(n))
		}
	}
	obs := studyOf(rates)
	for i := range obs {
		took, accuracy := seconds[obs[i].Workers][obs[i].Repeat-1], 0.75
		if obs[i].Values["to_0.75"] = took; math.IsInf(took, 1) {
			took, accuracy = 9, 0.7
		}
		obs[i].Parameters["global_batch"] = int64(64 * obs[i].Workers) // with one batch for all, all counts miss equally often
		obs[i].Evaluations = []scaling.Evaluation{{Seconds: took, Epoch: 1, Samples: 1000, Accuracy: accuracy}}
	}
	design, err := NewDesign(Most)
	if err != nil {
		t.Fatal(err)
	}
	q := Question{Wish: wish, Design: design, Hours: func(int) float64 { return 1 }}
	curves, err := scaling.Analyse(obs, design.Options())
	if err != nil {
		t.Fatal(err)
	}
	l, err := q.Look(curves[0], obs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
