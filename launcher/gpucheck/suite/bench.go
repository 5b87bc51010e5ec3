//go:build cgo

package suite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/launcher/native/train/gpu/ptx"
)

// This file checks the trainer's GPU kernels against references in 64-bit
// floating point that are written from the definitions, and CUDA graphs of them.

// KernelChecks returns the checks of kernels. Each takes the GPU that CUDA's driver lists
// first.
func KernelChecks() []gpucheck.Check {
	var list []gpucheck.Check
	add := func(name string, run func(*bench)) {
		list = append(list, gpucheck.Check{Name: "kernels/" + name, Estimate: time.Second, Run: func(t gpucheck.T) { run(newBench(t)) }})
	}
	add("decode", decode)
	add("decode-as-cpu", decodesAsOnCPUs)
	add("im2col", im2col)
	add("pool", pool)
	for _, u := range units() {
		add("norm-"+u.name, func(b *bench) { norm(b, u) })
	}
	add("norm-synchronised", synchronisedNorm)
	add("norm-averages", normAverages)
	add("nan", naNStays)
	add("bias", bias)
	add("column-sums", columnSums)
	add("cross-entropy", crossEntropies)
	add("exp-log", exponentialAndLogarithm)
	add("cross-entropy-nan", crossEntropyOfNonsense)
	add("sgd", sgd)
	add("adam", adam)
	add("squared-norm", squaredNorm)
	add("bfloat16", bfloat16)
	add("graph", graph)
	return list
}

// A bench is a device with the loaded kernels and the arrays on it.
type bench struct {
	gpucheck.T
	*ptx.Set
	device   *cuda.Device
	stream   cuda.Stream
	random   *rand.Rand
	launches []ptx.Launch
}

func newBench(t gpucheck.T) *bench {
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
	if b.Set, err = ptx.Load(b.device); err != nil {
		t.Fatal(err)
	}
	b.Launched = func(l ptx.Launch) { b.launches = append(b.launches, l) }
	return b
}

// wrote returns the last launch with p among its arguments, else the last one.
func (b *bench) wrote(p cuda.Pointer) *gpucheck.Launch {
	for i, l := range slices.Backward(b.launches) {
		arguments := reflect.ValueOf(l.Arguments).Elem()
		for k := range arguments.NumField() {
			if arguments.Field(k).Interface() == p {
				return launched(l)
			}
		}
		if i == 0 {
			return launched(b.launches[len(b.launches)-1])
		}
	}
	return nil
}

func launched(l ptx.Launch) *gpucheck.Launch {
	return &gpucheck.Launch{Kernel: l.Kernel, Blocks: l.Blocks, Threads: cuda.BlockSize, Arguments: fmt.Sprintf("%+v", reflect.ValueOf(l.Arguments).Elem())}
}

func (b *bench) did(err error) {
	b.Helper()
	if err != nil {
		if n := len(b.launches); n > 0 {
			b.Fatalf("%v; last launch: %v", err, launched(b.launches[n-1]))
		}
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

func bytesOf[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), len(list)*int(unsafe.Sizeof(list[0])))
}

// fence is the number of bytes on both sides of an array on the device. As float32 each word is a signalling
// NaN, which arithmetic always changes, and as float64 about 10³⁰⁷.
const fence = 256

// room allocates memory on the device for n elements, filled like the fence.
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
			b.Errorf("memory outside an array of %d elements was written; last launch: %v", n, b.wrote(p+fence))
		}
		b.did(b.device.Free(p))
	})
	return p + fence
}

// put copies numbers to the device.
func put[T any](b *bench, list []T) cuda.Pointer {
	b.Helper()
	p := room[T](b, len(list))
	b.did(b.device.Upload(p, bytesOf(list), b.stream))
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
	b.did(b.device.Download(bytesOf(list), p, b.stream))
	return list
}

// near compares numbers on the device, of type T, with a reference: see gpucheck.Near.
func near[T float32 | float64](b *bench, what string, p cuda.Pointer, want []float64, tolerance float64) {
	b.Helper()
	gpucheck.Near(b.T, gpucheck.Difference{What: what, Launch: b.wrote(p)}, get[T](b, p, len(want)), want, tolerance)
}

// same compares an array on the device with values that it must equal.
func same[T comparable](b *bench, what string, p cuda.Pointer, want []T) {
	b.Helper()
	gpucheck.Same(b.T, gpucheck.Difference{What: what, Launch: b.wrote(p)}, get[T](b, p, len(want)), want)
}
