//go:build cgo

package suite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/launcher/gpucheck"
)

// This file checks cuBLAS's products of matrices against sums that are written
// from the definition.

// ProductChecks returns the checks of products. Each takes the GPU that CUDA's driver lists
// first.
func ProductChecks() []gpucheck.Check {
	return []gpucheck.Check{
		{Name: "products/exact", Estimate: 3 * time.Second, Run: exact},
		{Name: "products/beta", Estimate: time.Second, Run: beta},
		{Name: "products/tf32", Estimate: time.Second, Run: func(t gpucheck.T) { productRounded(t, cuda.Float32, true) }},
		{Name: "products/bfloat16", Estimate: time.Second, Run: func(t gpucheck.T) { productRounded(t, cuda.BFloat16, false) }},
	}
}

// A Bench is a GPU with cuBLAS.
type Bench struct {
	*cuda.Device
	Library *cuda.BLAS
	Stream  cuda.Stream
	Options cuda.BLASOptions

	t gpucheck.T
}

// NewBench opens the libraries that getenv names. They are closed when t ends.
func NewBench(t gpucheck.T, getenv func(string) string) *Bench {
	t.Helper()
	driver, err := cuda.Open(getenv)
	if err != nil {
		t.Fatal(err)
	}
	b := &Bench{t: t}
	if b.Library, err = cuda.OpenBLAS(getenv); err != nil {
		t.Fatal(err)
	}
	if b.Device, err = driver.Bind(0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	if b.Stream, err = b.NewStream(); err != nil {
		t.Fatal(err)
	}
	major, _, err := b.Capability()
	if err != nil {
		t.Fatal(err)
	}
	size := cuda.BLASWorkspace(major)
	workspace, err := b.Alloc(size)
	if err != nil {
		t.Fatal(err)
	}
	b.Options = cuda.BLASOptions{Stream: b.Stream, Workspace: workspace, WorkspaceBytes: size}
	return b
}

// Handle makes a handle of cuBLAS with the bench's options.
func (b *Bench) Handle() *cuda.BLASHandle {
	b.t.Helper()
	h, err := b.Library.New(b.Device, b.Options)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

// size returns the bytes of an element.
func size(t cuda.MatrixType) int64 {
	if t == cuda.BFloat16 {
		return 2
	}
	return 4
}

// Put makes a matrix of these elements, which lie by rows; what lies between the
// rows, and in memory that is not filled, is NaN.
func (b *Bench) Put(m cuda.Matrix, value func(row, column int) float32) cuda.Matrix {
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
	if err := b.Upload(p, raw, b.Stream); err != nil {
		b.t.Fatal(err)
	}
	m.At = p
	return m
}

// Get returns the elements that Put wrote.
func (b *Bench) Get(m cuda.Matrix) func(row, column int) float32 {
	b.t.Helper()
	stride := max(m.Stride, m.Columns)
	raw := make([]byte, int64(m.Rows*stride)*size(m.Type))
	if err := b.Download(raw, m.At, b.Stream); err != nil {
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

// productAt returns an element of a matrix as it enters a product.
func productAt(m cuda.Matrix, memory func(row, column int) float32, row, column int) float32 {
	if m.Transposed {
		return memory(column, row)
	}
	return memory(row, column)
}

// Products of small integers are exact in every type, so that a sum over three
// loops, written down as the definition says it, has to be met exactly.
func exact(t gpucheck.T) {
	b := NewBench(t, os.Getenv)
	h := b.Handle()
	random := rand.New(rand.NewPCG(1, 2))
	digit := func(int, int) float32 { return float32(random.IntN(7) - 3) }
	for _, shape := range [][3]int{{1, 1, 1}, {1, 5, 1}, {7, 1, 3}, {3, 4, 5}, {5, 130, 2}, {17, 31, 29}, {2, 300, 9}} {
		for choice := range 16 {
			rows, inner, columns := shape[0], shape[1], shape[2]
			kind, margin := cuda.Float32, 0
			if choice&4 != 0 {
				margin = 3
			}
			if choice&8 != 0 {
				kind = cuda.BFloat16
			}
			a := b.Put(matrix(rows, inner, margin, choice&1 != 0, kind), digit)
			o := b.Put(matrix(inner, columns, margin, choice&2 != 0, kind), digit)
			c := b.Put(matrix(rows, columns, margin, false, cuda.Float32), digit)
			want := b.sums(c, a, o, inner)
			if err := h.Product(c, a, o, 2, -3); err != nil {
				t.Fatal(err)
			}
			gpucheck.Same(t, difference("2·a·b − 3·c", c, a, o), b.elements(c), want)
			for _, m := range []cuda.Matrix{a, o, c} { // the fake notices writes outside an allocation
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

// matrix describes a matrix whose rows are margin elements apart from each other.
func matrix(rows, columns, margin int, transposed bool, kind cuda.MatrixType) cuda.Matrix {
	if transposed {
		rows, columns = columns, rows
	}
	m := cuda.Matrix{Rows: rows, Columns: columns, Transposed: transposed, Type: kind}
	if margin > 0 {
		m.Stride = columns + margin
	}
	return m
}

// sums returns the elements of 2·a·b − 3·c.
func (b *Bench) sums(c, a, o cuda.Matrix, inner int) []float32 {
	before, left, right := b.Get(c), b.Get(a), b.Get(o)
	list := make([]float32, 0, c.Rows*c.Columns)
	for i := range c.Rows {
		for j := range c.Columns {
			sum := float32(0)
			for l := range inner {
				sum += productAt(a, left, i, l) * productAt(o, right, l, j)
			}
			list = append(list, 2*sum-3*before(i, j))
		}
	}
	return list
}

// With a beta of 0, what was in c does not count, NaN neither; a result may be
// bfloat16, rounded to the nearest.
func beta(t gpucheck.T) {
	b := NewBench(t, os.Getenv)
	nan := func(int, int) float32 { return float32(math.NaN()) }
	for _, kind := range []cuda.MatrixType{cuda.Float32, cuda.BFloat16} {
		a := b.Put(cuda.Matrix{Rows: 1, Columns: 2, Type: kind}, func(_, column int) float32 { return 1 + float32(column)/128 })
		o := b.Put(cuda.Matrix{Rows: 2, Columns: 1, Type: kind}, func(row, _ int) float32 { return 1 - float32(row)/2 })
		c := b.Put(cuda.Matrix{Rows: 1, Columns: 1, Type: kind}, nan)
		if err := b.Handle().Product(c, a, o, 1, 0); err != nil {
			t.Fatal(err)
		}
		// 1 + (1 + 1/128)/2 is 1.50390625, in the middle between two bfloat16.
		want := float32(1.50390625)
		if kind == cuda.BFloat16 {
			want = 1.5
		}
		gpucheck.Same(t, difference("a·b into memory of NaN", c, a, o), b.elements(c), []float32{want})
	}
}

// productRounded compares a product of random numbers with its sum in 64 bits. Each factor
// may be rounded to TF32 before it is multiplied. bfloat16 is read back, so it is not
// productRounded again.
func productRounded(t gpucheck.T, kind cuda.MatrixType, tf32 bool) {
	b := NewBench(t, os.Getenv)
	b.Options.TF32 = tf32
	random := rand.New(rand.NewPCG(3, 4))
	draw := func(int, int) float32 { return 2*random.Float32() - 1 }
	const rows, inner, columns = 200, 144, 16
	a := b.Put(cuda.Matrix{Rows: rows, Columns: inner, Type: kind}, draw)
	o := b.Put(cuda.Matrix{Rows: inner, Columns: columns, Type: kind}, draw)
	c := b.Put(cuda.Matrix{Rows: rows, Columns: columns}, draw)
	if err := b.Handle().Product(c, a, o, 1, 0); err != nil {
		t.Fatal(err)
	}
	left, right, unit := b.Get(a), b.Get(o), 0x1p-10
	if kind == cuda.BFloat16 {
		unit = 0x1p-16 // of sums: tensor cores keep fewer bits than float32 while they add
	}
	want, largest := make([]float64, 0, rows*columns), 0.0
	for i := range rows {
		for j := range columns {
			sum, magnitude := 0.0, 0.0
			for l := range inner {
				v := float64(left(i, l)) * float64(right(l, j))
				sum, magnitude = sum+v, magnitude+math.Abs(v)
			}
			want, largest = append(want, sum), max(largest, magnitude)
		}
	}
	// Two factors may be off by a unit each; twice that leaves room for sums in any order.
	gpucheck.Near(t, difference("a·b", c, a, o), b.elements(c), want, 4*unit*largest)
}

// elements reads a matrix, row by row.
func (b *Bench) elements(m cuda.Matrix) []float32 {
	b.t.Helper()
	memory, list := b.Get(m), make([]float32, 0, m.Rows*m.Columns)
	for i := range m.Rows {
		for j := range m.Columns {
			list = append(list, memory(i, j))
		}
	}
	return list
}

// difference describes the product that wrote c.
func difference(what string, c, a, b cuda.Matrix) gpucheck.Difference {
	return gpucheck.Difference{What: what, Shape: fmt.Sprintf("%d×%d", c.Rows, c.Columns),
		Launch: &gpucheck.Launch{Kernel: "cublasGemmEx", Arguments: fmt.Sprintf("c %+v, a %+v, b %+v", c, a, b)}}
}
