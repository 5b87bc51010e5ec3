package cuda

// #include "cublas.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
)

// BLASOptions configure a Handle.
type BLASOptions struct {
	Stream Stream

	// Workspace is device memory that belongs to the Handle alone, aligned to
	// 256 bytes; BLASWorkspace says how much cuBLAS's documentation asks for.
	Workspace      Pointer
	WorkspaceBytes int64

	// TF32 lets products of float32 round their inputs to 10 bits of mantissa
	// (float32 has 23), for the tensor cores of GPUs from compute capability 8.0
	// on. Sums stay float32.
	TF32 bool
}

// BLASWorkspace returns how many bytes a Handle's workspace should have on a GPU of that compute
// capability: 32 MiB from Hopper (9.0) on, else 4 MiB.
func BLASWorkspace(major int) int64 {
	if major >= 9 {
		return 32 << 20
	}
	return 4 << 20
}

// A BLASHandle is cuBLAS on one device. It belongs on the device's goroutine.
type BLASHandle struct {
	library *BLAS
	handle  C.cublasHandle_t
	major   int // major version of the device's compute capability
	compute C.int
}

// noTF32 is an environment variable of cuBLAS. The value 0 silently disables TF32 even for programs
// that request it.
const noTF32 = "NVIDIA_TF32_OVERRIDE"

const (
	compute32F         = 68 // CUBLAS_COMPUTE_32F
	compute32FFastTF32 = 77 // CUBLAS_COMPUTE_32F_FAST_TF32

	// CUBLAS_DEFAULT_MATH computes in float32. CUBLAS_PEDANTIC_MATH also disables faster methods of
	// the same precision, which real programs use.
	defaultMath     = 0
	tf32Math        = 3  // CUBLAS_TF32_TENSOR_OP_MATH
	wholeReductions = 16 // CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
)

// New returns a handle on the device, which must be current on the calling thread.
func (l *BLAS) New(d *Device, o BLASOptions) (*BLASHandle, error) {
	major, minor, err := d.Capability()
	if err != nil {
		return nil, err
	}
	h := &BLASHandle{library: l, major: major, compute: compute32F}
	mode := C.int(defaultMath)
	switch {
	case o.TF32 && major < 8:
		return nil, fmt.Errorf("TF32 needs a GPU of compute capability 8.0 or later; this one has %d.%d: use float32", major, minor)
	case o.TF32 && l.getenv(noTF32) == "0":
		return nil, fmt.Errorf("%s=0 makes cuBLAS compute in float32 although TF32 was requested; unset it, or use float32", noTF32)
	case o.TF32:
		mode, h.compute = tf32Math, compute32FFastTF32
	}
	switch {
	case o.Stream == 0:
		return nil, errors.New("cuBLAS: no stream")
	case o.Workspace == 0 || o.WorkspaceBytes < 1 || o.Workspace%256 != 0:
		return nil, fmt.Errorf("cuBLAS: a workspace of %d bytes at %#x; want some memory, aligned to 256 bytes", o.WorkspaceBytes, uintptr(o.Workspace))
	}
	if err := l.check("cublasCreate", C.cublas_create(l.table, &h.handle)); err != nil {
		// If the driver is too old for the library, the error is "not initialised".
		return nil, fmt.Errorf("%v at %s, with a driver for CUDA up to %s: %w", l, l.Path(), d.Driver().Version(), err)
	}
	// Set the stream first: setting it resets the workspace.
	err = l.check("cublasSetStream", C.cublas_stream(l.table, h.handle, C.uintptr_t(o.Stream)))
	if err == nil {
		err = l.check("cublasSetWorkspace", C.cublas_workspace(l.table, h.handle, C.uintptr_t(o.Workspace), C.size_t(o.WorkspaceBytes)))
	}
	if err == nil {
		err = l.check("cublasSetMathMode", C.cublas_math(l.table, h.handle, mode|wholeReductions))
	}
	if err != nil {
		return nil, errors.Join(err, h.Destroy())
	}
	return h, nil
}

// Destroy frees the handle. It may wait for the device.
func (h *BLASHandle) Destroy() error {
	return h.library.check("cublasDestroy", C.cublas_destroy(h.library.table, h.handle))
}

// A MatrixType is the type of a matrix's elements, numbered as in cudaDataType_t.
type MatrixType int

