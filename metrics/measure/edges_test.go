package measure

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// Each case says which evaluation decides about a target, and when it is reached.
func TestTargetsAndEvaluations(t *testing.T) {
	accuracy := Accuracy(0.75)
	loss := Target{Of: OfLoss, Value: 2, Better: Lower}
	perplexity := Target{Of: OfPerplexity, Value: 20, Better: Lower}
	bleu := Target{Of: "bleu", Value: 25, Better: Higher}
	two := 2.0
	for _, c := range []struct {
		t    Target
		loss *float64
		want float64 // NaN: the evaluation lacks it
	}{
		{accuracy, nil, 0.5}, {accuracy, &two, 0.5}, {loss, nil, math.NaN()}, {loss, &two, 2}, {perplexity, &two, math.Exp(2)}, {perplexity, nil, math.NaN()}, {bleu, &two, math.NaN()},
	} {
		x, ok := c.t.Judges(0.5, c.loss)
		if !ok {
			x = math.NaN()
		}
		if x != c.want && !(math.IsNaN(x) && math.IsNaN(c.want)) {
			t.Errorf("%s: %g, want %g", c.t, x, c.want)
		}
		if suffice := c.t.JudgesEvaluations(); suffice != (c.t.Of != "bleu") {
			t.Errorf("%s: evaluations suffice: %v", c.t, suffice)
		}
	}
	for _, c := range []struct {
		t    Target
		x    float64
		want bool
	}{{accuracy, 0.75, true}, {accuracy, 0.74, false}, {accuracy, 0.76, true}, {loss, 2, true}, {loss, 2.1, false}, {loss, 1.9, true}} {
		if c.t.Reached(c.x) != c.want {
			t.Errorf("%g reaches %s: %v", c.x, c.t, !c.want)
		}
	}
	for _, c := range []struct {
		of    string
		value float64
		valid bool
	}{{OfPerplexity, 1, true}, {OfPerplexity, 0.9, false}, {OfAccuracy, 1, true}, {OfAccuracy, 1.1, false}, {OfAccuracy, 0, false}, {OfLoss, 0, true}, {OfLoss, math.Inf(1), false}} {
		if _, err := newTarget(c.of, c.value, Neither); (err == nil) != c.valid {
			t.Errorf("%s %g: %v", c.of, c.value, err)
		}
	}
}

