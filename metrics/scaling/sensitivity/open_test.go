package sensitivity

import (
	"fmt"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Four runs of each amount, if given, at the level of interim looks.
func answerOf(t *testing.T, runs map[int64][]float64) Answer {
	t.Helper()
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	var obs []scaling.Observation
	for cpus, values := range runs {
		for i, x := range values {
			obs = append(obs, scaling.Observation{Run: fmt.Sprintf("s/c%d-r%d-a1", cpus, i+1), Study: "s", Point: fmt.Sprintf("c%d", cpus), Repeat: i + 1, Framework: "native", Workers: 1, Nodes: 1,
				BeganUnix: 1.79e9 + 100*float64(i) + float64(cpus), Parameters: map[string]any{"resources.cpus_per_worker": cpus, "workers": int64(1)}, Values: map[string]float64{"throughput": x}})
		}
	}
	list, err := Analyse(obs, Options{Measure: throughput, Factors: []string{"resources.cpus_per_worker"}, Confidence: 0.9615, FewRuns: true})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %d answers", err, len(list))
	}
	return list[0]
}

// With 4 runs the interval of a ratio reaches from the smallest to the largest ratio of two runs. At
// a permitted loss of 5 %, 99 to 101 over 99 to 101 is enough, and 94 to 96 is undecided.
func TestOpen(t *testing.T) {
	full := []float64{100, 101, 99, 100}
	for _, c := range []struct {
		name    string
		runs    map[int64][]float64
		open    []string
		leftOut []string
		spec    int64 // 0: none
	}{
		{"too few runs", map[int64][]float64{4: full[:2], 2: full[:2]}, []string{"c2", "c4"}, nil, 0},
		{"one is enough", map[int64][]float64{4: full, 2: full}, nil, nil, 2},
		{"one is undecided", map[int64][]float64{4: full, 2: {94, 96, 95, 95}}, []string{"c2", "c4"}, nil, 0},
		{"one below the answer is undecided", map[int64][]float64{4: full, 2: full, 1: {94, 96, 95, 95}}, []string{"c1", "c4"}, nil, 2},
		{"one below an insufficient one is not open", map[int64][]float64{4: full, 2: {80, 81, 82, 80}, 1: {60, 61}}, nil, []string{"cpus_per_worker=1"}, 4},
		{"two runs far below", map[int64][]float64{4: full[:2], 2: full[:2], 1: {50, 51}}, []string{"c2", "c4"}, []string{"cpus_per_worker=1"}, 0},
		{"nothing but one far below", map[int64][]float64{4: full[:2], 1: {50, 51}}, []string{"c1", "c4"}, nil, 0},
		{"four runs far below", map[int64][]float64{4: full, 1: {50, 51, 50, 52}}, nil, nil, 4},
		{"four equal runs", map[int64][]float64{4: {100, 100, 100, 100}, 2: {99, 99, 99, 99}}, []string{"c2", "c4"}, nil, 0},
		{"two runs not far below", map[int64][]float64{4: full[:2], 2: full[:2], 1: {70, 71}}, []string{"c1", "c2", "c4"}, nil, 0},
	} {
		a := answerOf(t, c.runs)
		var open []string
		for _, m := range a.Open() {
			open = append(open, m.Points...)
		}
		slices.Sort(open)
		if !slices.Equal(open, c.open) || !slices.Equal(a.LeftOut(), c.leftOut) {
			t.Errorf("%s: open %v, want %v; left out %v, want %v", c.name, open, c.open, a.LeftOut(), c.leftOut)
		}
		spec := int64(0)
		if a.Spec != nil {
			spec = int64(a.Spec.At["resources.cpus_per_worker"].Number)
		}
		if spec != c.spec {
			t.Errorf("%s: needs %d, want %d (%s)", c.name, spec, c.spec, a.Why)
		}
	}
}
