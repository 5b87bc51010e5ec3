package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/dl"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/gpucheck/suite"
)

// library copies the fake to a path: a separate file is loaded as a separate library with new counters.
func library(t *testing.T, path string) string {
	t.Helper()
	code, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, code, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newFakeBLAS returns a bench with a separate copy of the fake, whose counters start at 1.
func newFakeBLAS(t *testing.T) *suite.Bench {
	t.Helper()
	path := library(t, filepath.Join(t.TempDir(), "lib.so"))
	variables := map[string]string{cuda.BLASVariable: path, cuda.Variable: path}
	return suite.NewBench(t, func(name string) string {
		if v, ours := variables[name]; ours {
			return v
		}
		return os.Getenv(name)
	})
}

// The checks that run on a GPU pass on the fake.
func TestChecks(t *testing.T) {
	path := library(t, filepath.Join(t.TempDir(), "lib.so"))
	t.Setenv(cuda.BLASVariable, path)
	t.Setenv(cuda.Variable, path)
	for _, c := range suite.ProductChecks() {
		t.Run(strings.TrimPrefix(c.Name, "products/"), func(t *testing.T) { c.Run(t) })
	}
}

// TF32 keeps 10 bits after the first: 1 + 2⁻¹² becomes 1.
func TestTF32(t *testing.T) {
	b := newFakeBLAS(t)
	a := b.Put(cuda.Matrix{Rows: 1, Columns: 1}, func(int, int) float32 { return 1 + 1.0/4096 })
	c := b.Put(cuda.Matrix{Rows: 1, Columns: 1}, func(int, int) float32 { return 0 })
	for tf32, want := range map[bool]float32{false: (1 + 1.0/4096) * (1 + 1.0/4096), true: 1} {
		b.Options.TF32 = tf32
		if err := b.Handle().Product(c, a, a, 1, 0); err != nil {
			t.Fatal(err)
		}
		if got := b.Get(c)(0, 0); got != want {
			t.Errorf("TF32 %v: %v; want %v", tf32, got, want)
		}
	}
	b.Options.TF32 = true
	t.Setenv("NVIDIA_TF32_OVERRIDE", "0")
	if _, err := b.Library.New(b.Device, b.Options); err == nil || !strings.Contains(err.Error(), "NVIDIA_TF32_OVERRIDE=0 makes cuBLAS compute in float32") {
		t.Errorf("%v", err)
	}
	t.Setenv("CUDA_DOUBLE_CAPABILITY", "75")
	if _, err := b.Library.New(b.Device, b.Options); err == nil || !strings.Contains(err.Error(), "TF32 needs a GPU of compute capability 8.0 or later; this one has 7.5") {
		t.Errorf("%v", err)
	}
	b.Options.TF32 = false
	h := b.Handle()
	m := cuda.Matrix{At: a.At, Rows: 1, Columns: 1, Type: cuda.BFloat16}
	if err := h.Product(c, m, m, 1, 0); err == nil || !strings.Contains(err.Error(), "bfloat16 needs a GPU of compute capability 8.0") {
		t.Errorf("%v", err)
	}
	if err := h.Product(c, a, a, 1, 0); err != nil {
		t.Errorf("float32 on an older GPU: %v", err)
	}
}

func TestProductErrors(t *testing.T) {
	b := newFakeBLAS(t)
	h := b.Handle()
	p := b.Options.Workspace // some address
	a, o, c := cuda.Matrix{At: p, Rows: 2, Columns: 3}, cuda.Matrix{At: p, Rows: 3, Columns: 4}, cuda.Matrix{At: p, Rows: 2, Columns: 4}
	for _, test := range []struct {
		break_ func(a, o, c *cuda.Matrix)
		want   string
	}{
		{func(a, _, _ *cuda.Matrix) { a.At = 0 }, "matrix a has no address"},
		{func(_, o, _ *cuda.Matrix) { o.Columns = 0 }, "matrix b has 3 rows and 0 columns; want 1 to 2147483647 of each"},
		{func(_, _, c *cuda.Matrix) { c.Rows = math.MaxInt32 + 1 }, "matrix c has 2147483648 rows"},
		{func(a, _, _ *cuda.Matrix) { a.Stride = 2 }, "matrix a has 3 columns and a stride of 2"},
		{func(a, _, _ *cuda.Matrix) { a.Stride = math.MaxInt32 + 1 }, "stride of 2147483648"},
		{func(a, _, _ *cuda.Matrix) { a.Type = 2 }, "matrix a is of type 2"},
		{func(a, _, _ *cuda.Matrix) { a.Transposed = true }, "a has 2 columns and b 3 rows"},
		{func(_, _, c *cuda.Matrix) { c.Columns = 5 }, "c is 2×5; want 2×4"},
		{func(_, _, c *cuda.Matrix) { *c = cuda.Matrix{At: p, Rows: 4, Columns: 2, Transposed: true} }, "c is transposed"},
		{func(a, _, _ *cuda.Matrix) { a.Type = cuda.BFloat16 }, "product of 2×3 of bfloat16 and 3×4 of float32: into float32: cuBLAS has no such product"},
		{func(_, _, c *cuda.Matrix) { c.Type = cuda.BFloat16 }, "into bfloat16: cuBLAS has no such product"},
	} {
		x, y, z := a, o, c
		test.break_(&x, &y, &z)
		if err := h.Product(z, x, y, 1, 0); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v; want %q", err, test.want)
		}
	}
	for _, test := range []struct {
		o    cuda.BLASOptions
		want string
	}{
		{cuda.BLASOptions{Workspace: p, WorkspaceBytes: 1}, "no stream"},
		{cuda.BLASOptions{Stream: b.Stream, WorkspaceBytes: 1}, "a workspace of 1 bytes at 0x0"},
		{cuda.BLASOptions{Stream: b.Stream, Workspace: p}, "a workspace of 0 bytes"},
		{cuda.BLASOptions{Stream: b.Stream, Workspace: p + 4, WorkspaceBytes: 1}, "aligned to 256 bytes"},
	} {
		if _, err := b.Library.New(b.Device, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v; want %q", err, test.want)
		}
	}
}

