package store

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

func stepsEvent(time float64, s metrics.Steps) metrics.Event {
	return metrics.Event{Time: time, Steps: &s}
}

// fill returns n times v.
func fill(n int, v int64) []int64 { return slices.Repeat([]int64{v}, n) }

// twoRanks returns the event files of a run with two ranks, in ticks of 1/4 s (exact
// in binary): 12 steps of 16 samples per rank.
//
//	rank 0: 4 ticks a step, of which communication 1; the first step 40 ticks
//	rank 1: 2 ticks a step, communication not measured; steps 10, 11: 6 ticks
//	train clock: rank 0 at 1.5 s, rank 1 at 2 s
//	evaluations: 0.5 at 13.5 s after 6 steps, 0.9 at 21.5 s after 12
func twoRanks() [2]string {
	zero := slices.Concat([]int64{40}, fill(11, 4))
	one := slices.Concat([]int64{40}, fill(9, 2), []int64{6, 6})
	loss := 0.25
	return [2]string{
		lines(start(0, 2, 0),
			metrics.Event{Time: 0.5, Environment: &metrics.Environment{Hostname: "n0", CPUs: 4, CPUSet: "0-3"}},
			metrics.Event{Time: 1.5, Train: &metrics.Train{GlobalBatch: 32, ParameterSHA256: "aa"}},
			stepsEvent(12, metrics.Steps{First: 0, Tick: 0.25, Duration: zero[:6], Samples: fill(6, 16), Communication: fill(6, 1)}),
			metrics.Event{Time: 12.5, Epoch: &metrics.Epoch{Epoch: 1, Step: 6, Samples: 96, Seconds: 15, Loss: &loss, LearningRate: 0.1}},
			metrics.Event{Time: 13.5, Evaluation: &metrics.Evaluation{Epoch: 1, Step: 6, Accuracy: 0.5, Samples: 100, Seconds: 1}},
			stepsEvent(20, metrics.Steps{First: 6, Tick: 0.25, Duration: zero[6:], Samples: fill(6, 16), Communication: fill(6, 1)}),
			metrics.Event{Time: 20.5, Epoch: &metrics.Epoch{Epoch: 2, Step: 12, Samples: 96, Seconds: 6, LearningRate: 0.1}},
			metrics.Event{Time: 21.5, Evaluation: &metrics.Evaluation{Epoch: 2, Step: 12, Accuracy: 0.9, Samples: 100, Seconds: 1}},
			metrics.Event{Time: 21.75, Stop: &metrics.Stop{Status: metrics.StopDone, Steps: 12, Epochs: 2, ParameterSHA256: "bb"}}),
		lines(start(1, 2, 0),
			metrics.Event{Time: 0.5, Environment: &metrics.Environment{Hostname: "n0", CPUs: 4, CPUSet: "0-3"}},
			metrics.Event{Time: 2, Train: &metrics.Train{GlobalBatch: 32, ParameterSHA256: "aa"}},
			stepsEvent(20, metrics.Steps{First: 0, Tick: 0.25, Duration: one, Samples: fill(12, 16)}),
			metrics.Event{Time: 21.75, Stop: &metrics.Stop{Status: metrics.StopDone, Steps: 12, Epochs: 2, ParameterSHA256: "bb"}}),
	}
}

func writeRanks(t testing.TB, dir string, texts []string) []metrics.EventFile {
	t.Helper()
	var files []metrics.EventFile
	for rank, text := range texts {
		files = append(files, rankFile(t, dir, rank, 0, text))
	}
	return files
}

