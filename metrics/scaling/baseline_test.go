package scaling

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/measure"
)

func cell(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func TestBaselines(t *testing.T) {
	gpu := []Condition{{Key: "platform", Value: "gpu"}}
	for _, test := range []struct {
		name       string
		conditions []Condition
		list       []map[string]any
		want       []Baseline
	}{
		{"each test has its own", gpu,
			[]map[string]any{cell("test", "a", "platform", "gpu"), cell("test", "a", "platform", "cpu"), cell("test", "b", "platform", "cpu"), cell("test", "b", "platform", "gpu")},
			[]Baseline{{Index: 0}, {Index: 0}, {Index: 3}, {Index: 3}}},
		// Test b has no run on the GPU, and the baseline of test a does not apply to it.
		{"what has none says so", gpu,
			[]map[string]any{cell("test", "a", "platform", "gpu"), cell("test", "a", "platform", "cpu"), cell("test", "b", "platform", "cpu")},
			[]Baseline{{Index: 0}, {Index: 0}, {Why: "no configuration with platform=gpu has test=b"}}},
		{"what follows may differ", gpu,
			[]map[string]any{cell("test", "a", "platform", "gpu"), cell("test", "a", "platform", "cpu", "vcpus", int64(8)), cell("test", "b", "platform", "cpu", "vcpus", int64(8)), cell("test", "b", "platform", "gpu")},
			[]Baseline{{Index: 0}, {Index: 0, Also: []string{"vcpus"}}, {Index: 3, Also: []string{"vcpus"}}, {Index: 3}}},
		{"more said, fewer baselines", append(gpu, Condition{Key: "test", Value: "b"}),
			[]map[string]any{cell("test", "a", "platform", "cpu"), cell("test", "b", "platform", "gpu")},
			[]Baseline{{Index: 1}, {Index: 1}}},
		{"a number by its value, a key by its last part", []Condition{{Key: "batch", Value: "64"}},
			[]map[string]any{cell("workload.batch", 64.0), cell("workload.batch", int64(128))},
			[]Baseline{{Index: 0}, {Index: 0}}},
	} {
		got, err := Baselines(test.conditions, test.list)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	for text, want := range map[string]string{"platform=tpu": "valid: cpu, gpu", "colour=red": "no configuration has the key colour", "c=1": "c could be a.c or b.c"} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		list := []map[string]any{cell("platform", "cpu", "a.c", 1), cell("platform", "gpu", "b.c", 1)}
		if _, err := Baselines([]Condition{c}, list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A rate and a time, each in its better direction: torch reaches 300/s and native 200/s, and torch
// takes 20 s and native 40 s.
func TestBaselineOfAnotherSeries(t *testing.T) {
	var obs []Observation
	for _, one := range []struct {
		run, framework string
		workers        int
		rate, seconds  float64
	}{{"a", "native", 1, 100, 80}, {"b", "native", 2, 200, 40}, {"c", "torch", 2, 300, 20}, {"d", "torch", 4, 500, 15}} {
		obs = append(obs, Observation{Run: one.run, Framework: one.framework, Workers: one.workers, Kind: "train", Parameters: map[string]any{},
			Values: map[string]float64{measure.Throughput: one.rate, measure.TrainSeconds: one.seconds}})
	}
	curves, err := Analyse(obs, Options{Baseline: []Condition{{Key: "framework", Value: "native"}}})
	if err != nil {
		t.Fatal(err)
	}
	two, four := &curves[1].Points[0], &curves[1].Points[1]
	for name, want := range map[string]float64{measure.Throughput: 1.5, measure.TrainSeconds: 2} {
		if g := two.Of(name).Gain(); g == nil || math.Abs(g.Value-want) > 1e-12 {
			t.Errorf("%s: %+v, want %g", name, g, want)
		}
		if g := four.Of(name).Gain(); g != nil {
			t.Errorf("%s has no baseline, and a gain of %g", name, g.Value)
		}
	}
	if own := curves[0].Points[1].Of(measure.Throughput).Gain(); own == nil || own.Value != 1 || own.Why != AtBase {
		t.Errorf("the baseline's own: %+v", own)
	}
	if w := strings.Join(four.Warnings, "\n"); !strings.Contains(w, "no baseline: no configuration with framework=native has workers=4") {
		t.Error(w)
	}
	if two.Of(measure.Throughput).Efficiency() != nil || curves[0].Base != nil {
		t.Error("a baseline of another series gives no efficiency")
	}
}
