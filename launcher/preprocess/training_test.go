package preprocess

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// learner takes the given time for each step, and keeps its inputs.
type learner struct {
	each    time.Duration
	fails   error
	most    int // number of steps for which the other ranks have data; 0: any
	batches [][]float32
	classes []byte
}

func (l *learner) Agree(_ context.Context, more bool) (bool, error) {
	return more && (l.most == 0 || len(l.batches) < l.most), nil
}

func (l *learner) Step(_ context.Context, images []float32, classes []byte) (float64, error) {
	time.Sleep(l.each)
	l.batches = append(l.batches, slices.Clone(images))
	l.classes = append(l.classes, classes...)
	return 2 * float64(len(classes)), l.fails
}

// feed passes n samples of one pixel to the trainer, one per interval each. Sample i has red i,
// green i + 0.25, blue i + 0.5, and class i.
func feed(t *testing.T, l *learner, size, n int, each time.Duration) (Learnt, error) {
	t.Helper()
	training, ctx := StartTraining(t.Context(), l, 3, size)
	var failed error
	for i := range n {
		time.Sleep(each)
		x := float32(i)
		if failed = training.Take(ctx, Sample{Values: []float32{x, x + 0.25, x + 0.5}, Class: byte(i)}); failed != nil {
			break
		}
	}
	learnt, err := training.End()
	if !errors.Is(failed, err) {
		t.Errorf("threads were told %v, the caller %v", failed, err)
	}
	return learnt, err
}

// A trainer that takes 1 s per batch of 4 waits for samples of 10 ms each only at the start: 40 ms of 20.04 s.
// One that takes 1 ms waits 40 ms before each of its 20 steps, 1 ms of which overlaps with the previous step,
// during which threads continued: 0.781 s of 0.801 s.
func TestTrainingWaits(t *testing.T) {
	for _, c := range []struct {
		step         time.Duration
		waited, took float64
	}{{time.Second, 0.04, 20.04}, {time.Millisecond, 0.781, 0.801}} {
		synctest.Test(t, func(t *testing.T) {
			got, err := feed(t, &learner{each: c.step}, 4, 80, 10*time.Millisecond)
			if err != nil || got.Steps != 20 || got.Samples != 80 || got.Loss != 160 {
				t.Errorf("%+v, %v", got, err)
			}
			if math.Abs(got.Waited-c.waited) > 1e-9 || math.Abs(got.Took-c.took) > 1e-9 {
				t.Errorf("waited %v of %v s, want %v of %v", got.Waited, got.Took, c.waited, c.took)
			}
		})
	}
}

// All samples come in batches, with the channels of a pixel together; an incomplete batch is
// dropped.
func TestTrainingBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &learner{}
		got, err := feed(t, l, 2, 7, time.Millisecond)
		want := [][]float32{{0, 0.25, 0.5, 1, 1.25, 1.5}, {2, 2.25, 2.5, 3, 3.25, 3.5}, {4, 4.25, 4.5, 5, 5.25, 5.5}}
		if err != nil || got.Steps != 3 || fmt.Sprint(l.batches) != fmt.Sprint(want) || string(l.classes) != "\x00\x01\x02\x03\x04\x05" {
			t.Errorf("%+v, %v: %v of %v", got, err, l.batches, l.classes)
		}
		if fmt.Sprint(got.Images) != fmt.Sprint(want[2]) || string(got.Classes) != "\x04\x05" {
			t.Errorf("the last batch is %v of %v", got.Images, got.Classes)
		}
		var out [12]float32
		interleave([]float32{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, out[:])
		if out != [12]float32{0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23} {
			t.Errorf("%v", out)
		}
	})
}

// If other ranks have no batch left, the rest is not trained on, and no thread waits forever.
// A step that fails ends the pass with its error.
func TestTrainingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got, err := feed(t, &learner{most: 3}, 2, 100, time.Millisecond); err != nil || got.Steps != 3 || got.Samples != 6 {
			t.Errorf("%+v, %v", got, err)
		}
		broken := errors.New("diverged")
		if got, err := feed(t, &learner{fails: broken}, 2, 100, time.Millisecond); !errors.Is(err, broken) || got.Steps != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// The class of an image is the index of its folder; generated images have ten classes.
func TestClasses(t *testing.T) {
	dir := t.TempDir()
	if err := GenerateClasses("jpeg", dir, 11, 1); err != nil {
		t.Fatal(err)
	}
	files, err := Find(t.Context(), "jpeg", Folder(dir))
	if err != nil || len(files) != 11 {
		t.Fatal(files, err)
	}
	c, err := FindClasses("jpeg", files)
	if err != nil || len(c.Names) != 10 || c.Names[3] != "class3" {
		t.Fatalf("%+v, %v", c, err)
	}
	seen := map[byte]int{}
	o := options()
	o.Classes, o.Threads = c, 1
	o.Take = func(_ context.Context, s Sample) error {
		seen[s.Class]++
		return nil
	}
	if _, err := Pass(t.Context(), files, o); err != nil || len(seen) != 10 || seen[0] != 2 {
		t.Errorf("%v, %v", seen, err)
	}
	for name, files := range map[string][]File{"one": {{Path: "/a/x.jpg"}, {Path: "s3://b/a/y.jpg"}}, "none": nil} {
		if _, err := FindClasses("jpeg", files); err == nil || !strings.Contains(err.Error(), "the name of its folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := FindClasses("csv", nil); err == nil || !strings.Contains(err.Error(), "valid: cifar10, jpeg") {
		t.Error(err)
	}
}

// Classes differ in their mean colour by more than their noise: of blue and of red,
// class 0 has more than class 5 and class 2 more than class 7.
func TestTints(t *testing.T) {
	dir := t.TempDir()
	if err := GenerateClasses("cifar10", dir, 80, 1); err != nil {
		t.Fatal(err)
	}
	files, err := Find(t.Context(), "cifar10", Folder(dir))
	if err != nil {
		t.Fatal(err)
	}
	c, err := FindClasses("cifar10", files)
	if err != nil {
		t.Fatal(err)
	}
	var sums [10][3]float64
	o := Options{Format: "cifar10", Store: Folder(""), Threads: 1, Classes: c, Take: func(_ context.Context, s Sample) error {
		for i, x := range s.Values {
			sums[s.Class][i/cifarPixels] += float64(x) / cifarPixels / 8
		}
		return nil
	}}
	if _, err := Pass(t.Context(), files, o); err != nil {
		t.Fatal(err)
	}
	if blue := sums[0][2] - sums[5][2]; !(blue > 0.5) {
		t.Errorf("class 0 is %v bluer than class 5", blue)
	}
	if red := sums[2][0] - sums[7][0]; !(red > 0.5) {
		t.Errorf("class 2 is %v redder than class 7", red)
	}
}
