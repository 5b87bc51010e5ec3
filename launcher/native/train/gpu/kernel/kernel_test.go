package kernel_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/double"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/kernel"
)

// The double of CUDA's driver runs the PTX that is checked in, translated to C; on a
// GPU, the same tests give it to the driver.
func TestMain(m *testing.M) {
	if double.OnGPU() {
		os.Exit(m.Run())
	}
	os.Exit(double.During(kernel.Source(), func(path string) int {
		os.Setenv(cuda.Variable, path)
		return m.Run()
	}))
}

// A bench is a device with the kernels loaded, and what lies on it.
type bench struct {
	*testing.T
	*kernel.Set
	device *cuda.Device
	stream cuda.Stream
	random *rand.Rand
}

func newBench(t *testing.T) *bench {
	t.Helper()
	driver, err := cuda.Open(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, random: rand.New(rand.NewPCG(1, 2))}
	if b.device, err = driver.Bind(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.device.Release)
	if b.stream, err = b.device.NewStream(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.did(b.device.DestroyStream(b.stream)) })
	if b.Set, err = kernel.Load(b.device); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) did(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// draw makes numbers of a normal distribution.
func (b *bench) draw(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(float32(b.random.NormFloat64()))
	}
	return list
}

func bytes[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*int(unsafe.Sizeof(list[0])))
}

// fence is how many bytes stand on both sides of what lies on the device. Read as a
// float32 each is a signalling NaN, which no arithmetic leaves as it is, and as a
// float64 it is about 10³⁰⁷.
const fence = 256

// room is memory on the device for n elements, filled as the fence is.
func room[T any](b *bench, n int) cuda.Pointer {
	b.Helper()
	var one T
	size := n*int(unsafe.Sizeof(one)) + 2*fence
	filled := slices.Repeat([]byte{0xff, 0xff, 0xbf, 0xff}, (size+3)/4)[:size]
	p, err := b.device.Alloc(int64(size))
	b.did(err)
	b.did(b.device.Upload(p, filled, b.stream))
	b.Cleanup(func() {
		now := get[byte](b, p, size)
		if !slices.Equal(now[:fence], filled[:fence]) || !slices.Equal(now[size-fence:], filled[size-fence:]) {
			b.Errorf("something was written beside an array of %d elements", n)
		}
		b.did(b.device.Free(p))
	})
	return p + fence
}

// put copies numbers to the device.
func put[T any](b *bench, list []T) cuda.Pointer {
	b.Helper()
	p := room[T](b, len(list))
	b.did(b.device.Upload(p, bytes(list), b.stream))
	return p
}

// single puts numbers rounded to single precision.
func (b *bench) single(list []float64) cuda.Pointer {
	b.Helper()
	rounded := make([]float32, len(list))
	for i, v := range list {
		rounded[i] = float32(v)
	}
	return put(b, rounded)
}

// get copies numbers from the device.
func get[T any](b *bench, p cuda.Pointer, n int) []T {
	b.Helper()
	list := make([]T, n)
	b.did(b.device.Download(bytes(list), p, b.stream))
	return list
}

// near compares numbers on the device, of type T, with a reference: each may be off by
// so much, in parts of itself or, if it is smaller, of 1.
func near[T float32 | float64](b *bench, what string, p cuda.Pointer, want []float64, tolerance float64) {
	b.Helper()
	wrong := 0
	for i, v := range get[T](b, p, len(want)) {
		if off := math.Abs(float64(v) - want[i]); !(off <= tolerance*max(math.Abs(want[i]), 1)) {
			if wrong++; wrong < 4 {
				b.Errorf("%s: element %d of %d is %v, want %v", what, i, len(want), v, want[i])
			}
		}
	}
	if wrong > 3 {
		b.Errorf("%s: %d of %d elements are wrong", what, wrong, len(want))
	}
}

// What cannot be right is refused before anything is launched.
func TestRefusals(t *testing.T) {
	b := newBench(t)
	const p = cuda.Pointer(1 << 20)
	images := kernel.Shape{Images: 2, Lines: 5, Points: 5, Channels: 3}
	for _, test := range []struct {
		err  error
		want string
	}{
		{b.SGD(b.stream, kernel.SGD{Weights: p, Velocity: p, Count: 4}), "kernel sgd: address 3 of 3 is null"},
		{b.SGD(b.stream, kernel.SGD{Weights: p, Velocity: p, Gradients: p}), "want 1 or more"},
		{b.FromBfloat16(b.stream, kernel.FromBfloat16{From: p, To: p, Count: -1}), "want 1 or more"},
		{b.Bias(b.stream, kernel.Bias{From: p, Bias: p, To: p, Rows: 1 << 16, Columns: 1 << 15}), "take fewer images at a time"},
		{b.Im2col(b.stream, kernel.Im2col{From: p, To: p, In: images, Out: images, Stride: 3}), "a stride of 3; want 1 or 2"},
		{b.Im2col(b.stream, kernel.Im2col{From: p, To: p, In: images, Out: images, Stride: 2}), "Lines:3 Points:3"},
		{b.Im2col(b.stream, kernel.Im2col{From: p, To: p + 4, In: images.Convolved(8, 1), Out: images, Stride: 1}), "address 2 of 2 is 0x100004; want a multiple of 16"},
		{b.Im2col(b.stream, kernel.Im2col{From: p, To: p, In: kernel.Shape{}, Out: kernel.Shape{Lines: 1, Points: 1}, Stride: 2}), "want 1 or more"},
		{b.Normalise(b.stream, kernel.Normalise{From: p, Coefficients: p, Shortcut: p, To: p, Shape: images, ShortcutShape: images, Stride: 2}), "cannot be a shortcut"},
		{b.Normalise(b.stream, kernel.Normalise{From: p, Coefficients: p, Shortcut: p, To: p, Shape: images, ShortcutShape: images}), "with stride 0"},
		{b.Rectify(b.stream, kernel.Rectify{From: p, Outcome: p, User: p, To: p, Shape: images, UserShape: images.Convolved(4, 1), Stride: 1}), "cannot be a shortcut"},
		{b.Moments(b.stream, kernel.Moments{From: p, To: p, Rows: 4, Channels: 4}), "4 rows in chunks of 0"},
		{b.SumRows(b.stream, kernel.SumRows{From: p, To: p, Rows: 4, Columns: 4, Chunk: 2}), "in place"},
		{b.NormStatistics(b.stream, kernel.NormStatistics{Sums: p, Scale: p, Shift: p, RunningMean: p, RunningVariance: p, Inverse: p, Coefficients: p, Rows: 1, Channels: 1}), "statistics of 0 values"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%v, want %q in it", test.err, test.want)
		}
	}
}

// No thread of a sum over rows adds up more than the chunk.
func TestChunk(t *testing.T) {
	for _, rows := range []int32{1, 2, 8, 9, 27, 28, 1000, 131072, kernel.MostElements} {
		chunk := kernel.Chunk(rows)
		left := kernel.Chunks(kernel.Chunks(rows, chunk), chunk)
		if chunk < 1 || left < 1 || left > chunk || chunk > 1 && int64(chunk-1)*int64(chunk-1)*int64(chunk-1) >= int64(rows) {
			t.Errorf("%d rows: chunks of %d, and %d rows are left", rows, chunk, left)
		}
	}
}