// Float32 is the default type of a Matrix.
const (
	Float32  MatrixType = 0  // CUDA_R_32F
	BFloat16 MatrixType = 14 // CUDA_R_16BF
)

func (t MatrixType) String() string {
	switch t {
	case Float32:
		return "float32"
	case BFloat16:
		return "bfloat16"
	}
	return fmt.Sprintf("type %d", int(t))
}

// A Matrix is a row-major matrix in device memory.
type Matrix struct {
	At            Pointer
	Rows, Columns int  // as stored in memory
	Stride        int  // elements from one row to the next; 0: Columns
	Transposed    bool // the product takes the transpose, Columns×Rows
	Type          MatrixType
}

// shape returns the shape of the matrix in the product.
func (m Matrix) shape() (rows, columns int) {
	if m.Transposed {
		return m.Columns, m.Rows
	}
	return m.Rows, m.Columns
}

func (m Matrix) stride() int {
	if m.Stride == 0 {
		return m.Columns
	}
	return m.Stride
}

func (m Matrix) String() string {
	rows, columns := m.shape()
	return fmt.Sprintf("%d×%d of %v", rows, columns, m.Type)
}

// check validates a matrix as far as possible without knowing the memory layout.
func (m Matrix) check(name string) error {
	switch {
	case m.At == 0:
		return fmt.Errorf("matrix %s has no address", name)
	case m.Rows < 1 || m.Columns < 1 || m.Rows > math.MaxInt32 || m.Columns > math.MaxInt32:
		return fmt.Errorf("matrix %s has %d rows and %d columns; want 1 to %d of each", name, m.Rows, m.Columns, math.MaxInt32)
	case m.stride() < m.Columns || m.stride() > math.MaxInt32:
		return fmt.Errorf("matrix %s has %d columns and a stride of %d; want at least as many, and at most %d", name, m.Columns, m.Stride, math.MaxInt32)
	case m.Type != Float32 && m.Type != BFloat16:
		return fmt.Errorf("matrix %s is of %v", name, m.Type)
	}
	return nil
}

// Product enqueues c = alpha·a·b + beta·c on the stream; with a beta of 0, c need not be initialised. a and b
// have the same type, and c has that type or float32; sums are float32 for all types. c must not overlap a or
// b.
func (h *BLASHandle) Product(c, a, b Matrix, alpha, beta float32) error {
	if err := h.checkProduct(c, a, b); err != nil {
		return fmt.Errorf("cuBLAS: product of %v and %v: %w", a, b, err)
	}
	rows, inner := a.shape()
	_, columns := b.shape()
	compute := h.compute
	if a.Type != Float32 {
		compute = compute32F
	}
	// By columns, the memory of c holds its transpose, bᵀ·aᵀ.
	status := C.cublas_product(h.library.table, h.handle, C.int(columns), C.int(rows), C.int(inner),
		C.float(alpha), b.byColumns(), a.byColumns(), C.float(beta), c.byColumns(), compute)
	if err := h.library.check("cublasGemmEx", status); err != nil {
		return fmt.Errorf("product of %v and %v: %w", a, b, err)
	}
	return nil
}

func (h *BLASHandle) checkProduct(c, a, b Matrix) error {
	for name, m := range map[string]Matrix{"a": a, "b": b, "c": c} {
		if err := m.check(name); err != nil {
			return err
		}
	}
	rows, inner := a.shape()
	from, columns := b.shape()
	switch {
	case inner != from:
		return fmt.Errorf("a has %d columns and b %d rows", inner, from)
	case c.Transposed:
		return errors.New("c is transposed; exchange a and b instead")
	case c.Rows != rows || c.Columns != columns:
		return fmt.Errorf("c is %d×%d; want %d×%d", c.Rows, c.Columns, rows, columns)
	case a.Type != b.Type || c.Type != Float32 && c.Type != a.Type:
		return fmt.Errorf("into %v: cuBLAS has no such product", c.Type)
	case a.Type == BFloat16 && h.major < 8:
		return errors.New("bfloat16 needs a GPU of compute capability 8.0 or later")
	}
	return nil
}

func (m Matrix) byColumns() C.struct_cublas_matrix {
	transposed := C.int(0)
	if m.Transposed {
		transposed = 1
	}
	return C.struct_cublas_matrix{at: C.uintptr_t(m.At), _type: C.int(m.Type), leading: C.int(m.stride()), transposed: transposed}
}
