package summary

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// repeat returns n times v.
func repeat(n int, v float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = v
	}
	return list
}

func join(parts ...[]float64) []float64 {
	var all []float64
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestWarmup(t *testing.T) {
	ramp := make([]float64, 100)
	for i := range ramp {
		ramp[i] = float64(100 - i)
	}
	hiccup := repeat(200, 1)
	hiccup[140] = 1000
	tests := []struct {
		name      string
		durations []float64
		want      int
		why       string
		warning   string
	}{
		{"even", repeat(100, 0.05), 0, "", ""},
		{"one slow first step", join([]float64{30}, repeat(99, 0.05)), 1, "", ""},
		{"two slow first steps", join([]float64{30, 9}, repeat(98, 0.05)), 2, "", ""},
		// A step of 3 s is not more than three times as long as the others, nor is one of 2 s. With both, 12 steps take 15 s.
		{"a ramp of five in fifteen", join([]float64{6, 5, 4, 3, 2}, repeat(10, 1)), 5, "", "the first 5 of 15 steps are omitted as warm-up: steps 3 to 4 take 150 % longer than later ones; if that is not warm-up, the throughput is up to 25 % too high"},
		{"a ramp of five in sixteen that leaves too few", join([]float64{6, 5, 4, 3, 2, 2, 2}, repeat(9, 1)), 0, "7 of 16 steps are warm-up; at least 10 steady steps are needed: make the run longer", ""},
		// With them, 100 steps take 120.
		{"a slower start", join(repeat(20, 2), repeat(80, 1)), 20, "", "the first 20 of 100 steps are omitted as warm-up: steps 0 to 19 take 100 % longer than later ones; if that is not warm-up, the throughput is up to 20 % too high"},
		// Within the first 20th, very slow steps are warm-up. 11 more steps' time in 190 is 6 %.
		{"ten very slow steps of 200", join(repeat(10, 12), repeat(190, 1)), 10, "", ""},
		{"eleven", join(repeat(11, 12), repeat(189, 1)), 11, "", "the first 11 of 200 steps are omitted as warm-up: steps 10 to 10 take 1100 % longer than later ones; if that is not warm-up, the throughput is up to 6 % too high"},
		{"after a slow first step, slower from 40 on", join([]float64{30}, repeat(40, 1), repeat(60, 2)), 1, "", "steps 40 to 52 take 100 % longer than steps 1 to 13: the throughput covers both"},
		{"faster, then slower", join(repeat(26, 2), repeat(26, 1.5), repeat(48, 2)), 0, "", "steps 0 to 12 take 33 % longer than steps 26 to 38: the throughput covers both"},
		{"a slower start that is soon over", join(repeat(5, 2), repeat(95, 1)), 5, "", ""},
		{"two steps of sixteen at another speed", join(repeat(2, 1.7), repeat(14, 1)), 2, "", "the first 2 of 16 steps are omitted as warm-up: steps 0 to 1 take 70 % longer than later ones; if that is not warm-up, the throughput is up to 9 % too high"},
		{"two steps of sixteen that are five times as long", join(repeat(2, 5), repeat(14, 1)), 2, "", ""},
		// Parts have ⌈100/8⌉ = 13 steps: all steps of the first part are fast, and all from step 26 on slow.
		{"a faster start", join(repeat(20, 1), repeat(80, 2)), 0, "", "steps 26 to 38 take 100 % longer than steps 0 to 12: the throughput covers both"},
		{"slower from 45 % on", join(repeat(90, 1), repeat(110, 1.3)), 0, "", "steps 100 to 124 take 30 % longer than steps 0 to 24: the throughput covers both"},
		{"one late hiccup is not warm-up", hiccup, 0, "", ""},
		// Of steps 39 to 51, 12 of 13 are slow.
		{"slower in the middle", join(repeat(40, 1), repeat(30, 2), repeat(30, 1)), 0, "", "steps 39 to 51 take 100 % longer than steps 0 to 12: the throughput covers both"},
		{"faster behind the middle", join(repeat(60, 2), repeat(40, 1)), 0, "half of the 100 steps are warm-up", ""},
		// 4 % is normal on a shared machine; nothing to drop.
		{"a small drift behind the middle", join(repeat(60, 1.04), repeat(40, 1)), 0, "", ""},
		// The difference is too small to leave steps out. All steps take 1.023 s on average.
		{"a first half that is slower", join(repeat(50, 1.046), repeat(50, 1)), 0, "", "steps 0 to 49 take 5 % longer than those after them: if the run was still getting faster, its throughput is at least 2 % too low; make it longer"},
		{"slower by nearly what is left out", join(repeat(50, 1.049), repeat(50, 1)), 0, "", "steps 0 to 49 take 5 % longer than those after them: if the run was still getting faster, its throughput is at least 2 % too low; make it longer"},
		{"a first half that is faster", join(repeat(50, 1), repeat(50, 1.046)), 0, "", ""},
		{"ever faster", ramp, 0, "half of the 100 steps are warm-up", ""},
		{"nothing", nil, 0, "0 steps", ""},
		{"too few", repeat(9, 1), 0, "9 steps were reported by every rank, at least 10 are needed", ""},
		{"just enough", repeat(10, 1), 0, "", ""},
		{"too few behind the warm-up", join([]float64{9}, repeat(9, 1)), 0, "at least 10 steady steps are needed", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := warmupEnd(test.durations)
			switch {
			case test.why == "" && err != nil:
				t.Fatalf("no throughput: %v", err)
			case test.why != "" && (err == nil || !strings.Contains(err.Error(), test.why)):
				t.Fatalf("error = %v, want one with %q", err, test.why)
			case got.Warmup != test.want:
				t.Errorf("warm-up = %d steps, want %d", got.Warmup, test.want)
			case strings.Join(got.Warnings, "\n") != test.warning:
				t.Errorf("warns %q, want %q", got.Warnings, test.warning)
			}
		})
	}
}