func TestIngestGolden(t *testing.T) {
	s := openStore(t)
	texts := twoRanks()
	files := writeRanks(t, t.TempDir(), texts[:])
	report := ingestRun(t, s, aRun(), files...)
	want := Report{Run: "s/p2-r1-a1", Changed: true, Files: 2, Events: 15, Steps: 24}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}

	// Maxima over ranks: step 0: 40 ticks = 10 s, both; steps 1-9: rank 0's 4
	// ticks = 1 s; 10, 11: rank 1's 6 ticks = 1.5 s. Means: 10; (4+2)/2 = 3
	// ticks = 0.75 s; (4+6)/2 = 5 ticks = 1.25 s. Samples 2·16.
	if diff := cmp.Diff([]string{
		"0|10|10|0|32|<nil>", "1|1|0.75|0|32|<nil>", "9|1|0.75|0|32|<nil>", "10|1.5|1.25|1|32|<nil>", "11|1.5|1.25|1|32|<nil>",
	}, table(t, s, "SELECT step, duration, mean, slowest, samples, communication FROM steps WHERE step IN (0, 1, 9, 10, 11) ORDER BY step")); diff != "" {
		t.Error("steps:", diff)
	}

	// Warm-up: step 0 (10 s against a far fence of at most 1.5 s). Steady:
	// steps 1-11 = 9·1 + 2·1.5 = 12 s. In the long run, an epoch of 6 steps takes 1 s
	// for its first one (step 6), 1 s for the next 3 each, and (1 + 1.5)/2 for
	// the last 2: 6.5 s for 6·32 = 192 samples.
	// Skew: means 9·0.75 + 2·1.25 = 9.25; 1 - 9.25/12 = 0.22917.
	// End to end: 12·32 = 384 samples in 21.5 - 1.5 = 20 s: 19.2/s.
	// Percentiles of nine 1 and two 1.5: 6th 1; ⌈0.95·11⌉ = 11th 1.5.
	d, err := s.Show(t.Context(), "s/p2-r1-a1")
	if err != nil {
		t.Fatal(err)
	}
	r := d.Result
	near := func(name string, got *float64, want float64) {
		t.Helper()
		if got == nil || !(*got-want < 1e-9 && want-*got < 1e-9) {
			t.Errorf("%s = %v, want %g", name, deref(got), want)
		}
	}
	near("throughput", r.Known("throughput"), 192/6.5)
	near("end to end", r.Known("end_to_end"), 19.2)
	near("skew", r.Known("skew"), 1-9.25/12)
	near("p50", r.Known("step_p50"), 1)
	near("p95", r.Known("step_p95"), 1.5)
	near("init", r.Known("init_seconds"), 2)
	near("final accuracy", r.Known("final_accuracy"), 0.9)
	near("time to 0.5", r.Known("to_0.5"), 12) // 13.5 - 1.5
	if !math.IsInf(r.Values["to_0.95"], 1) {
		t.Errorf("%v: 0.95 was never reached", r.Values)
	}
	if r.Known("communication") != nil {
		t.Errorf("share of communication = %v, though rank 1 did not measure it", *r.Known("communication"))
	}
	if diff := cmp.Diff([]int{9, 2}, r.Slowest); diff != "" {
		t.Error("slowest:", diff)
	}
	if r.Steps != 12 || r.WarmupSteps != 1 || r.Samples != 384 || r.Epochs != 2 || r.World != 2 || r.Warnings != nil {
		t.Errorf("steps %d, warm-up %d, samples %d, epochs %d, world %d, warnings %q", r.Steps, r.WarmupSteps, r.Samples, r.Epochs, r.World, r.Warnings)
	}
	if diff := cmp.Diff(aRun(), d.Run); diff != "" {
		t.Error("run:", diff)
	}
	if len(d.Environments) != 1 || !slices.Equal(d.Environments[0].Ranks, []int{0, 1}) {
		t.Errorf("environments %+v: both ranks have the same", d.Environments)
	}

	if diff := cmp.Diff([]string{"12|1|6|192|0.5", "20|2|12|384|0.9"}, table(t, s,
		"SELECT seconds, epoch, step, trained, accuracy FROM evaluations WHERE result ORDER BY seconds")); diff != "" {
		t.Error("evaluations:", diff)
	}
	if diff := cmp.Diff([]string{"0|10|0.25|16", "1|1|0.25|16"}, table(t, s,
		"SELECT step, duration, communication, samples FROM rank_step WHERE run = 's/p2-r1-a1' AND rank = 0 AND step < 2")); diff != "" {
		t.Error("rank 0:", diff)
	}
	if diff := cmp.Diff([]string{"9|0.5|<nil>|<nil>", "10|1.5|<nil>|<nil>"}, table(t, s,
		"SELECT step, duration, communication, data_wait FROM rank_step WHERE run = 's/p2-r1-a1' AND rank = 1 AND step IN (9, 10)")); diff != "" {
		t.Error("rank 1:", diff)
	}
}

