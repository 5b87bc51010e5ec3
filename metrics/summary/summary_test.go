package summary

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

var loss = 0.4 // of twoRanks' last evaluation

// twoRanks returns a run of two ranks with 1 slow first step and 20 steady ones.
//
//	step 0:      rank 0 took 10 s, rank 1 took 10 s
//	steps 1-20:  rank 0 took 0.2 s, rank 1 0.1 s (even steps: the other way round
//	             for steps 1-5 only)
//	every step:  16 samples a rank, 32 in all
func twoRanks() Input {
	in := Input{
		Kind: "train", Workers: 2, World: 2, Restarts: []int{0}, Targets: []measure.Target{measure.Accuracy(0.5), measure.Accuracy(0.8), measure.Accuracy(0.95)},
		Ranks: []Rank{
			{Rank: 0, World: 2, TrainTime: known(3), StepsTime: known(20), Epochs: 2},
			{Rank: 1, World: 2, TrainTime: known(3.5), StepsTime: known(20)},
		},
		Evaluations: []Evaluation{
			{Time: 14, Epoch: 1, Step: 11, Accuracy: 0.5},
			{Time: 23, Epoch: 2, Step: 21, Accuracy: 0.85, Loss: &loss},
		},
	}
	for i := range 21 {
		s := Step{Index: i, Duration: 0.2, Mean: 0.15, Samples: 32, Slowest: 0,
			Compute: known(0.12), Communication: known(0.03)}
		if i == 0 {
			s.Duration, s.Mean = 10, 10
		}
		if i >= 1 && i <= 5 {
			s.Slowest = 1
		}
		in.Steps = append(in.Steps, s)
	}
	return in
}

func TestSummarize(t *testing.T) {
	got := Summarize(twoRanks())
	want := Outcome{
		World: 2, Steps: 21, WarmupSteps: 1, SteadySteps: 20,
		Samples: 672, // 21 · 32
		Epochs:  2,
		Values: map[string]float64{
			// 20 · 32 samples in 20 · 0.2 s = 640/4
			"throughput": 160,
			// from 3 s to the end of the second evaluation at 23 s: 672/20
			"train_seconds": 20, "end_to_end": 33.6,
			"init_seconds": 3.5, // of rank 1, the later
			"step_p50":     0.2, "step_p95": 0.2, "step_p99": 0.2,
			"skew":           0.25, // 1 - 0.15/0.2
			"compute":        0.8,  // 0.12/0.15
			"communication":  0.2,  // 0.03/0.15
			"final_accuracy": 0.85,
			"to_0.5":         11, // 14 - 3, and 0.5 ≥ 0.5 counts
			"to_0.8":         20, // 23 - 3
			"to_0.95":        math.Inf(1),
		},
		Why:     map[string]string{},
		Slowest: []int{15, 5},
		Evaluations: []Accuracy{
			{11, 1, 11, 352, 0.5, nil}, // 11 · 32
			{20, 2, 21, 672, 0.85, &loss},
		},
		NoiseScaleWhy: "the program did not record the norms of its gradients",
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestPercentile(t *testing.T) {
	// Nearest rank of 1…10: ⌈0.5·10⌉ = 5th, ⌈0.95·10⌉ = 10th, ⌈0.25·10⌉ = 3rd.
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for p, want := range map[float64]float64{0.5: 5, 0.95: 10, 0.25: 3, 0.001: 1, 1: 10} {
		if got := percentile(x, p); got != want {
			t.Errorf("percentile %g of 1…10 = %g, want %g", p, got, want)
		}
	}
}

func TestNotMeasuredIsNil(t *testing.T) {
	in := twoRanks()
	in.Steps[7].Compute = nil // one step in which one rank did not measure it
	in.Steps = in.Steps[:15]
	got := Summarize(in)
	if got.Known("compute") != nil || got.Known("data_wait") != nil {
		t.Errorf("shares of unmeasured components: %v", got.Values)
	}
	if got.Known("communication") == nil {
		t.Error("the measured component has no share")
	}

	in.Steps = in.Steps[:5]
	got = Summarize(in)
	if got.Known("throughput") != nil || !strings.HasPrefix(got.Why["throughput"], "no steady state") {
		t.Errorf("5 steps: %v, why %q", got.Values, got.Why)
	}
	if got.Known("step_p50") != nil || got.Known("skew") != nil || got.Slowest != nil || got.SteadySteps != 0 {
		t.Error("figures of a steady state that there is not")
	}
	if got.Known("end_to_end") == nil {
		t.Error("end-to-end throughput needs no steady state")
	}

	none := Summarize(Input{Kind: "train", Workers: 4, Targets: []measure.Target{measure.Accuracy(0.9)}})
	// Without an evaluation, the target is not a miss.
	want := Outcome{Values: map[string]float64{},
		Why: map[string]string{"to_0.9": "no evaluation was recorded", "throughput": "no steady state: 0 steps were reported by every rank, at least 10 are needed"}}
	if diff := cmp.Diff(want, none); diff != "" {
		t.Error("of a run without records:", diff)
	}
}

// A run that is not a training lacks the measures of trainings, without a reason.
func TestOtherKind(t *testing.T) {
	r := Summarize(Input{Kind: "collective", Workers: 4})
	if len(r.Values) > 0 || len(r.Why) > 0 {
		t.Errorf("%v, why %v", r.Values, r.Why)
	}
}

func TestNoTrainingClock(t *testing.T) {
	in := twoRanks()
	in.Ranks[0].TrainTime = nil
	got := Summarize(in)
	for _, name := range []string{"to_0.5", "to_0.8", "to_0.95", "end_to_end"} {
		if v := got.Known(name); v != nil {
			t.Errorf("%s = %g without a clock", name, *v)
		}
	}
	if got.Known("final_accuracy") == nil {
		t.Errorf("%v", got.Values)
	}
	if !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, "time since training began") }) {
		t.Errorf("warnings %q do not say so", got.Warnings)
	}
}

