package cuda_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
)

// A bench is a GPU with the kernel "scale".
type bench struct {
	*cuda.Device
	t      *testing.T
	stream cuda.Stream
	module *cuda.Module
	scale  cuda.Function
}

// built returns the fake library with that kernel.
var built = sync.OnceValues(func() ([]byte, error) { return gputest.Library(os.DirFS("testdata/kernels")) })

func scalePTX(t *testing.T) string {
	t.Helper()
	ptx, err := os.ReadFile("testdata/kernels/scale.ptx")
	if err != nil {
		t.Fatal(err)
	}
	return string(ptx)
}

// newFakeGPU returns a bench with the fake.
func newFakeGPU(t *testing.T) *bench {
	t.Helper()
	library, err := built()
	if err != nil {
		t.Fatal(err)
	}
	// A separate file is loaded as a separate library, with new counters and no earlier error.
	path := filepath.Join(t.TempDir(), "libcuda-double.so")
	if err := os.WriteFile(path, library, 0o600); err != nil {
		t.Fatal(err)
	}
	return benchOf(t, func(string) string { return path })
}

func benchOf(t *testing.T, getenv func(string) string) *bench {
	t.Helper()
	driver, err := cuda.Open(getenv)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t}
	if b.Device, err = driver.Bind(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	if b.stream, err = b.NewStream(); err != nil {
		t.Fatal(err)
	}
	if b.module, err = b.Load([]byte(scalePTX(t))); err != nil {
		t.Fatal(err)
	}
	if b.scale, err = b.module.Function("scale"); err != nil {
		t.Fatal(err)
	}
	return b
}

type scaleArgs struct {
	to     cuda.Pointer
	n      int64
	factor float32
	_      int32
}

func (b *bench) launch(to cuda.Pointer, n int64, factor float32) error {
	return b.launchIn(to, n, factor, b.stream)
}

func (b *bench) launchIn(to cuda.Pointer, n int64, factor float32, s cuda.Stream) error {
	return b.Launch(b.scale, n, s, unsafe.Pointer(&scaleArgs{to: to, n: n, factor: factor}))
}

// do fails the test if one of the calls failed.
func (b *bench) do(errs ...error) {
	b.t.Helper()
	if err := errors.Join(errs...); err != nil {
		b.t.Fatal(err)
	}
}

// end waits for the stream and returns its error.
func (b *bench) end(s cuda.Stream) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if done, err := b.Done(s); done || err != nil {
			return err
		}
	}
	return errors.New("the stream did not end within a minute")
}

func number(t *testing.T, err error, call string, number int) {
	t.Helper()
	var e *cuda.Error
	if !errors.As(err, &e) || e.Call != call || e.Number != number {
		t.Errorf("%v; want error %d of %s", err, number, call)
	}
}

// 1000 numbers need four blocks, whose last 24 threads must not write beyond the end. The
// arguments may change once Launch has returned.
func TestLaunch(t *testing.T) {
	b := newFakeGPU(t)
	const n = 1000
	p, err := b.Alloc(4 * (n + 1))
	if err != nil {
		t.Fatal(err)
	}
	host, err := b.AllocPinned(4*(n+1) + 2)
	if err != nil {
		t.Fatal(err)
	}
	values := cuda.View[float32](host)
	if len(values) != n+1 {
		t.Fatalf("%d numbers are seen in %d bytes", len(values), 4*(n+1)+2)
	}
	for i := range values {
		values[i] = float32(i)
	}
	args := &scaleArgs{to: p, n: n, factor: 3}
	b.do(b.EnqueueUpload(p, host, 0, 4*(n+1), b.stream), b.Launch(b.scale, n, b.stream, unsafe.Pointer(args)))
	*args = scaleArgs{}
	b.do(b.EnqueueDownload(host, 0, 4*(n+1), p, b.stream), b.end(b.stream))
	for i, v := range values {
		want := 3 * float32(i)
		if i == n {
			want = n
		}
		if v != want {
			t.Fatalf("number %d is %v; want %v", i, v, want)
		}
	}
	b.do(b.Free(p), host.Free(), b.module.Unload(), b.DestroyStream(b.stream))
}

func TestLaunchRange(t *testing.T) {
	b := newFakeGPU(t)
	for _, n := range []int64{math.MinInt64, -1, 0, math.MaxInt32*256 + 1, math.MaxInt64} {
		if err := b.launch(0, n, 1); err == nil || !strings.Contains(err.Error(), "want 1 to 549755813632") {
			t.Errorf("%d threads: %v", n, err)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	b := newFakeGPU(t)
	ptx := scalePTX(t)
	for _, test := range []struct{ ptx, want string }{
		{"", "this is not PTX"},
		{strings.ReplaceAll(ptx, "scale(", "shift("), "entry shift: the double was built without this kernel"},
		{strings.ReplaceAll(ptx, "[24]", "[32]"), "entry scale: a parameter of 32 bytes, and of 24 bytes on the host"},
		{strings.ReplaceAll(ptx, "[24]\n", "[24],\n\t.param .u64 scale_param_1\n"), "entry scale: more than one parameter"},
	} {
		_, err := b.Load([]byte(test.ptx))
		number(t, err, "cuModuleLoadDataEx", 218)
		for _, want := range []string{"kernels for a GPU of compute capability 8.0", "a PTX JIT compilation failed", "the driver's compiler says: DOUBLE: ", test.want} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q", err, want)
			}
		}
	}
	_, err := b.module.Function("shift")
	number(t, err, "cuModuleGetFunction", 500)
	if !strings.Contains(err.Error(), "kernel shift: ") {
		t.Error(err)
	}
}

