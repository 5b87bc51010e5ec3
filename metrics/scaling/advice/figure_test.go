package advice

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Another measure decides like a throughput, in its better direction, and is printed in its unit.
// Rates of 100, 190 and 200 bring 1.9 times and 1.05 times a doubling: 2 workers. The times of 5,
// 2.63 and 2.5 s are the same curve.
func TestFigure(t *testing.T) {
	for _, tt := range []struct {
		m      measure.Measure
		values map[int]float64
		says   string
	}{
		{measure.Measure{Name: "pi_rate", Title: "pi rate", Unit: "pi/s", Better: measure.Higher}, map[int]float64{1: 100, 2: 190, 4: 200}, "doubling from 1 improves pi rate 1.9×"},
		{measure.Measure{Name: "wall", Title: "wall", Unit: "s", Better: measure.Lower}, map[int]float64{1: 5, 2: 5 / 1.9, 4: 2.5}, "doubling from 1 improves wall 1.9×"},
	} {
		var obs []scaling.Observation
		for n, x := range tt.values {
			for k := range 6 {
				obs = append(obs, scaling.Observation{Run: fmt.Sprintf("r%d-%d", n, k), Point: fmt.Sprint(n), Repeat: k + 1, Framework: "command", Workers: n, Nodes: 1,
					Parameters: map[string]any{}, Values: map[string]float64{tt.m.Name: x * (1 + 0.001*float64(k-3)), "to_0.75": 7}, Reported: []measure.Measure{tt.m}})
			}
		}
		scaling.AsThroughput(obs, tt.m)
		curves, err := scaling.Analyse(obs, scaling.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := Advise(curves[0], obs, Options{Figure: &tt.m})
		if err != nil {
			t.Fatal(err)
		}
		if a.Workers == nil || *a.Workers != 2 || !strings.Contains(a.Reason[0], tt.says) || !strings.Contains(a.Reason[0], fmt.Sprintf("4 would improve %s 1.05×", tt.m.Title)) {
			t.Errorf("%s: %v workers: %s", tt.m.Name, a.Workers, a.Reason[0])
		}
		for _, c := range a.Candidates {
			want := tt.values[c.Workers]
			if c.Throughput != nil || c.Seconds != nil || c.Figure == nil || math.Abs(c.Figure.Value/want-1) > 0.001 || !(*c.Figure.Low <= c.Figure.Value && c.Figure.Value <= *c.Figure.High) {
				t.Errorf("%s at %d: figure %+v, want %g", tt.m.Name, c.Workers, c.Figure, want)
			}
		}
		if a.Measure != tt.m.Name || a.Unit() != tt.m.Unit || a.Base.Unit != tt.m.Unit || math.Abs(*a.Base.Throughput/tt.values[1]-1) > 0.001 {
			t.Errorf("%s: measure %q in %q, base %+v", tt.m.Name, a.Measure, a.Unit(), a.Base)
		}
		if _, err := Advise(curves[0], obs, Options{Figure: &tt.m, Deadline: 60}); err == nil || !strings.Contains(err.Error(), "compared by itself") {
			t.Errorf("a deadline with %s: %v", tt.m.Name, err)
		}
	}
}

// Two workers train twice as fast and need 1.5 times the samples: with the 10 s of
// initialisation, 3600 + 10 s over 1.5·3600/2 + 10 s.
func TestFaster(t *testing.T) {
	took := func(batch float64) float64 { return 3.6e6 * (0.5 + batch/200) }
	a := series{counts: []int{1, 2}, runs: 6, x: linear, took: took}.advise(t, Options{})
	if got := a.Faster(2, 1); got == nil || math.Abs(got.Value-3610.0/2710) > 2e-3 || got.Interval == nil {
		t.Errorf("to the target: %+v", got)
	}
	a = series{counts: []int{1, 2}, runs: 6, x: linear}.advise(t, Options{})
	if got := a.Faster(2, 1); got == nil || math.Abs(got.Value-2) > 1e-2 {
		t.Errorf("throughput: %+v", got)
	}
	if got := a.Faster(4, 1); got != nil {
		t.Errorf("4 workers were not measured: %+v", got)
	}
}
