package predict

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// runs returns one run at each count, with parameters and values that may depend on it.
func runs(counts []int, parameters func(n int) map[string]any, values func(n int) map[string]float64) []scaling.Observation {
	var list []scaling.Observation
	for _, n := range counts {
		p := parameters(n)
		p["workers"] = int64(n)
		list = append(list, scaling.Observation{Run: fmt.Sprint(n), Kind: "train", Framework: "x", Workers: n, Nodes: (n + 7) / 8, Parameters: p, Values: values(n)})
	}
	return list
}

func TestOf(t *testing.T) {
	rate := func(name string, each float64) func(int) map[string]float64 {
		return func(n int) map[string]float64 { return map[string]float64{name: each * float64(n)} }
	}
	for _, tt := range []struct {
		name       string
		kind       string // as the user says
		parameters func(n int) map[string]any
		values     func(n int) map[string]float64
		layout     Layout
		batch, at  float64 // of 16 workers, and of 64
		step       float64 // of 16 workers, seconds
		relative   bool
		unit       string
	}{
		{"data parallel, weak", "", func(n int) map[string]any {
			return map[string]any{"workload.batch": int64(32), "workload.scaling": "weak"}
		}, rate("throughput", 64), Layout{1, 1, 1, 0}, 512, 2048, 0.5, false, "samples/s"},
		{"data parallel, strong", "", func(n int) map[string]any {
			return map[string]any{"workload.batch": int64(512), "workload.scaling": "strong"}
		}, rate("throughput", 64), Layout{1, 1, 1, 0}, 512, 512, 0.5, false, "samples/s"},
		// Parameters that are 0 or false are ignored.
		{"keys at their defaults", "", func(n int) map[string]any {
			return map[string]any{"workload.batch": int64(32), "workload.scaling": "weak", "workload.micro_batch": int64(0), "workload.checkpointing": false, "tp": "", "a.pp": int64(1), "b.pp": int64(1)}
		}, rate("throughput", 64), Layout{1, 1, 1, 0}, 512, 2048, 0.5, false, "samples/s"},
		// 16 workers are 2 replicas of 8, each with 4 microbatches of 2.
		{"layout of a study", "", func(n int) map[string]any {
			return map[string]any{"parameters.tp": int64(4), "parameters.pp": int64(2), "parameters.micro_batch": int64(2), "accumulate": int64(4)}
		}, rate("throughput", 2), Layout{8, 2, 0, 2}, 16, 64, 0.5, false, "samples/s"},
		{"step times of a log, tokens beside", "", func(n int) map[string]any {
			return map[string]any{"global_batch": int64(8 * n), "vp": int64(3)}
		}, func(n int) map[string]float64 {
			return map[string]float64{"step_seconds": 2, "tokens_per_second": 1e5}
		}, Layout{1, 1, 3, 0}, 128, 512, 2, false, "samples/s"},
		{"tokens alone", "weak", func(n int) map[string]any { return map[string]any{} }, rate("tokens_per_second", 4), Layout{1, 1, 1, 0}, 16, 64, 0.25, true, "tokens/s"},
		{"a table's rates, the batch fixed", "strong", func(n int) map[string]any { return map[string]any{} }, rate("throughput", 4), Layout{1, 1, 1, 0}, 1, 1, 1.0 / 64, true, "samples/s"},
	} {
		obs := runs([]int{8, 16, 32}, tt.parameters, tt.values)
		curves, err := scaling.Analyse(obs, scaling.Options{})
		var baseless *scaling.NoBaseError // of a throughput, which step times do not need
		if err != nil && !errors.As(err, &baseless) || len(curves) != 1 {
			t.Fatalf("%s: %d curves, %v", tt.name, len(curves), err)
		}
		s, err := NewSeries(curves[0], curves[0].Observed(obs), tt.kind, nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		at, err := s.BatchAt(64)
		if err != nil || at != tt.at || len(s.Counts) != 3 || s.Counts[1].Batch != tt.batch || math.Abs(s.Counts[1].Steps[0]-tt.step) > 1e-12 || s.Layout != tt.layout || s.Relative != tt.relative || s.Unit != tt.unit {
			t.Errorf("%s: %+v, batch %g at 64, %v", tt.name, s, at, err)
		}
	}
	obs := runs([]int{8, 16}, func(int) map[string]any { return map[string]any{} }, rate("throughput", 4))
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSeries(curves[0], curves[0].Observed(obs), "", nil); !errors.Is(err, errScaling) {
		t.Errorf("no batch, no scaling: %v", err)
	}
}

// With more replicas, a worker never needs more memory; with fewer, it may. A layout that ran out
// of memory on at least as many workers has too little.
func TestMemory(t *testing.T) {
	m := &Memory{Workers: 16, Bytes: 60e9, Measure: "reserved_memory"}
	if x, ok := m.Needs(64); !ok || x != 60e9 {
		t.Errorf("64 workers: %g, %v", x, ok)
	}
	if _, ok := m.Needs(8); ok {
		t.Error("fewer workers were said to fit")
	}
	if _, ok := (*Memory)(nil).Needs(8); ok {
		t.Error("unmeasured memory was told")
	}
	out := []scaling.Planned{{Workers: 32, Parameters: map[string]any{"parameters.tp": int64(2)}}}
	for _, tt := range []struct {
		tp      any
		workers int
		want    string
	}{
		{int64(2), 16, "with this layout memory ran out on 32 workers"},
		{int64(2), 64, ""}, // sharded over more, it may fit
		{int64(4), 16, ""},
		{nil, 16, ""},
	} {
		values := map[string]any{}
		if tt.tp != nil {
			values["tp"] = tt.tp
		}
		if got := Ended(out, values, tt.workers); got != tt.want {
			t.Errorf("tp=%v, %d workers: %q", tt.tp, tt.workers, got)
		}
	}
	s := &Series{Study: Study{Layout: Layout{1, 1, 1, 0}, Counts: []Count{{8, 1, 8, []float64{1}}, {16, 2, 16, []float64{1}}}}, Weak: true, Memory: m, Values: map[string]any{}}
	a, err := Ask(s, Question{Workers: 32, Memory: 40e9})
	if err != nil || a.Rate != nil || a.Refused != "a worker needs 55.9 GiB (reserved_memory on 16 workers) and has 37.3 GiB: it does not fit" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err = Ask(s, Question{Workers: 32, Memory: 80e9}); err != nil || a.Rate == nil || a.Memory == nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// The same data give the same answer.
func TestSteady(t *testing.T) {
	var all []Estimate
	for range 2 {
		l, err := Fit(h100, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		e, err := l.Predict(4096, 1536)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	if all[0] != all[1] {
		t.Errorf("%+v and %+v", all[0], all[1])
	}
}
