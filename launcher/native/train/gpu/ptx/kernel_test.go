package ptx_test

import (
	"os"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/gpucheck/suite"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// The fake of CUDA's driver runs the PTX that is checked in, translated to C.
func TestMain(m *testing.M) {
	os.Exit(gputest.During(ptx.Source(), func(path string) int {
		os.Setenv(cuda.Variable, path)
		return m.Run()
	}))
}

// The checks that run on a GPU pass on the fake.
func TestChecks(t *testing.T) {
	for _, c := range suite.KernelChecks() {
		t.Run(strings.TrimPrefix(c.Name, "kernels/"), func(t *testing.T) { c.Run(t) })
	}
}

// What cannot be right is refused before anything is launched.
func TestRefusals(t *testing.T) {
	driver, err := cuda.Open(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	device, err := driver.Bind(0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Release()
	b, err := ptx.Load(device)
	if err != nil {
		t.Fatal(err)
	}
	const p = cuda.Pointer(1 << 20)
	images := ptx.Shape{Images: 2, Lines: 5, Points: 5, Channels: 3}
	for _, test := range []struct {
		err  error
		want string
	}{
		{b.SGD(0, ptx.SGD{Weights: p, Velocity: p, Count: 4}), "kernel sgd: address 3 of 3 is null"},
		{b.SGD(0, ptx.SGD{Weights: p, Velocity: p, Gradients: p}), "want 1 or more"},
		{b.FromBfloat16(0, ptx.FromBfloat16{From: p, To: p, Count: -1}), "want 1 or more"},
		{b.Bias(0, ptx.Bias{From: p, Bias: p, To: p, Rows: 1 << 16, Columns: 1 << 15}), "take fewer images at a time"},
		{b.Im2col(0, ptx.Im2col{From: p, To: p, In: images, Out: images, Stride: 3}), "a stride of 3; want 1 or 2"},
		{b.Im2col(0, ptx.Im2col{From: p, To: p, In: images, Out: images, Stride: 2}), "Lines:3 Points:3"},
		{b.Im2col(0, ptx.Im2col{From: p, To: p + 4, In: images.Convolved(8, 1), Out: images, Stride: 1}), "address 2 of 2 is 0x100004; want a multiple of 16"},
		{b.Im2col(0, ptx.Im2col{From: p, To: p, In: ptx.Shape{}, Out: ptx.Shape{Lines: 1, Points: 1}, Stride: 2}), "want 1 or more"},
		{b.Normalise(0, ptx.Normalise{From: p, Coefficients: p, Shortcut: p, To: p, Shape: images, ShortcutShape: images, Stride: 2}), "cannot be a shortcut"},
		{b.Normalise(0, ptx.Normalise{From: p, Coefficients: p, Shortcut: p, To: p, Shape: images, ShortcutShape: images}), "with stride 0"},
		{b.Rectify(0, ptx.Rectify{From: p, Outcome: p, User: p, To: p, Shape: images, UserShape: images.Convolved(4, 1), Stride: 1}), "cannot be a shortcut"},
		{b.Moments(0, ptx.Moments{From: p, To: p, Rows: 4, Channels: 4}), "4 rows in chunks of 0"},
		{b.SumRows(0, ptx.SumRows{From: p, To: p, Rows: 4, Columns: 4, Chunk: 2}), "in place"},
		{b.NormStatistics(0, ptx.NormStatistics{Sums: p, Scale: p, Shift: p, RunningMean: p, RunningVariance: p, Inverse: p, Coefficients: p, Rows: 1, Channels: 1}), "statistics of 0 values"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%v, want %q in it", test.err, test.want)
		}
	}
}

// No thread of a sum over rows adds up more than the chunk.
func TestChunk(t *testing.T) {
	for _, rows := range []int32{1, 2, 8, 9, 27, 28, 1000, 131072, ptx.MostElements} {
		chunk := ptx.Chunk(rows)
		left := ptx.Chunks(ptx.Chunks(rows, chunk), chunk)
		if chunk < 1 || left < 1 || left > chunk || chunk > 1 && int64(chunk-1)*int64(chunk-1)*int64(chunk-1) >= int64(rows) {
			t.Errorf("%d rows: chunks of %d, and %d rows are left", rows, chunk, left)
		}
	}
}