func status(t *testing.T, err error, call string, status int) {
	t.Helper()
	var e *cuda.BLASError
	if !errors.As(err, &e) || e.Call != call || e.Status != status || !strings.Contains(err.Error(), fmt.Sprintf("(cuBLAS status %d)", status)) {
		t.Errorf("%v; want status %d of %s", err, status, call)
	}
}

func TestFaults(t *testing.T) {
	t.Setenv("CUBLAS_DOUBLE_ERROR", "2")
	t.Setenv("CUBLAS_DOUBLE_CORRUPT", "3")
	b := newFakeBLAS(t)
	h := b.Handle()
	m := b.Put(cuda.Matrix{Rows: 2, Columns: 2}, func(row, column int) float32 { return float32(1 - (row+column)%2) })
	c := b.Put(cuda.Matrix{Rows: 2, Columns: 2}, func(int, int) float32 { return 0 })
	if err := h.Product(c, m, m, 1, 0); err != nil {
		t.Error(err)
	}
	err := h.Product(c, m, m, 1, 0)
	status(t, err, "cublasGemmEx", 13)
	if !strings.Contains(err.Error(), "product of 2×2 of float32 and 2×2 of float32: cublasGemmEx: the function failed to launch on the GPU") {
		t.Error(err)
	}
	for i, want := range []float32{1.5, 1} { // the third is wrong, the fourth is right
		if err := h.Product(c, m, m, 1, 0); err != nil {
			t.Error(err)
		}
		if got := b.Get(c); got(1, 1) != want || got(0, 0) != 1 || got(0, 1) != 0 {
			t.Errorf("product %d: %v; want %v", i+3, got(1, 1), want)
		}
	}
	t.Setenv("CUBLAS_DOUBLE_OUT_OF_MEMORY", "1")
	_, err = b.Library.New(b.Device, b.Options)
	status(t, err, "cublasCreate", 3)
	if !strings.Contains(err.Error(), "DOUBLE of cuBLAS 12.4.5 (not cuBLAS, not a GPU) at "+b.Library.Path()+", with a driver for CUDA up to 12.4: ") {
		t.Error(err)
	}
}

// After an error in a kernel, cuBLAS calls fail, too.
func TestLostDevice(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_ILLEGAL_ADDRESS", "1")
	b := newFakeBLAS(t)
	h := b.Handle()
	ptx, err := os.ReadFile("testdata/kernels/scale.ptx")
	if err != nil {
		t.Fatal(err)
	}
	module, err := b.Load(ptx)
	if err != nil {
		t.Fatal(err)
	}
	scale, err := module.Function("scale")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Launch(scale, 1, b.Stream, unsafe.Pointer(new([24]byte))); err != nil {
		t.Fatal(err)
	}
	var lost *cuda.Error
	if err := b.Upload(b.Options.Workspace, []byte{1}, b.Stream); !errors.As(err, &lost) || lost.Number != 700 { // waits for the stream
		t.Fatal(err)
	}
	c := cuda.Matrix{At: b.Options.Workspace, Rows: 1, Columns: 1}
	status(t, h.Product(c, c, c, 1, 0), "cublasGemmEx", 13)
	_, err = b.Library.New(b.Device, b.Options)
	if !errors.As(err, &lost) || lost.Number != 700 { // asked for its capability
		t.Error(err)
	}
}

func TestCandidates(t *testing.T) {
	environment := t.TempDir()
	twelve := library(t, filepath.Join(environment, "lib/python3.11/site-packages/nvidia/cublas/lib/libcublas.so.12"))
	thirteen := library(t, filepath.Join(environment, "lib/python3.11/site-packages/nvidia/cu13/lib/libcublas.so.13"))
	eleven := library(t, filepath.Join(environment, "lib/python3.11/site-packages/nvidia/cublas/lib/libcublas.so.11"))
	variables := map[string]string{"VIRTUAL_ENV": environment}
	getenv := func(name string) string { return variables[name] }
	if got, want := cuda.BLASCandidates(getenv), []string{twelve, thirteen, eleven, "libcublas.so.12", "libcublas.so.13", "libcublas.so.11"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	l, err := cuda.OpenBLAS(getenv)
	if err != nil || l.Path() != twelve || l.Version() != "12.4.5" || !l.IsFake() {
		t.Errorf("%+v, %v", l, err)
	}
	variables[cuda.BLASVariable] = "/nowhere/libcublas.so"
	if _, err := cuda.OpenBLAS(getenv); err == nil || !strings.Contains(err.Error(), "cuBLAS cannot be loaded: /nowhere/libcublas.so") {
		t.Errorf("%v", err)
	}
	if variables[cuda.BLASVariable], err = gputest.Build(t.TempDir(), "libcublas-double.so", "cublasSetWorkspace_v2", "cublasGetStatusString"); err != nil {
		t.Fatal(err)
	}
	var missing *dl.MissingError
	if _, err := cuda.OpenBLAS(getenv); !errors.As(err, &missing) || !slices.Equal(missing.Symbols, []string{"cublasSetWorkspace_v2"}) {
		t.Errorf("%v", err)
	}
}