func TestFillCopyAttributes(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_MEMORY", "1000000")
	b := newFakeGPU(t)
	p, err := b.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	if free, total, err := b.Memory(); free != 999000 || total != 1000000 || err != nil {
		t.Errorf("%d bytes of %d are free, %v", free, total, err)
	}
	if major, minor, err := b.Capability(); major != 8 || minor != 0 || err != nil {
		t.Errorf("%d.%d, %v", major, minor, err)
	}
	if n, err := b.Multiprocessors(); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	got := make([]byte, 7)
	b.do(b.Fill(p, 1, 1000, b.stream), b.Fill(p+1, 2, 2, b.stream), b.EnqueueCopy(p+4, p+1, 2, b.stream), b.EnqueueCopy(p, p, 0, b.stream),
		b.Fill(p, 9, 0, b.stream), b.Download(got, p, b.stream))
	if string(got) != "\x01\x02\x02\x01\x02\x02\x01" {
		t.Errorf("%x", got)
	}
	if b.Fill(p, 0, -1, b.stream) == nil || b.EnqueueCopy(p, p, -1, b.stream) == nil {
		t.Error("a negative length was accepted")
	}
	host, err := b.AllocPinned(10)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range [][2]int64{{-1, 1}, {0, 11}, {10, 1}, {math.MaxInt64, 1}, {1, math.MaxInt64}, {0, -1}} {
		if b.EnqueueUpload(p, host, test[0], test[1], b.stream) == nil || b.EnqueueDownload(host, test[0], test[1], p, b.stream) == nil {
			t.Errorf("%d bytes from byte %d of 10 were copied", test[1], test[0])
		}
	}
	if _, err := b.AllocPinned(0); err == nil {
		t.Error("0 bytes were allocated")
	}
}

// A second stream waits for the work before an event in the first stream, whose kernel starts
// late, but not for a later record of the event.
func TestWait(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_DELAY_US", "20000")
	t.Setenv("CUDA_DOUBLE_HANG", "3")
	b := newFakeGPU(t)
	p, err := b.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	event, err := b.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	host, err := b.AllocPinned(4)
	if err != nil {
		t.Fatal(err)
	}
	one := cuda.View[float32](host)
	one[0] = 1
	b.do(b.Wait(second, event)) // was never recorded
	b.do(b.EnqueueUpload(p, host, 0, 4, b.stream), b.launch(p, 1, 2), b.launch(p, 1, 2), b.Record(event, b.stream), b.Wait(second, event),
		b.EnqueueDownload(host, 0, 4, p, second))
	b.do(b.launch(p, 1, 2), b.Record(event, b.stream)) // which hangs
	b.do(b.end(second))
	if one[0] != 4 {
		t.Errorf("the second stream read %v; want 4", one[0])
	}
	if done, err := b.Done(b.stream); done || err != nil {
		t.Errorf("a kernel that hangs: %v, %v", done, err)
	}
	if reached, err := b.Reached(event); reached || err != nil {
		t.Errorf("an event behind it: %v, %v", reached, err)
	}
	b.do(b.DestroyStream(b.stream)) // does not wait
}

func TestRefusedLaunch(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_LAUNCH_ERROR", "2")
	b := newFakeGPU(t)
	p, err := b.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	b.do(b.launch(p, 1, 1))
	number(t, b.launch(p, 1, 1), "cuLaunchKernel", 701)
	b.do(b.launch(p, 1, 1), b.end(b.stream))
}

func TestOutOfMemory(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_OUT_OF_MEMORY", "2")
	t.Setenv("CUDA_DOUBLE_MEMORY", "1000")
	b := newFakeGPU(t)
	p, err := b.Alloc(600)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{1, 401} { // first refused by the fake, then too large
		_, err = b.Alloc(n)
		number(t, err, "cuMemAlloc", 2)
	}
	b.do(b.Free(p))
	if p, err = b.Alloc(1000); err != nil {
		t.Error(err)
	}
	b.do(b.Free(p))
}

// An error in a kernel is reported later, and by every call from then on.
func TestIllegalAddress(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_ILLEGAL_ADDRESS", "1")
	b := newFakeGPU(t)
	p, err := b.Alloc(4)
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	event, err := b.NewEvent()
	if err != nil {
		t.Fatal(err)
	}
	b.do(b.launch(p, 1, 1))
	number(t, b.end(b.stream), "cuStreamQuery", 700)
	number(t, b.end(second), "cuStreamQuery", 700)
	number(t, b.launch(p, 1, 1), "cuLaunchKernel", 700)
	number(t, b.Record(event, second), "cuEventRecord", 700)
	number(t, b.Upload(p, []byte{1}, second), "cuMemcpyHtoDAsync", 700)
	number(t, b.Free(p), "cuMemFree", 700)
	_, err = b.Alloc(4)
	number(t, err, "cuMemAlloc", 700)
}

// Writes beyond the end of an allocation are detected when it is freed.
func TestOverrun(t *testing.T) {
	b := newFakeGPU(t)
	p, err := b.Alloc(10)
	if err != nil {
		t.Fatal(err)
	}
	b.do(b.Fill(p, 0, 11, b.stream))
	number(t, b.Free(p), "cuMemFree", 700)
}
