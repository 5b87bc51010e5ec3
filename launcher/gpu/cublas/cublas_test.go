package cublas_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cublas"
	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpu/dl"
	"github.com/scalebench/scalebench/launcher/gpu/double"
)

// kernels has the kernel "scale".
const kernels = "../cuda/testdata/kernels"

// built is the double.
var built = sync.OnceValues(func() ([]byte, error) { return double.Library(os.DirFS(kernels)) })

// library puts the double where a test asks for it: a file of its own is a library
// of its own, which counts anew.
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

// A bench is a GPU with cuBLAS.
type bench struct {
	*cuda.Device
	t       *testing.T
	library *cublas.Library
	stream  cuda.Stream
	options cublas.Options
}

// newBench is one of the double's, or where tests run on a GPU a real one.
func newBench(t *testing.T) *bench {
	t.Helper()
	if !double.OnGPU() {
		return newDouble(t)
	}
	return benchOf(t, os.Getenv)
}

// newDouble is one for what only the double does.
func newDouble(t *testing.T) *bench {
	t.Helper()
	path := library(t, filepath.Join(t.TempDir(), "lib.so"))
	variables := map[string]string{cublas.Variable: path, cuda.Variable: path}
	return benchOf(t, func(name string) string {
		if v, ours := variables[name]; ours {
			return v
		}
		return os.Getenv(name)
	})
}

func benchOf(t *testing.T, getenv func(string) string) *bench {
	t.Helper()
	driver, err := cuda.Open(getenv)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t}
	if b.library, err = cublas.Open(getenv); err != nil {
		t.Fatal(err)
	}
	if b.Device, err = driver.Bind(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	if b.stream, err = b.NewStream(); err != nil {
		t.Fatal(err)
	}
	major, _, err := b.Capability()
	if err != nil {
		t.Fatal(err)
	}
	size := cublas.WorkspaceSize(major)
	workspace, err := b.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	b.options = cublas.Options{Stream: b.stream, Workspace: workspace, WorkspaceBytes: size}
	return b
}