// If the first step of each epoch takes 8 times as long, the long-run rate includes it once
// per epoch: 50 samples in the time of 49 + 8 steps. The run's very first step is warm-up.
func TestLongRun(t *testing.T) {
	run := func(steps int, ends ...int) Input {
		in := Input{Kind: "train", Ranks: []Rank{{}}, EpochEnds: ends}
		for i := range steps {
			s := Step{Index: i, Duration: 1, Mean: 1, Samples: 1}
			if i%50 == 0 {
				s.Duration = 8
			}
			in.Steps = append(in.Steps, s)
		}
		return in
	}
	for _, test := range []struct {
		name string
		in   Input
		want float64
	}{
		{"five epochs", run(250, 50, 100, 150, 200, 250), 50. / 57},
		{"the last one is cut short", run(230, 50, 100, 150, 200), 50. / 57},
		{"and says so", run(230, 50, 100, 150, 200, 230), 50. / 57},
		// Its first step is warm-up, and each place occurs once.
		{"one epoch", run(50, 50), 1},
		{"no epochs recorded: 4 of 249 steps are long", run(250), 249. / 277},
		{"epochs of different lengths", run(250, 50, 90, 250), 249. / 277},
		{"a damaged record", run(250, 1<<40), 249. / 277},
	} {
		if got := Summarize(test.in).Values["throughput"]; math.Abs(got-test.want) > 1e-12 {
			t.Errorf("%s: %g samples/s, want %g", test.name, got, test.want)
		}
	}
}