func deref(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func TestIngestTwiceChangesNothing(t *testing.T) {
	s := openStore(t)
	texts := twoRanks()
	files := writeRanks(t, t.TempDir(), texts[:])
	ingestRun(t, s, aRun(), files...)
	before := dump(t, s)
	if diff := cmp.Diff(Report{Run: "s/p2-r1-a1"}, ingestRun(t, s, aRun(), files...)); diff != "" {
		t.Error("second report:", diff)
	}
	if after := dump(t, s); after != before {
		t.Error(cmp.Diff(before, after))
	}
	// After the event files were deleted, the stored results remain.
	for _, f := range files {
		if err := os.Remove(f.Path); err != nil {
			t.Fatal(err)
		}
	}
	ingestRun(t, s, aRun(), files...)
	ingestRun(t, s, aRun())
	if after := dump(t, s); after != before {
		t.Error("after the files were deleted:", cmp.Diff(before, after))
	}
	// The run's own row without files.
	run := aRun()
	run.Status, run.Job = metrics.Failed, &metrics.Job{ID: "7", State: "FAILED", Nodes: []string{"n1"}, SubmitUnix: 5}
	if r := ingestRun(t, s, run); !r.Changed {
		t.Error("a new status is not a change")
	}
	d, err := s.Show(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(run, d.Run); diff != "" {
		t.Error(diff)
	}
	if d.Result == nil || d.Result.Steps != 12 {
		t.Error("the result is gone")
	}
}

func TestBadLines(t *testing.T) {
	s := openStore(t)
	texts := twoRanks()
	broken := strings.Split(strings.TrimSuffix(texts[1], "\n"), "\n")
	broken = slices.Insert(broken, 3, "{", `{"t":1,"steps":{"first":0,"tick":1e-6,"duration":[1,2],"samples":[1]}}`, "\x00\x01\xff")
	broken = append(broken, lines(start(1, 2, 0))+`{"t":22,"steps":{"first":4,"tick":0.25,"duration":[2],"samples":[16]}}`,
		`{"t":22,"steps":{"first":99,"tick":0.25,"duration":[9223372036854775807],"samples":[16]}}`)
	files := writeRanks(t, t.TempDir(), []string{texts[0], strings.Join(broken, "\n") + "\n"})
	r := ingestRun(t, s, aRun(), files...)
	var at []int
	for _, b := range r.BadLines {
		if b.File != files[1].Path {
			t.Errorf("bad line in %s", b.File)
		}
		at = append(at, b.Line)
	}
	// Lines 4-6 were inserted; 9 is a second start, 10 repeats step 4, 11 has a
	// duration that is out of range.
	if want := []int{4, 5, 6, 9, 10, 11}; !slices.Equal(at, want) {
		t.Fatalf("bad lines %v, want %v: %v", at, want, r.BadLines)
	}
	if got := value(t, s, "SELECT count(*) FROM bad_lines"); got != "6" {
		t.Errorf("%s bad lines stored", got)
	}
	if got := value(t, s, "SELECT steps || ' ' || warnings FROM runs"); got != `12 ["6 event lines could not be read; see the bad lines of the run"]` {
		t.Errorf("steps and warnings: %s", got)
	}
	for i, words := range map[int]string{3: "a second start event", 4: "step 4 was reported before", 5: "the line is damaged"} {
		if !strings.Contains(r.BadLines[i].Error(), words) {
			t.Errorf("%v does not say %q", r.BadLines[i], words)
		}
	}
}

func TestFileNamedForAnotherRank(t *testing.T) {
	s := openStore(t)
	f := rankFile(t, t.TempDir(), 1, 0, lines(start(0, 2, 0)))
	r := ingestRun(t, s, aRun(), f)
	if len(r.BadLines) != 1 || !strings.Contains(r.BadLines[0].Error(), "named for rank 1") {
		t.Errorf("bad lines %v", r.BadLines)
	}
	if _, err := s.Ingest(t.Context(), aRun(), []metrics.EventFile{f, f}); err == nil || !strings.Contains(err.Error(), "one writer per file") {
		t.Errorf("one file twice: %v", err)
	}
}

func TestIncarnations(t *testing.T) {
	s := openStore(t)
	dir := t.TempDir()
	run := aRun()
	run.Workers = 1
	one := func(restart int, duration int64, stop string) metrics.EventFile {
		events := []metrics.Event{start(0, 1, restart), {Time: 1, Train: &metrics.Train{}},
			stepsEvent(30, metrics.Steps{Tick: 1, Duration: fill(20, duration), Samples: fill(20, 8)})}
		if stop != "" {
			events = append(events, metrics.Event{Time: 31, Stop: &metrics.Stop{Status: stop}})
		}
		return rankFile(t, dir, 0, restart, lines(events...))
	}
	// 8 samples in 2 s, in 1 s, in 4 s.
	files := []metrics.EventFile{one(0, 2, ""), one(1, 1, metrics.StopDone), one(2, 4, "")}
	for n, want := range []string{"0|4", "1|8", "1|8"} {
		ingestRun(t, s, run, files[:n+1]...)
		if got := value(t, s, "SELECT restart, throughput FROM runs"); got != want {
			t.Errorf("after %d incarnations: restart and throughput %s, want %s", n+1, got, want)
		}
	}
	if got := value(t, s, "SELECT warnings FROM runs"); got != `["the run was started 3 times; the results are those of restart 1"]` {
		t.Errorf("warnings %s", got)
	}
	if got := value(t, s, "SELECT count(*) FROM rank_step"); got != "60" {
		t.Errorf("%s steps kept of 60", got)
	}
}

func TestMissingRankAndWorld(t *testing.T) {
	s := openStore(t)
	texts := twoRanks()
	files := writeRanks(t, t.TempDir(), texts[:])
	ingestRun(t, s, aRun(), files[0])
	if got := value(t, s, "SELECT steps, throughput FROM runs"); got != "0|<nil>" {
		t.Errorf("with one rank of two: steps, throughput = %s", got)
	}
	if got := value(t, s, "SELECT warnings FROM runs"); !strings.Contains(got, "1 of 2 ranks recorded nothing (rank 1)") {
		t.Errorf("warnings %s", got)
	}
	ingestRun(t, s, aRun(), files...)
	if got := value(t, s, "SELECT steps, warnings FROM runs"); got != "12|[]" {
		t.Errorf("with both: %s", got)
	}
	// A third rank appears and states that there are three.
	third := rankFile(t, filepath.Dir(files[0].Path), 2, 0, lines(start(2, 3, 0)))
	ingestRun(t, s, aRun(), third)
	if got := value(t, s, "SELECT steps FROM runs"); got != "0" {
		t.Errorf("%s steps are complete without the third rank", got)
	}
}

func TestUnreadableFileIsAWarning(t *testing.T) {
	s := openStore(t)
	texts := twoRanks()
	files := writeRanks(t, t.TempDir(), texts[:])
	files[1].Path += ".missing"
	r := ingestRun(t, s, aRun(), files...)
	if len(r.Warnings) != 1 || r.Files != 1 {
		t.Errorf("report %+v", r)
	}
}

func TestIngestRefusesBadRuns(t *testing.T) {
	s := openStore(t)
	for words, change := range map[string]func(*metrics.Run){
		"lacks ID, study": func(r *metrics.Run) { r.ID, r.Study = "", "" },
		"workers 0":       func(r *metrics.Run) { r.Workers = 0 },
		`status "good"`:   func(r *metrics.Run) { r.Status = "good" },
		"parameter x":     func(r *metrics.Run) { r.Parameters = map[string]any{"x": struct{}{}} },
	} {
		run := aRun()
		change(&run)
		if _, err := s.Ingest(t.Context(), run, nil); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("error %v, want one with %q", err, words)
		}
	}
}

func TestRecompute(t *testing.T) {
	s := openStore(t)
	texts := twoRanks()
	ingestRun(t, s, aRun(), writeRanks(t, t.TempDir(), texts[:])...)
	before := dump(t, s)
	if _, err := s.write.Exec("UPDATE result SET algorithm = 0, steps = 2; UPDATE value SET value = 1"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Recompute(t.Context()); n != 1 || err != nil {
		t.Fatalf("recomputed %d, error %v", n, err)
	}
	if after := dump(t, s); after != before {
		t.Error(firstDifference(before, after))
	}
}

// The gradient norms of two ranks give the noise scale of each epoch, in the view and in
// Show. Collecting again changes nothing.
//
// Batches of 16 and 32, own norms 5 and 7 on average 6, averaged 4: tr(Σ) =
// 2/(1/16 − 1/32) = 64, |G|² = (32·4 − 16·6)/16 = 2: 32 samples in epoch 1. In
// epoch 2 |G|² = (32·2 − 16·6)/16 = −2: no figure.
func TestIngestNoiseScale(t *testing.T) {
	s := openStore(t)
	texts := twoRanks()
	for rank, own := range []float64{5, 7} {
		for epoch, averaged := range []float64{4, 2} {
			texts[rank] += lines(metrics.Event{Time: 22, Gradients: &metrics.Gradients{Epoch: epoch + 1, Step: 6 * (epoch + 1), Samples: 16, GlobalSamples: 32,
				Steps: []int{3, 3}, Own: []float64{own, own}, Averaged: []float64{averaged, averaged}}})
		}
	}
	files := writeRanks(t, t.TempDir(), texts[:])
	ingestRun(t, s, aRun(), files...)
	if diff := cmp.Diff([]string{
		"s/p2-r1-a1|2|1|6|6|16|32|32|<nil>|<nil>|2|64|an interval needs 6 blocks of steps; there are 2",
		"s/p2-r1-a1|2|2|12|6|16|32|<nil>|<nil>|<nil>|-2|128|over 6 steps the gradient cannot be distinguished from its noise",
	}, table(t, s, "SELECT run, workers, epoch, step, steps, batch, global_batch, noise_scale, low, high, gradient_squared, noise, why FROM noise_scales ORDER BY epoch")); diff != "" {
		t.Error(diff)
	}
	d, err := s.Show(t.Context(), "s/p2-r1-a1")
	if err != nil {
		t.Fatal(err)
	}
	if n := d.Result.NoiseScales; len(n) != 2 || n[0].Samples == nil || *n[0].Samples != 32 || n[0].Noise != 64 || n[1].Samples != nil || n[1].Step != 12 || d.Result.NoiseScaleWhy != "" {
		t.Errorf("%+v, %q", n, d.Result.NoiseScaleWhy)
	}
	if r := ingestRun(t, s, aRun(), files...); r.Changed {
		t.Errorf("collected again: %+v", r)
	}
	// If a rank's norms are missing, the figure is missing, with a reason.
	texts = twoRanks()
	ingestRun(t, s, aRun(), writeRanks(t, t.TempDir(), texts[:])...)
	if got := value(t, s, "SELECT (SELECT count(*) FROM noise_scales), (SELECT noise_scale_why FROM result)"); got != "0|the program did not record the norms of its gradients" {
		t.Errorf("after the files were replaced by ones without norms: %s", got)
	}
}