func TestWarnings(t *testing.T) {
	one := func(cpus int, set string) *metrics.Environment {
		return &metrics.Environment{Hostname: "n1", CPUs: cpus, CPUSet: set}
	}
	gpu := &metrics.Environment{Hostname: "n1", GPUs: []metrics.GPU{{UUID: "GPU-7"}}}
	computing := func(threads int) *metrics.Environment {
		e := one(4, "0-3")
		e.Threads = threads
		return e
	}
	on := func(list ...*metrics.Environment) (places []Place) {
		for _, e := range list {
			places = append(places, Place{Environment: e})
		}
		return places
	}
	tests := []struct {
		name   string
		change func(*Input)
		want   string
	}{
		{"world", func(in *Input) { in.Workers = 4 }, "the ranks report a world size of 2, the plan asks for 4 workers"},
		{"restarts", func(in *Input) { in.Restarts = []int{0, 1}; in.Restart = 1 }, "started 2 times; the results are those of restart 1"},
		{"missing", func(in *Input) { in.World, in.Workers = 3, 3; in.Ranks[0].World, in.Ranks[1].World = 3, 3 }, "1 of 3 ranks recorded nothing (rank 2)"},
		{"missing behind several", func(in *Input) {
			in.World, in.Workers = 8, 8
			in.Ranks[0].World, in.Ranks[1].World = 8, 8
			in.Ranks[0].Ranks, in.Ranks[1].Rank, in.Ranks[1].Ranks = 2, 4, 2
		}, "4 of 8 ranks recorded nothing (ranks 2, 3, 6, 7)"},
		{"twice", func(in *Input) { in.Ranks[0].Ranks = 2 }, "two files report for one rank"},
		{"note", func(in *Input) { in.Notes = []string{"rank 0's rate times 2"} }, "rank 0's rate times 2"},
		{"worlds differ", func(in *Input) { in.Ranks[1].World = 1 }, "rank 1 reports a world size of 1, others 2"},
		{"gap", func(in *Input) { in.Steps = slices.Delete(in.Steps, 3, 5) }, "2 of the first 21 steps are missing"},
		{"bad lines", func(in *Input) { in.BadLines = 3 }, "3 event lines could not be read"},
		{"initial parameters", func(in *Input) {
			in.Ranks[0].Train = &metrics.Train{ParameterSHA256: "a"}
			in.Ranks[1].Train = &metrics.Train{ParameterSHA256: "b"}
		}, "the ranks began with 2 different sets of parameters"},
		{"final parameters", func(in *Input) {
			in.Ranks[0].Stop = &metrics.Stop{ParameterSHA256: "a"}
			in.Ranks[1].Stop = &metrics.Stop{ParameterSHA256: "b"}
		}, "the ranks ended with 2 different sets of parameters"},
		{"CPUs", func(in *Input) { in.Places = on(one(1, "0"), one(1, "0")) }, "2 ranks on n1 compute with 2 threads on 1 CPU"},
		{"threads", func(in *Input) { in.Places = on(computing(3), computing(3)) }, "2 ranks on n1 compute with 6 threads on 4 CPUs"},
		{"a process of several ranks", func(in *Input) {
			in.Places = []Place{{Ranks: 2, Environment: one(1, "0")}}
		}, "2 ranks on n1 compute with 2 threads on 1 CPU"},
		{"GPU", func(in *Input) { in.Places = on(gpu, gpu) }, "2 ranks on n1 share GPU GPU-7"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := twoRanks()
			if got := Summarize(in).Warnings; got != nil {
				t.Fatalf("a sound run has warnings %q", got)
			}
			test.change(&in)
			got := Summarize(in).Warnings
			if len(got) != 1 || !strings.Contains(got[0], test.want) {
				t.Errorf("warnings %q, want one with %q", got, test.want)
			}
		})
	}

	in := twoRanks()
	in.Places = on(one(1, "0"), one(1, "1"))
	if got := Summarize(in).Warnings; got != nil {
		t.Errorf("ranks with a CPU each: %q", got)
	}
	in.Ranks, in.World = in.Ranks[:1], 1<<40
	if got := Summarize(in).Warnings; len(got) == 0 {
		t.Error("an absurd world passes")
	}
}

func TestChoose(t *testing.T) {
	tests := []struct {
		list []Incarnation
		want int
		ok   bool
	}{
		{nil, 0, false},
		{[]Incarnation{{0, false}}, 0, true},
		{[]Incarnation{{0, true}, {1, false}}, 0, true},
		{[]Incarnation{{0, false}, {1, true}, {2, false}}, 1, true},
		{[]Incarnation{{0, true}, {1, true}}, 1, true},
		{[]Incarnation{{2, false}, {1, false}}, 2, true},
	}
	for _, test := range tests {
		if got, ok := Choose(test.list); got != test.want || ok != test.ok {
			t.Errorf("Choose(%v) = %d, %t; want %d, %t", test.list, got, ok, test.want, test.ok)
		}
	}
}

func known(v float64) *float64 { return &v }