// One step of 12 in 29 others of 1 is 12/41 of the time. A slow step in each epoch is not
// rare, and a step that hardly affects the rate causes no warning.
func TestRareSteps(t *testing.T) {
	run := func(steps int, ends []int, slow map[int]float64) Input {
		in := Input{Kind: "train", Ranks: []Rank{{}}, EpochEnds: ends}
		for i := range steps {
			in.Steps = append(in.Steps, Step{Index: i, Duration: max(1, slow[i]), Mean: 1, Samples: 1})
		}
		return in
	}
	const one = "step 14 takes 12 times as long as most, 29 % of the time of all steps: one such step more or less changes the throughput by about as much; make the run longer"
	for _, test := range []struct {
		name string
		in   Input
		want string
	}{
		{"one step", run(30, nil, map[int]float64{14: 12}), one},
		{"in epochs of different lengths", run(30, []int{10, 30}, map[int]float64{14: 12}), one},
		{"in one of three epochs", run(30, []int{10, 20, 30}, map[int]float64{14: 12}), one},
		{"at the same place of each epoch", run(30, []int{10, 20, 30}, map[int]float64{4: 12, 14: 12, 24: 12}), ""},
		{"as an epoch begins", run(30, []int{15, 30}, map[int]float64{0: 12, 15: 12}), ""},
		// 19 of 318.
		{"one of three that all begin slowly", run(300, []int{100, 200, 300}, map[int]float64{0: 3, 100: 3, 200: 22}),
			"step 200 takes 22 times as long as most, 7 % of the time of all steps: one such step more or less changes the throughput by about as much; make the run longer"},
		{"at a place that only this epoch has", run(25, []int{20}, map[int]float64{10: 12}), "step 10 takes 12 times as long as most, 33 % of the time of all steps: one such step more or less changes the throughput by about as much; make the run longer"},
		{"one in a long run", run(300, nil, map[int]float64{140: 12}), ""},
	} {
		if got := strings.Join(Summarize(test.in).Warnings, "\n"); got != test.want {
			t.Errorf("%s: warns %q, want %q", test.name, got, test.want)
		}
	}
}

// Quartiles of 1 and 2 s put Tukey's outer fence at 5 s. A step that takes exactly as long is not an outlier,
// and one beyond it counts if it costs over 5 % of the time: 3 of 28 s.
func TestRareStepAtFence(t *testing.T) {
	for longest, want := range map[float64]int{5: 0, 5.001: 1} {
		steps := []Step{{Index: 0, Duration: longest}}
		for i := 1; i < 16; i++ {
			steps = append(steps, Step{Index: i, Duration: float64(1 + i%2)}) // seven of 1 s, eight of 2 s
		}
		var c Cut
		if c.warnOfRareStep(steps, 0); len(c.Warnings) != want {
			t.Errorf("a step of %g s: warns %q, want %d warnings", longest, c.Warnings, want)
		}
	}
}

// A run with only noise must rarely lose its steady state by chance (1 in 200), and never more
// than a third of its steps.
func TestWarmupOfNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs, n = 400, 1000
	lost, dropped := 0, 0
	for range runs {
		x := make([]float64, n)
		for i := range x {
			x[i] = 0.05 * (1 + 0.02*rng.NormFloat64())
			if rng.IntN(200) == 0 {
				x[i] *= 5 // an occasional hiccup
			}
		}
		w, err := warmupEnd(x)
		if err != nil {
			lost++
		}
		dropped += w.Warmup
	}
	if lost > runs/200 {
		t.Errorf("%d of %d even runs were said to have no steady state", lost, runs)
	}
	if mean := float64(dropped) / runs; mean > n/3 {
		t.Errorf("on average %.0f of %d even steps were dropped", mean, n)
	}
	t.Logf("lost %d of %d; dropped %.1f of %d on average", lost, runs, float64(dropped)/runs, n)
}

func FuzzWarmup(f *testing.F) {
	f.Add([]byte{200, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Fuzz(func(t *testing.T, data []byte) {
		x := make([]float64, len(data))
		for i, b := range data {
			x[i] = float64(b)
		}
		w, err := warmupEnd(x)
		if err == nil && (w.Warmup < 0 || 2*w.Warmup > len(x) || len(x)-w.Warmup < minSteady) {
			t.Errorf("warm-up of %d in %d steps", w.Warmup, len(x))
		}
	})
}
