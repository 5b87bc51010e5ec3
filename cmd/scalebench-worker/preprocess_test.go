package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/native/train"
	"github.com/scalebench/scalebench/launcher/native/train/cpu"
	"github.com/scalebench/scalebench/launcher/preprocess"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
)

// A study accepts exactly the formats that the pipeline has.
func TestPreprocessFormats(t *testing.T) {
	want := slices.Sorted(slices.Values(study.PreprocessFormats))
	if got := preprocess.Formats(); !slices.Equal(got, want) {
		t.Errorf("the pipeline has %v, a study %v", got, want)
	}
	if got := preprocess.Classified(); !slices.Equal(got, study.PreprocessClassified) {
		t.Errorf("the pipeline has classes of %v, a study knows of %v", got, study.PreprocessClassified)
	}
	if got := train.Models(); !slices.Equal(got, study.PreprocessModels) {
		t.Errorf("the trainer has %v, a study %v", got, study.PreprocessModels)
	}
}

// Training on samples while they are prepared gives, bit for bit, the same model as training on
// the same batches afterwards.
func TestTrainsOnPreparedSamples(t *testing.T) {
	const size = 4
	dir := t.TempDir()
	if err := preprocess.GenerateClasses("jpeg", dir, 14, 1); err != nil {
		t.Fatal(err)
	}
	files, err := preprocess.Find(t.Context(), "jpeg", preprocess.Folder(dir))
	if err != nil {
		t.Fatal(err)
	}
	classes, err := preprocess.FindClasses("jpeg", files)
	if err != nil {
		t.Fatal(err)
	}
	learner := func() *train.Learner {
		group, err := collective.Join(t.Context(), world.World{Size: 1, LocalSize: 1, Nodes: 1}, "secret", collective.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := train.NewLearner(t.Context(), cpu.Options{Model: "cnn", Classes: 10, Height: 16, Width: 16, Channels: 3, Batch: size, Seed: 3, Threads: 1, Momentum: 0.9}, 0.05, group)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close(); group.Close() })
		return l
	}
	o := preprocess.Options{Format: "jpeg", Store: preprocess.Folder(""), Threads: 1, Resize: 20, Crop: 16, Classes: classes,
		Decoder: func() (preprocess.Decoder, error) { return preprocess.GoJPEG{}, nil }}
	beside := learner()
	training, ctx := preprocess.StartTraining(t.Context(), beside, 3*16*16, size)
	o.Take = training.Take
	if _, err := preprocess.Pass(ctx, files, o); err != nil {
		t.Fatal(err)
	}
	learnt, err := training.End()
	if err != nil || learnt.Steps != 3 || learnt.Samples != 12 { // the last 2 of 14 do not fill a batch
		t.Fatalf("%+v, %v", learnt, err)
	}
	after, loss := learner(), 0.0
	var images []float32
	var shown []byte
	o.Take = func(_ context.Context, s preprocess.Sample) error {
		for i := range 16 * 16 {
			images = append(images, s.Values[i], s.Values[256+i], s.Values[512+i])
		}
		shown = append(shown, s.Class)
		return nil
	}
	if _, err := preprocess.Pass(t.Context(), files, o); err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		part, err := after.Step(t.Context(), images[k*size*768:(k+1)*size*768], shown[k*size:(k+1)*size])
		if err != nil {
			t.Fatal(err)
		}
		loss += part
	}
	got, err := beside.ParameterSHA256()
	want, e := after.ParameterSHA256()
	if got != want || loss != learnt.Loss || errors.Join(err, e) != nil {
		t.Errorf("parameters %s, loss %v; fed afterwards: %s, %v; %v", got, learnt.Loss, want, loss, errors.Join(err, e))
	}
}

// The bound is the lowest ceiling, if the throughput is close to it. Otherwise no bound is named, and the
// verdict says how threads spent their time.
func TestVerdict(t *testing.T) {
	list := []ceiling{{"cores", 200, "5.00 ms of CPU time per sample on 1 CPU"}, {"reading", 150, "reading alone"}, {"writing", 1000, "writing alone"}}
	busy := func(cpu, delay, rest float64, fewer float64) *tally {
		t := &tally{delay: delay, fewer: fewer}
		t.stageSeconds[preprocess.Decode], t.stageCPU[preprocess.Decode] = cpu+delay, cpu
		t.stageSeconds[preprocess.Read] = rest
		return t
	}
	for name, c := range map[string]struct {
		rate float64
		sum  *tally
		want []string
		not  string
	}{
		"reading":       {140, busy(1, 0, 9, 0), []string{"bound by reading: 140 samples/s are 93.3 % of the lowest ceiling, 150 samples/s"}, "no bound"},
		"neighbours":    {70, busy(5, 5, 0, 0), []string{"no bound is active: 70.0 samples/s are 46.7 %", "had no CPU for 50.0 % of their time"}, "waited for storage"},
		"in turn":       {80, busy(5, 0, 5, 0), []string{"no bound is active", "waited for storage, or for the consumer, for 50.0 %"}, "no CPU"},
		"too few files": {80, busy(10, 0, 0, 1), []string{"no bound is active", "fewer files than threads"}, "why is not known"},
		"unknown":       {80, busy(10, 0, 0, 0), []string{"why is not known"}, "storage"},
	} {
		got := verdict(c.rate, list, c.sum)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q lacks %q", name, got, want)
			}
		}
		if strings.Contains(got, c.not) {
			t.Errorf("%s: %q has %q", name, got, c.not)
		}
	}
}

// A ceiling far below the throughput is an error in the ceiling; one slightly below it is noise.
func TestBelow(t *testing.T) {
	kept, left := below(600, []ceiling{{"cores", 650, ""}, {"reading", 100, ""}, {"writing", 522, ""}})
	if len(kept) != 2 || kept[0].bound != "cores" || kept[1].bound != "writing" || !strings.Contains(left, "ceiling of reading, 100 samples/s, was measured too low") {
		t.Errorf("%v, %q", kept, left)
	}
}