func (b *bench) handle() *cublas.Handle {
	b.t.Helper()
	h, err := b.library.New(b.Device, b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

// size is how many bytes an element has.
func size(t cublas.Type) int64 {
	if t == cublas.BFloat16 {
		return 2
	}
	return 4
}

// put makes a matrix of these elements, which lie by rows; what lies between the
// rows, and in memory that is not filled, is NaN.
func (b *bench) put(m cublas.Matrix, value func(row, column int) float32) cublas.Matrix {
	b.t.Helper()
	stride := m.Stride
	if stride == 0 {
		stride = m.Columns
	}
	var raw []byte
	for row := range m.Rows {
		for column := range stride {
			v := float32(math.NaN())
			if column < m.Columns {
				v = value(row, column)
			}
			bits := math.Float32bits(v)
			word := []byte{byte(bits), byte(bits >> 8), byte(bits >> 16), byte(bits >> 24)}
			raw = append(raw, word[4-size(m.Type):]...)
		}
	}
	p, err := b.Alloc(int64(len(raw)))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.Upload(p, raw, b.stream); err != nil {
		b.t.Fatal(err)
	}
	m.At = p
	return m
}

// get returns what put put.
func (b *bench) get(m cublas.Matrix) func(row, column int) float32 {
	b.t.Helper()
	stride := max(m.Stride, m.Columns)
	raw := make([]byte, int64(m.Rows*stride)*size(m.Type))
	if err := b.Download(raw, m.At, b.stream); err != nil {
		b.t.Fatal(err)
	}
	return func(row, column int) float32 {
		var bits uint32
		n := size(m.Type)
		for i, v := range raw[int64(row*stride+column)*n:][:n] {
			bits |= uint32(v) << (8 * (4 - int(n) + i))
		}
		return math.Float32frombits(bits)
	}
}

// at is an element of a matrix as a product takes it.
func at(m cublas.Matrix, memory func(row, column int) float32, row, column int) float32 {
	if m.Transposed {
		return memory(column, row)
	}
	return memory(row, column)
}

// Products of small integers are exact in every type, so that a sum over three
// loops, written down as the definition says it, has to be met exactly.
func TestProduct(t *testing.T) {
	b := newBench(t)
	h := b.handle()
	random := rand.New(rand.NewPCG(1, 2))
	digit := func(int, int) float32 { return float32(random.IntN(7) - 3) }
	for _, shape := range [][3]int{{1, 1, 1}, {1, 5, 1}, {7, 1, 3}, {3, 4, 5}, {5, 130, 2}, {17, 31, 29}, {2, 300, 9}} {
		for choice := range 16 {
			rows, inner, columns := shape[0], shape[1], shape[2]
			kind, margin := cublas.Float32, 0
			if choice&4 != 0 {
				margin = 3
			}
			if choice&8 != 0 {
				kind = cublas.BFloat16
			}
			matrix := func(rows, columns int, transposed bool, kind cublas.Type) cublas.Matrix {
				if transposed {
					rows, columns = columns, rows
				}
				m := cublas.Matrix{Rows: rows, Columns: columns, Transposed: transposed, Type: kind}
				if margin > 0 {
					m.Stride = columns + margin
				}
				return m
			}
			a := b.put(matrix(rows, inner, choice&1 != 0, kind), digit)
			o := b.put(matrix(inner, columns, choice&2 != 0, kind), digit)
			c := b.put(matrix(rows, columns, false, cublas.Float32), digit)
			before, left, right := b.get(c), b.get(a), b.get(o)
			if err := h.Product(c, a, o, 2, -3); err != nil {
				t.Fatal(err)
			}
			after := b.get(c)
			for i := range rows {
				for j := range columns {
					sum := float32(0)
					for l := range inner {
						sum += at(a, left, i, l) * at(o, right, l, j)
					}
					if want := 2*sum - 3*before(i, j); after(i, j) != want {
						t.Fatalf("%v, %+v · %+v: element %d, %d is %v; want %v", shape, a, o, i, j, after(i, j), want)
					}
				}
			}
			for _, m := range []cublas.Matrix{a, o, c} { // notices what was written beside a matrix
				if err := b.Free(m.At); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := h.Destroy(); err != nil {
		t.Error(err)
	}
}

// With a beta of 0, what was in c does not count, NaN neither; a result may be
// bfloat16, rounded to the nearest.
func TestProductForgetsWhatWas(t *testing.T) {
	b := newBench(t)
	nan := func(int, int) float32 { return float32(math.NaN()) }
	for _, kind := range []cublas.Type{cublas.Float32, cublas.BFloat16} {
		a := b.put(cublas.Matrix{Rows: 1, Columns: 2, Type: kind}, func(_, column int) float32 { return 1 + float32(column)/128 })
		o := b.put(cublas.Matrix{Rows: 2, Columns: 1, Type: kind}, func(row, _ int) float32 { return 1 - float32(row)/2 })
		c := b.put(cublas.Matrix{Rows: 1, Columns: 1, Type: kind}, nan)
		if err := b.handle().Product(c, a, o, 1, 0); err != nil {
			t.Fatal(err)
		}
		// 1 + (1 + 1/128)/2 is 1.50390625, in the middle between two bfloat16.
		want := float32(1.50390625)
		if kind == cublas.BFloat16 {
			want = 1.5
		}
		if got := b.get(c)(0, 0); got != want {
			t.Errorf("%v: %v; want %v", kind, got, want)
		}
	}
}

// TF32 keeps 10 bits behind the first: of 1 + 2⁻¹² nothing but 1 is left.
func TestTF32(t *testing.T) {
	b := newDouble(t)
	a := b.put(cublas.Matrix{Rows: 1, Columns: 1}, func(int, int) float32 { return 1 + 1.0/4096 })
	c := b.put(cublas.Matrix{Rows: 1, Columns: 1}, func(int, int) float32 { return 0 })
	for tf32, want := range map[bool]float32{false: (1 + 1.0/4096) * (1 + 1.0/4096), true: 1} {
		b.options.TF32 = tf32
		if err := b.handle().Product(c, a, a, 1, 0); err != nil {
			t.Fatal(err)
		}
		if got := b.get(c)(0, 0); got != want {
			t.Errorf("TF32 %v: %v; want %v", tf32, got, want)
		}
	}
	b.options.TF32 = true
	t.Setenv("NVIDIA_TF32_OVERRIDE", "0")
	if _, err := b.library.New(b.Device, b.options); err == nil || !strings.Contains(err.Error(), "NVIDIA_TF32_OVERRIDE=0 is set") {
		t.Errorf("%v", err)
	}
	t.Setenv("CUDA_DOUBLE_CAPABILITY", "75")
	if _, err := b.library.New(b.Device, b.options); err == nil || !strings.Contains(err.Error(), "TF32 needs a GPU of compute capability 8.0 or later; this one has 7.5") {
		t.Errorf("%v", err)
	}
	b.options.TF32 = false
	h := b.handle()
	m := cublas.Matrix{At: a.At, Rows: 1, Columns: 1, Type: cublas.BFloat16}
	if err := h.Product(c, m, m, 1, 0); err == nil || !strings.Contains(err.Error(), "bfloat16 needs a GPU of compute capability 8.0") {
		t.Errorf("%v", err)
	}
	if err := h.Product(c, a, a, 1, 0); err != nil {
		t.Errorf("float32 on an older GPU: %v", err)
	}
}

func TestProductErrors(t *testing.T) {
	b := newBench(t)
	h := b.handle()
	p := b.options.Workspace // some address
	a, o, c := cublas.Matrix{At: p, Rows: 2, Columns: 3}, cublas.Matrix{At: p, Rows: 3, Columns: 4}, cublas.Matrix{At: p, Rows: 2, Columns: 4}
	for _, test := range []struct {
		break_ func(a, o, c *cublas.Matrix)
		want   string
	}{
		{func(a, _, _ *cublas.Matrix) { a.At = 0 }, "matrix a has no address"},
		{func(_, o, _ *cublas.Matrix) { o.Columns = 0 }, "matrix b has 3 rows and 0 columns; want 1 to 2147483647 of each"},
		{func(_, _, c *cublas.Matrix) { c.Rows = math.MaxInt32 + 1 }, "matrix c has 2147483648 rows"},
		{func(a, _, _ *cublas.Matrix) { a.Stride = 2 }, "matrix a has 3 columns and a stride of 2"},
		{func(a, _, _ *cublas.Matrix) { a.Stride = math.MaxInt32 + 1 }, "stride of 2147483648"},
		{func(a, _, _ *cublas.Matrix) { a.Type = 2 }, "matrix a is of type 2"},
		{func(a, _, _ *cublas.Matrix) { a.Transposed = true }, "a has 2 columns and b 3 rows"},
		{func(_, _, c *cublas.Matrix) { c.Columns = 5 }, "c is 2×5; want 2×4"},
		{func(_, _, c *cublas.Matrix) { *c = cublas.Matrix{At: p, Rows: 4, Columns: 2, Transposed: true} }, "c is transposed"},
		{func(a, _, _ *cublas.Matrix) { a.Type = cublas.BFloat16 }, "product of 2×3 of bfloat16 and 3×4 of float32: into float32: cuBLAS has no such product"},
		{func(_, _, c *cublas.Matrix) { c.Type = cublas.BFloat16 }, "into bfloat16: cuBLAS has no such product"},
	} {
		x, y, z := a, o, c
		test.break_(&x, &y, &z)
		if err := h.Product(z, x, y, 1, 0); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v; want %q", err, test.want)
		}
	}
	for _, test := range []struct {
		o    cublas.Options
		want string
	}{
		{cublas.Options{Workspace: p, WorkspaceBytes: 1}, "no stream"},
		{cublas.Options{Stream: b.stream, WorkspaceBytes: 1}, "a workspace of 1 bytes at 0x0"},
		{cublas.Options{Stream: b.stream, Workspace: p}, "a workspace of 0 bytes"},
		{cublas.Options{Stream: b.stream, Workspace: p + 4, WorkspaceBytes: 1}, "aligned to 256 bytes"},
	} {
		if _, err := b.library.New(b.Device, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v; want %q", err, test.want)
		}
	}
}

func status(t *testing.T, err error, call string, status int) {
	t.Helper()
	var e *cublas.Error
	if !errors.As(err, &e) || e.Call != call || e.Status != status || !strings.Contains(err.Error(), fmt.Sprintf("(cuBLAS status %d)", status)) {
		t.Errorf("%v; want status %d of %s", err, status, call)
	}
}

func TestFaults(t *testing.T) {
	t.Setenv("CUBLAS_DOUBLE_ERROR", "2")
	t.Setenv("CUBLAS_DOUBLE_CORRUPT", "3")
	b := newDouble(t)
	h := b.handle()
	m := b.put(cublas.Matrix{Rows: 2, Columns: 2}, func(row, column int) float32 { return float32(1 - (row+column)%2) })
	c := b.put(cublas.Matrix{Rows: 2, Columns: 2}, func(int, int) float32 { return 0 })
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
		if got := b.get(c); got(1, 1) != want || got(0, 0) != 1 || got(0, 1) != 0 {
			t.Errorf("product %d: %v; want %v", i+3, got(1, 1), want)
		}
	}
	t.Setenv("CUBLAS_DOUBLE_OUT_OF_MEMORY", "1")
	_, err = b.library.New(b.Device, b.options)
	status(t, err, "cublasCreate", 3)
	if !strings.Contains(err.Error(), "DOUBLE of cuBLAS 12.4.5 (not cuBLAS, not a GPU) at "+b.library.Path()+", with a driver for CUDA up to 12.4: ") {
		t.Error(err)
	}
}

// After an error of a kernel, cuBLAS is of no use either.
func TestLostDevice(t *testing.T) {
	t.Setenv("CUDA_DOUBLE_ILLEGAL_ADDRESS", "1")
	b := newDouble(t)
	h := b.handle()
	ptx, err := os.ReadFile(filepath.Join(kernels, "scale.ptx"))
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
	if err := b.Launch(scale, 1, b.stream, unsafe.Pointer(new([24]byte))); err != nil {
		t.Fatal(err)
	}
	var lost *cuda.Error
	if err := b.Upload(b.options.Workspace, []byte{1}, b.stream); !errors.As(err, &lost) || lost.Number != 700 { // waits for the stream
		t.Fatal(err)
	}
	c := cublas.Matrix{At: b.options.Workspace, Rows: 1, Columns: 1}
	status(t, h.Product(c, c, c, 1, 0), "cublasGemmEx", 13)
	_, err = b.library.New(b.Device, b.options)
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
	if got, want := cublas.Candidates(getenv), []string{twelve, thirteen, eleven, "libcublas.so.12", "libcublas.so.13", "libcublas.so.11"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	l, err := cublas.Open(getenv)
	if err != nil || l.Path() != twelve || l.Version() != "12.4.5" || !l.Double() {
		t.Errorf("%+v, %v", l, err)
	}
	variables[cublas.Variable] = "/nowhere/libcublas.so"
	if _, err := cublas.Open(getenv); err == nil || !strings.Contains(err.Error(), "cuBLAS cannot be loaded: /nowhere/libcublas.so") {
		t.Errorf("%v", err)
	}
	if variables[cublas.Variable], err = double.Build(t.TempDir(), "libcublas-double.so", "cublasSetWorkspace_v2", "cublasGetStatusString"); err != nil {
		t.Fatal(err)
	}
	var missing *dl.MissingError
	if _, err := cublas.Open(getenv); !errors.As(err, &missing) || !slices.Equal(missing.Symbols, []string{"cublasSetWorkspace_v2"}) {
		t.Errorf("%v", err)
	}
}
