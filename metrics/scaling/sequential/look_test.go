package sequential

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// studyOf is a study in blocks; values are throughputs by count.
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

func question(t *testing.T, wish advice.Options, counts ...int) Question {
	t.Helper()
	d, err := NewDesign(6)
	if err != nil {
		t.Fatal(err)
	}
	return Question{Wish: wish, Design: d, Counts: counts}
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
		{"no runs", question(t, advice.Options{}, 1, 2, 4), nil, false, 0, []int{1, 2, 4}, map[int]int{1: 2, 2: 2, 4: 2}},
		{"a count lacks one", question(t, advice.Options{}, 1, 2), map[int][]float64{1: {100}, 2: {190, 191}}, false, 0, []int{1}, map[int]int{1: 2}},
		// Worth of 4 workers over 1.4 twice: 340/1.96 = 173, 1.73 times 1 worker, and 1.26 times 2.
		{"one is far behind after two runs", question(t, advice.Options{}, 1, 2, 4),
			map[int][]float64{1: {100, 101}, 2: {191, 193}, 4: {340, 342}}, false, 4, []int{2, 4}, map[int]int{2: 4, 4: 4}},
		{"decided after four", question(t, advice.Options{}, 1, 2, 4),
			map[int][]float64{1: {100, 101}, 2: {191, 193, 192, 190}, 4: {340, 342, 341, 345}}, true, 4, nil, nil},
		// The medians are 99 and 138.5: 1.4 times, to 0.1 %.
		{"undecided at the limit", question(t, advice.Options{}, 1, 2),
			map[int][]float64{1: {90, 110, 95, 105, 100, 98}, 2: {147, 126, 137, 133, 154, 140}}, false, 1, []int{1, 2}, nil},
		// 1000 samples take 10, 5.3 and 2.9 s: the fewest within 6 s are 2 workers, and 1 is far off.
		{"deadline, too few runs near it", question(t, deadline, 1, 2, 4),
			map[int][]float64{1: {100, 101}, 2: {190, 191}, 4: {340, 342}}, false, 2, []int{2}, map[int]int{2: 4}},
		{"deadline", question(t, deadline, 1, 2, 4),
			map[int][]float64{1: {100, 101}, 2: {190, 191, 189, 192, 190, 188}, 4: {340, 342}}, true, 2, nil, nil},
		{"deadline that nothing meets", question(t, advice.Options{Samples: 1000, Deadline: 1}, 1, 2, 4),
			map[int][]float64{1: {100, 101}, 2: {190, 191}, 4: {340, 342}}, true, 0, nil, nil},
	} {
		l, err := test.q.Look(studyOf(test.runs))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		answer := 0
		if l.Advice != nil && l.Advice.Workers != nil {
			answer = *l.Advice.Workers
		}
		if l.Decided != test.decided || answer != test.answer || !slices.Equal(l.Open, test.open) || !maps.Equal(test.q.Target(l), test.target) {
			t.Errorf("%s: decided %v, answer %d, open %v, target %v", test.name, l.Decided, answer, l.Open, test.q.Target(l))
		}
	}
}