// Names of times to targets, and the order of targets.
func TestTimesToTargets(t *testing.T) {
	targets := []Target{{"bleu", 25, Higher}, {"bleu", 26, Higher}, {"wer", 8, Lower}, {"wer", 7, Lower}, {OfLoss, 2, Lower}, {OfPerplexity, 20, Lower}, Accuracy(0.5), Accuracy(0.75)}
	names := []string{"to_bleu_above_25", "to_bleu_above_26", "to_wer_below_8", "to_wer_below_7", "to_loss_2", "to_perplexity_20", "to_0.5", "to_0.75"}
	texts := []string{"bleu 25", "bleu 26", "wer 8", "wer 7", "loss 2", "perplexity 20", "accuracy 0.5", "accuracy 0.75"}
	values := map[string]float64{"throughput": 1, "to_target": 3, "to_x": 4, "to_0": 5}
	for i, target := range targets {
		m := target.Time()
		if m.Name != names[i] || m.Unit != "s" || m.Better != Lower || !m.Missable || !m.Scales {
			t.Errorf("%v: %+v", target, m)
		}
		if got, ok := TargetOf(m.Name); !ok || got != target {
			t.Errorf("%s: %v, %v", m.Name, got, ok)
		}
		if m.GoalText() != texts[i] || "to_"+m.Goal() != names[i] {
			t.Errorf("%s: %q, %q", m.Name, m.GoalText(), m.Goal())
		}
		short := strings.TrimPrefix(texts[i], "accuracy ")
		if target.Short() != short || m.Title != "time to "+short {
			t.Errorf("%v: %q, %q", target, target.Short(), m.Title)
		}
		start := FromStart(m)
		if start.Name != "start_"+names[i] || start.Title != m.Title+" from the start" || start.Unit != "s" {
			t.Errorf("%+v", start)
		}
		values[m.Name] = float64(i)
	}
	ordered := []Target{targets[0], targets[1], targets[4], targets[5], targets[2], targets[3], Accuracy(0), targets[6], targets[7]}
	if got := Targets(values); !slices.Equal(got, ordered) {
		t.Errorf("order %v, want %v", got, ordered)
	}
	program, err := Find(ToTarget)
	if err != nil {
		t.Fatal(err)
	}
	if program.GoalText() != "the program's target" {
		t.Error(program.GoalText())
	}
	half, most := Accuracy(0.5).Time(), Accuracy(0.75).Time()
	for _, c := range []struct {
		a, b Measure
		want int
	}{{half, most, -1}, {most, half, 1}, {half, half, 0}, {program, half, -1}, {half, program, 1}, {program, program, 0}} {
		if got := ByGoal(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a.Name, c.b.Name, got, c.want)
		}
	}
	for _, name := range []string{"to_", "to_loss", "to_loss_x", "to_accuracy_2", "to_bleu_25", "0.75", "to__above_2"} {
		if got, ok := TargetOf(name); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Rates of samples have the unit of their kind of sample.
func TestUnitsOfSamples(t *testing.T) {
	rate, err := Find(Throughput)
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := Find(TrainSeconds)
	if err != nil {
		t.Fatal(err)
	}
	for sample, want := range map[string]string{Image: "images/s", Token: "tokens/s", Sequence: "sequences/s", "": "samples/s", "cat": "samples/s"} {
		if got := rate.Counting(sample); got.Unit != want || !got.RatesSamples() || RateUnit(sample) != want {
			t.Errorf("%q: %s, %v", sample, got.Unit, got.RatesSamples())
		}
		if got := seconds.Counting(sample); got.Unit != "s" || got.RatesSamples() {
			t.Errorf("%q: a time in %s", sample, got.Unit)
		}
	}
	if m := Reported("own", "samples/s", Higher); !m.RatesSamples() {
		t.Error("a rate of the user's is none")
	}
	if m := Reported("own", "images/s", Higher); m.RatesSamples() {
		t.Error("a rate of another unit is one of samples")
	}
	for _, c := range []struct {
		unit   string
		better Direction
		want   bool
	}{{"s", Neither, true}, {"tokens/s", Neither, true}, {"", Higher, true}, {"", Lower, false}, {"", Neither, false}, {"B", Higher, false}, {"W", Lower, false}} {
		m := Reported("x", c.unit, c.better)
		if m.Scales != c.want || m.Title != "x" || (m.Show == Seconds) != (c.unit == "s") {
			t.Errorf("%q, %q: %+v", c.unit, c.better, m)
		}
	}
	for _, name := range []string{ReportedMFU, "mfu_palm", "hfu_palm"} {
		if m := Reported(name, "", Neither); m.Show != Percent {
			t.Errorf("%s is not a percentage", name)
		}
	}
	for _, name := range []string{"mfu", "mfu_x", "x_palm"} {
		if m := Reported(name, "", Neither); m.Show == Percent {
			t.Errorf("%s is a percentage", name)
		}
	}
	for better, want := range map[Direction][2]float64{Higher: {-1, 4}, Lower: {1, 0.25}, Neither: {0, 4}} {
		m := Measure{Better: better}
		if float64(m.Worse()) != want[0] || m.Gain(8, 2) != want[1] {
			t.Errorf("%q: %d, %g", better, m.Worse(), m.Gain(8, 2))
		}
	}
}

// A measure accepts values only at its own coordinates, one of which must be its axis.
func TestHolds(t *testing.T) {
	p95, err := Find(LatencyP95)
	if err != nil {
		t.Fatal(err)
	}
	axis := Measure{Name: "x", At: ofLoad, Axis: Rate}
	for _, c := range []struct {
		m    Measure
		at   map[string]any
		want bool
	}{
		{p95, map[string]any{Threads: 4.0}, true}, {p95, map[string]any{Threads: 4.0, Batch: 8.0}, true}, {p95, map[string]any{Threads: 4.0, "colour": 1}, false}, {p95, nil, false},
		{axis, map[string]any{Rate: 4.0}, true}, {axis, map[string]any{Batch: 4.0}, false}, {axis, map[string]any{Rate: 4.0, Batch: 4.0}, true}, {Measure{Name: "y"}, map[string]any{Rate: 4.0}, false},
	} {
		if got := c.m.AcceptsPlace(c.at); got != c.want {
			t.Errorf("%s at %v: %v", c.m.Name, c.at, got)
		}
	}
	placed := Placed()
	if len(placed) == 0 || slices.ContainsFunc(placed, func(m Measure) bool { return m.At == "" }) || !slices.ContainsFunc(placed, func(m Measure) bool { return m.Name == LatencyP95 }) {
		t.Errorf("placed: %v", placed)
	}
	if !IsCoordinate(Threads) || IsCoordinate("colour") || !DescribesLoad(Rate) || DescribesLoad(Replica) {
		t.Error("coordinates")
	}
	for name, want := range map[string]bool{LatencyP95: true, RequestsPerSecond: true, RateWithinLimit: true, Throughput: false, TrainSeconds: false} {
		m, err := Find(name)
		if err != nil || m.Refusable() != want {
			t.Errorf("%s may be refused: %v, %v", name, m.Refusable(), err)
		}
	}
	for _, name := range []string{CostPerMillion, CostPerMillionSamples} {
		if m := (Measure{Name: name}); !m.Refusable() {
			t.Errorf("%s may not be refused", name)
		}
	}
	for name, want := range map[string]bool{Probe + LatencyP95: true, Probe + RequestsPerSecond: true, Probe + Errors: true, Probe + LatencyMean: false, Probe + SamplesPerSecond: false} {
		m, err := Find(name)
		if (err == nil) != want || want && (m.At != ofProbe || !strings.HasSuffix(m.Title, " of a probe")) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// Limits in text form, with values at the bounds.
func TestEdgesOfLimits(t *testing.T) {
	for text, want := range map[string]string{"p95=50ms": "p95=50ms", "errors=0 p95=1s": "p95=1s errors=0", "ttft_p95=1ns": "ttft_p95=1ns"} {
		if l, err := ParseLimit(text); err != nil || l.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, l, err, want)
		}
	}
	for text, want := range map[string]string{"p95=0s": "is not a time; want one like p95=50ms", "p95=-1s": "is not a time", "p95=5": "is not a time", "errors=1": "is not a share of errors", "errors=-0.1": "is not a share of errors",
		"latency_p95=1s": "limits nothing that is measured; valid: ", "p42=1s": "limits nothing", "mean=1s": "limits nothing"} {
		if _, err := ParseLimit(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	words := Percentiles()
	for _, word := range words {
		if m, ok := Percentile(word); !ok || m.Name != word && m.Name != "latency_"+word {
			t.Errorf("%s: %s, %v", word, m.Name, ok)
		}
	}
	for _, word := range []string{"p50", "p95", "p99", "ttft_p95", "tpot_p95", "itl_p95"} {
		if !slices.Contains(words, word) {
			t.Errorf("%s is not among %v", word, words)
		}
	}
}

// A model's sizes at their limits.
func TestEdgesOfSizes(t *testing.T) {
	sound := Architecture{Layers: 4, Hidden: 64, Heads: 8, KVHeads: 2, FFN: 256, Vocabulary: 1000, Sequence: 128}
	for _, c := range []struct {
		name   string
		change func(a *Architecture)
		want   string
	}{
		{"as it is", func(*Architecture) {}, ""},
		{"one of each", func(a *Architecture) {
			*a = Architecture{Layers: 1, Hidden: 1, Heads: 1, FFN: 1, Vocabulary: 1, Sequence: 1}
		}, ""},
		{"no layers", func(a *Architecture) { a.Layers = 0 }, "layers = 0; want a whole number from 1 to 2097152"},
		{"no hidden", func(a *Architecture) { a.Hidden = 0 }, "hidden = 0"},
		{"no heads", func(a *Architecture) { a.Heads = 0 }, "heads = 0"},
		{"no ffn", func(a *Architecture) { a.FFN = 0 }, "ffn = 0"},
		{"no vocabulary", func(a *Architecture) { a.Vocabulary = 0 }, "vocabulary = 0"},
		{"the largest vocabulary", func(a *Architecture) { a.Vocabulary = largest }, ""},
		{"a larger one", func(a *Architecture) { a.Vocabulary = largest + 1 }, "vocabulary = 2097153"},
		{"negative experts", func(a *Architecture) { a.Experts = -1 }, "experts = -1; want a whole number from 0"},
		{"no sequence", func(a *Architecture) { a.Sequence = 0 }, "sequence = 0; want the tokens of a sample"},
		{"the longest sequence", func(a *Architecture) { a.Sequence = 1 << 27 }, ""},
		{"a longer one", func(a *Architecture) { a.Sequence = 1<<27 + 1 }, "sequence = 134217729"},
		{"heads that do not divide", func(a *Architecture) { a.Heads = 7 }, "hidden = 64 is no multiple of heads = 7; set head_size"},
		{"with their size", func(a *Architecture) { a.Heads, a.HeadSize = 7, 10 }, ""},
		{"as many kv_heads", func(a *Architecture) { a.KVHeads = 8 }, ""},
		{"more", func(a *Architecture) { a.KVHeads = 9 }, "kv_heads = 9 is more than heads = 8"},
		{"the largest window", func(a *Architecture) { a.Window = 1 << 27 }, ""},
		{"a larger one", func(a *Architecture) { a.Window = 1<<27 + 1 }, "window = 134217729"},
		{"a negative one", func(a *Architecture) { a.Window = -1 }, "window = -1"},
		{"global after all layers", func(a *Architecture) { a.Window, a.GlobalEvery = 8, 4 }, ""},
		{"after more", func(a *Architecture) { a.Window, a.GlobalEvery = 8, 5 }, "global_every = 5 of layers = 4"},
		{"after fewer than none", func(a *Architecture) { a.Window, a.GlobalEvery = 8, -1 }, "global_every = -1 of layers = 4"},
		{"global without a window", func(a *Architecture) { a.GlobalEvery = 1 }, "set window"},
		{"all experts", func(a *Architecture) { a.Experts, a.Active = 8, 8 }, ""},
		{"one expert", func(a *Architecture) { a.Experts, a.Active = 1, 1 }, ""},
		{"more active ones", func(a *Architecture) { a.Experts, a.Active = 8, 9 }, "active_experts = 9 of experts = 8"},
		{"no active one", func(a *Architecture) { a.Experts = 8 }, "active_experts = 0 of experts = 8"},
		{"experts with biases", func(a *Architecture) { a.Experts, a.Active, a.Biases = 8, 2, true }, "biases of experts are not counted"},
		{"active ones of none", func(a *Architecture) { a.Active = 1 }, "set experts"},
		{"a shared part of none", func(a *Architecture) { a.SharedFFN = 1 }, "set experts"},
	} {
		a := sound
		c.change(&a)
		if err := a.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	// 2 of 8 experts and a shared part: 3 matrices of 64 × (2·256 + 100), or of 8·256 + 100.
	a := sound
	a.Experts, a.Active, a.SharedFFN, a.Gated = 8, 2, 100, true
	if got, want := a.feedForward(false), 3*64*(2*256+100.0); got != want {
		t.Errorf("visited: %g, want %g", got, want)
	}
	if got, want := a.feedForward(true), 3*64*(8*256+100.0); got != want {
		t.Errorf("all: %g, want %g", got, want)
	}
	// 12 · 8 heads of 8 · (global layers · 128 + others · 32 tokens).
	for _, c := range []struct {
		window, every int
		want          float64
	}{{0, 0, 4 * 128}, {32, 0, 4 * 32}, {32, 2, 2*128 + 2*32}, {32, 4, 128 + 3*32}, {128, 2, 4 * 128}, {1, 0, 4}, {32, 1, 4 * 128}} {
		a := sound
		a.Window, a.GlobalEvery = c.window, c.every
		if got := a.square(); got != 12*64*c.want {
			t.Errorf("window %d, global every %d: %g, want %g", c.window, c.every, got, 12*64*c.want)
		}
	}
}
