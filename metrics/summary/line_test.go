package summary

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// Seven samples in at most three points are three, three and one; in at most ten, each.
func TestThin(t *testing.T) {
	s := series("power", "", false, 1, 5, 2, 4, 3, 9, 7)
	for most, want := range map[int][]NodeSample{
		3:  {{0, 5}, {3, 9}, {6, 7}},
		4:  {{0, 5}, {2, 4}, {4, 9}, {6, 7}},
		7:  {{0, 1}, {1, 5}, {2, 2}, {3, 4}, {4, 3}, {5, 9}, {6, 7}},
		10: {{0, 1}, {1, 5}, {2, 2}, {3, 4}, {4, 3}, {5, 9}, {6, 7}},
		1:  {{0, 9}},
	} {
		if got := s.Thin(most); !slices.Equal(got, want) {
			t.Errorf("at most %d: %v, want %v", most, got, want)
		}
	}
	if got := (&Series{}).Thin(3); got != nil {
		t.Errorf("of no samples: %v", got)
	}
}

// A counter that rises by 2, 4, 0 and 6 in a second each, and then starts again.
func TestRates(t *testing.T) {
	s := series("energy", "", true, 0, 2, 6, 6, 12, 1, 3)
	for most, want := range map[int][]NodeSample{
		7: {{0.5, 2}, {1.5, 4}, {2.5, 0}, {3.5, 6}, {5.5, 2}},
		4: {{1, 3}, {3, 3}},
		3: {{1.5, 2}},
	} {
		if got := s.Rates(most); !slices.Equal(got, want) {
			t.Errorf("at most %d: %v, want %v", most, got, want)
		}
	}
}

// A package's counter rises by 100 J a second, and its memory's power is 10, 20 and 30 W.
// The platform holds both. Times at which a series has no sample have its nearest value.
func TestPower(t *testing.T) {
	energy := func(of string, values ...float64) Series { return series(metrics.TelemetryEnergy, of, true, values...) }
	power := func(of string, values ...float64) Series { return series(metrics.TelemetryPower, of, false, values...) }
	for name, c := range map[string]struct {
		series []Series
		want   []NodeSample
	}{
		"a gauge":              {[]Series{power("card0", 10, 20, 30)}, []NodeSample{{0, 10}, {1, 20}, {2, 30}}},
		"two gauges":           {[]Series{power("card0", 10, 20, 30), power("card1", 1, 2, 3)}, []NodeSample{{0, 11}, {1, 22}, {2, 33}}},
		"a counter":            {[]Series{energy("package-0", 0, 100, 200)}, []NodeSample{{0.5, 100}, {1.5, 100}}},
		"a counter, a gauge":   {[]Series{energy("package-0", 0, 100, 200), power("card0", 10, 20, 30)}, []NodeSample{{0.5, 115}, {1.5, 125}}},
		"the counter of a GPU": {[]Series{energy("GPU-1", 0, 90, 180), power("GPU-1", 7, 7, 7)}, []NodeSample{{0.5, 90}, {1.5, 90}}},
		"a later begin":        {[]Series{power("card0", 10, 20, 30, 40, 50, 60), power("card1", no, 2, 3, 4, 5, 6)}, []NodeSample{{0, 12}, {1, 22}, {2, 33}, {3, 44}, {4, 55}, {5, 66}}},
		"one that is not read": {[]Series{energy("package-0", 0, 100, 200), energy("package-1", 0)}, nil},
		"nothing":              {nil, nil},
	} {
		node := SampledNode{Series: c.series}
		got := node.Power(100)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i].At != c.want[i].At || math.Abs(got[i].Value-c.want[i].Value) > 1e-9 {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

// The median of the latest five values, or of the latest tenth.
func TestSmoothed(t *testing.T) {
	var list []judged
	for i := range 61 {
		list = append(list, judged{float64(i), float64(i)})
	}
	got := smoothed(list)
	if len(got) != 57 {
		t.Fatalf("%d values, want 57", len(got))
	}
	for at, want := range map[float64]float64{4: 2, 5: 3, 58: 56, 59: 56.5, 60: 57.5} { // six values from 59 on
		if j := got[int(at)-4]; j.time != at || j.value != want {
			t.Errorf("at %g: %+v, want %g", at, j, want)
		}
	}
	if got := smoothed([]judged{{1, 9}, {2, 1}, {3, 5}, {4, 7}, {5, 3}}); len(got) != 1 || got[0] != (judged{5, 5}) {
		t.Errorf("five in any order: %v", got)
	}
	if got := smoothed(list[:4]); got != nil {
		t.Errorf("four: %v", got)
	}
}

// Times of 10 µs + bytes/(1 GB/s), in place and not. A figure at a place that is taken does
// not count.
func TestCollectives(t *testing.T) {
	in := Input{Kind: "collective", Workers: 2, World: 2}
	for _, place := range []float64{0, 1} {
		for size := 1024.0; size <= 1<<24; size *= 4 {
			in.Add(metrics.Figure{Name: measure.Time, Unit: "s", Value: (1 + place) * (1e-5 + size/1e9), At: map[string]any{measure.Bytes: size, measure.InPlace: place, measure.Op: "all_reduce"}})
		}
	}
	in.Add(metrics.Figure{Name: measure.Time, Unit: "s", Value: 99, At: map[string]any{measure.Bytes: 1024.0, measure.InPlace: 0.0, measure.Op: "all_reduce"}})
	in.Add(metrics.Figure{Name: "elsewhere", Unit: "s", Value: 1, At: map[string]any{"bytes": 1.0}})
	in.Add(metrics.Figure{Name: "whole", Unit: "s", Value: 7})
	if len(in.Figures) != 1 || in.Figures[0].Name != "whole" {
		t.Errorf("figures: %+v", in.Figures)
	}
	r := Summarize(in)
	fits := 0
	for p := range r.Places.All() {
		latency, fitted := p.Values[measure.Latency]
		if !fitted {
			continue
		}
		fits++
		slower := 1 + p.At[measure.InPlace].(float64)
		if math.Abs(latency-slower*1e-5) > 1e-8 || math.Abs(p.Values[measure.Bandwidth]*slower-1e9) > 1e6 || p.Values[measure.FitSizes] != 8 || math.Abs(p.Values[measure.FitLow]) > 1e-6 || math.Abs(p.Values[measure.FitHigh]) > 1e-6 {
			t.Errorf("at %v: %v", p.At, p.Values)
		}
	}
	if fits != 2 || !strings.Contains(strings.Join(r.Warnings, "\n"), "time is stated more than once at the same bytes, in_place, op, 1 times in all; the first is used") {
		t.Errorf("%d fits; %q", fits, r.Warnings)
	}
	few := Input{Kind: "collective", Workers: 2, World: 2}
	few.Add(metrics.Figure{Name: measure.Time, Unit: "s", Value: 1, At: map[string]any{measure.Bytes: 1024.0, measure.InPlace: 0.0, measure.Op: "all_reduce"}})
	if r := Summarize(few); !strings.Contains(strings.Join(r.Warnings, "\n"), "no latency and bandwidth for all_reduce") {
		t.Errorf("one size: %q", r.Warnings)
	}
}

func TestRanksInMessages(t *testing.T) {
	for want, ranks := range map[string][]int{"rank 3": {3}, "ranks 3, 5": {3, 5}, "ranks 1, 2, 3, 4, 5": {1, 2, 3, 4, 5}, "ranks 1, 2, 3, 4, 5, …": {1, 2, 3, 4, 5, 6}} {
		if got := firstFew(ranks); got != want {
			t.Errorf("%v: %q, want %q", ranks, got, want)
		}
	}
	one := []Place{{Host: "n", Environment: &metrics.Environment{CPUs: 2, Threads: 4}}}
	if got := crowding(one); !slices.Equal(got, []string{"1 rank on n computes with 4 threads on 2 CPUs"}) {
		t.Errorf("one rank: %q", got)
	}
	if got := crowding(append(one, one...)); !slices.Equal(got, []string{"2 ranks on n compute with 8 threads on 2 CPUs"}) {
		t.Errorf("two ranks: %q", got)
	}
	one[0].Environment.Threads = 2
	if got := crowding(one); got != nil {
		t.Errorf("as many threads as CPUs: %q", got)
	}
}

// The reason why a run has no MFU, and the note on an MFU.
func TestWordsOfUtilisation(t *testing.T) {
	asked := &MFU{Convention: "torchtitan", FLOPs: 1e9, Hardware: 2e9, Dtype: "bf16", PeakTFLOPS: 10}
	rate := metrics.Figure{Name: measure.TokensPerGPU, Unit: "tokens/s", Value: 4000} // 4 of 10 TFLOP/s
	run := func(m MFU, figures ...metrics.Figure) Outcome {
		return Summarize(Input{Kind: "train", Workers: 8, World: 8, Device: "gpu", MFU: &m, Figures: figures})
	}
	r := run(*asked, rate)
	if math.Abs(r.Values["mfu_torchtitan"]-0.4) > 1e-12 || math.Abs(r.Values["hfu_torchtitan"]-0.8) > 1e-12 || strings.Contains(strings.Join(r.Warnings, "\n"), "no mfu") {
		t.Errorf("%v, %q", r.Values, r.Warnings)
	}
	if r := run(*asked); r.Why["mfu_torchtitan"] != "there are no tokens/s of a worker" {
		t.Errorf("without tokens/s: %q", r.Why)
	}
	unsaid := *asked
	unsaid.Hardware = 0
	if r := run(unsaid, rate); !strings.Contains(r.Why["hfu_torchtitan"], "set workload.recompute") || r.Why["mfu_torchtitan"] != "" {
		t.Errorf("without recompute: %q", r.Why)
	}
	fast := rate
	fast.Value = 40000
	if r := run(*asked, fast); !strings.Contains(strings.Join(r.Warnings, "\n"), "no mfu_torchtitan: ") {
		t.Errorf("beyond the peak: %q", r.Warnings)
	}
	// The program's own MFU of 50 % is compared with 40 %, its FLOP/s with 4 TFLOP/s.
	stated := []metrics.Figure{rate, {Name: measure.ReportedMFU, Value: 0.5}, {Name: measure.ReportedFLOPS, Unit: "FLOP/s", Value: 5e12}}
	want := measure.RestatedMFU(measure.MFUStatement{MFU: 0.5, FLOPS: 5e12}, measure.MFUStatement{MFU: 0.4, FLOPS: 4e12}, "mfu_torchtitan", 4000)
	if r := run(*asked, stated...); want == "" || !slices.Contains(r.Warnings, want) {
		t.Errorf("%q; want %q", r.Warnings, want)
	}
	if r := run(*asked, rate, metrics.Figure{Name: "mfu_torchtitan", Value: 0.3}); r.Values["mfu_torchtitan"] != 0.3 {
		t.Errorf("stated under the same name: %v", r.Values)
	}
}

// Tokens per sample from the program and from the study, also with an unknown number of workers.
func TestEdgesOfTokens(t *testing.T) {
	run := func(world int, study float64, figures ...metrics.Figure) Outcome {
		return Summarize(Input{Kind: "train", World: world, SampleTokens: study, Device: "cpu", Figures: append(figures, metrics.Figure{Name: metrics.FigureThroughput, Unit: "samples/s", Value: 10})})
	}
	each := func(x float64) metrics.Figure {
		return metrics.Figure{Name: measure.TokensPerSample, Unit: "tokens", Value: x}
	}
	per := measure.TokensPerSecond + "_per_worker"
	for _, c := range []struct {
		name      string
		r         Outcome
		all, each float64 // 0: unknown
		warns     bool
	}{
		{"the program's", run(4, 0, each(8)), 80, 20, false},
		{"of one worker", run(1, 0, each(8)), 80, 80, false},
		{"of unknown workers", run(0, 0, each(8)), 80, 0, false},
		{"the study's", run(4, 8), 80, 20, false},
		{"one token", run(4, 1), 10, 2.5, false},
		{"the same", run(4, 8, each(8)), 80, 20, false},
		{"another", run(4, 1, each(8)), 80, 20, true},
		{"less than one", run(4, 0, each(0.5)), 0, 0, false},
		{"neither", run(4, 0), 0, 0, false},
	} {
		if c.r.Values[measure.TokensPerSecond] != c.all || c.r.Values[per] != c.each || strings.Contains(strings.Join(c.r.Warnings, "\n"), "tokens/s uses the program's number") != c.warns {
			t.Errorf("%s: %v, %q; want %g and %g", c.name, c.r.Values, c.r.Warnings, c.all, c.each)
		}
		known := slices.ContainsFunc(c.r.Reported, func(m measure.Measure) bool { return m.Name == per })
		if known != (c.all > 0) {
			t.Errorf("%s: reported %v", c.name, c.r.Reported)
		}
	}
}
