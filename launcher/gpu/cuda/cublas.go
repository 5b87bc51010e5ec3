package cuda

// #include "cublas.h"
import "C"

import (
	"fmt"
	"path/filepath"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
)

// BLASVariable names an environment variable with the library's file, instead of a
// search.
const BLASVariable = "SCALEBENCH_CUBLAS"

// BLASCandidates returns the libraries that Open tries, in order: if Variable is set, only that
// file; otherwise the libraries in the active Python environment (from PyTorch for CUDA 12, 13 or
// 11), then the system's. libcublasLt, which cuBLAS needs, is in the same folder.
func BLASCandidates(getenv func(string) string) []string {
	if own := getenv(BLASVariable); own != "" {
		return []string{own}
	}
	var list []string
	if environment := getenv("VIRTUAL_ENV"); environment != "" {
		for _, file := range []string{"cublas/lib/libcublas.so.12", "cu13/lib/libcublas.so.13", "cublas/lib/libcublas.so.11"} {
			// The pattern is well formed; a folder that is not there matches nothing.
			found, _ := filepath.Glob(filepath.Join(environment, "lib", "python*", "site-packages", "nvidia", file))
			list = append(list, found...)
		}
	}
	return append(list, "libcublas.so.12", "libcublas.so.13", "libcublas.so.11")
}

// A BLAS is the loaded cuBLAS, NVIDIA's linear algebra library, of which it binds what a trainer needs:
// matrix products. The library is not needed to build. It is loaded at run time from the places
// where PyTorch's wheels and the CUDA toolkit put it.
//
// cuBLAS stores matrices by columns; the trainer stores them by rows. A matrix by rows is its
// transpose by columns, so the package only swaps the operands and copies nothing.
//
// Equal inputs give equal bits in every run, on one model of GPU with one version of the library.
// For that, cuBLAS requires that a BLASHandle uses one stream and has a separate workspace.
type BLAS struct {
	table   *C.struct_cublas_table
	library *dl.Library
	version string
	getenv  func(string) string
}

// OpenBLAS loads the first of Candidates; getenv is os.Getenv. Its error names every
// library that was tried, and why it would not do. No GPU is needed yet.
func OpenBLAS(getenv func(string) string) (*BLAS, error) {
	// Never freed: a Library lives as long as the process.
	l := &BLAS{table: (*C.struct_cublas_table)(C.calloc(1, C.sizeof_struct_cublas_table)), getenv: getenv}
	var err error
	if l.library, err = dl.Open("cuBLAS", BLASCandidates(getenv), l.symbols()); err != nil {
		C.free(unsafe.Pointer(l.table))
		return nil, err
	}
	var version [3]C.int
	for i := range version { // MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL
		if err := l.check("cublasGetProperty", C.cublas_property(l.table, C.int(i), &version[i])); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Path(), err)
		}
	}
	l.version = fmt.Sprintf("%d.%d.%d", version[0], version[1], version[2])
	return l, nil
}

func (l *BLAS) symbols() []dl.Symbol {
	t := l.table
	return []dl.Symbol{
		{Name: "cublasGetProperty", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GetProperty))},
		{Name: "cublasCreate_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Create))},
		{Name: "cublasDestroy_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Destroy))},
		{Name: "cublasSetStream_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.SetStream))},
		{Name: "cublasSetWorkspace_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.SetWorkspace))},
		{Name: "cublasSetMathMode", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.SetMathMode))},
		{Name: "cublasGemmEx", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GemmEx))},
		{Name: "cublasGetStatusString", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GetStatusString)), Optional: true},
		{Name: "scalebenchDouble", Address: &t.double_notice, Optional: true},
	}
}

// Path returns the library's file.
func (l *BLAS) Path() string { return l.library.Path() }

// Version returns the library's version, "12.9.3".
func (l *BLAS) Version() string { return l.version }

// IsFake reports whether this is scalebench's test fake. It uses no GPU, so its timings say nothing
// about the hardware.
func (l *BLAS) IsFake() bool { return l.table.double_notice != nil }

// String returns the usual name and version of the library; for the fake, it says so.
func (l *BLAS) String() string {
	if l.IsFake() {
		return fmt.Sprintf("DOUBLE of cuBLAS %s (not cuBLAS, not a GPU)", l.version)
	}
	return "cuBLAS " + l.version
}

// A BLASError is a cuBLAS status other than success.
type BLASError struct {
	Call   string // "cublasGemmEx"
	Status int    // cublasStatus_t
	Words  string // the library's own, from 11.4 on
}

func (e *BLASError) Error() string {
	return fmt.Sprintf("%s: %s (cuBLAS status %d)", e.Call, e.Words, e.Status)
}

func (l *BLAS) check(call string, s C.cublasStatus_t) error {
	if s == 0 {
		return nil
	}
	words := "an error that this version has no words for"
	if w := C.cublas_words(l.table, s); w != nil {
		words = C.GoString(w)
	}
	return &BLASError{Call: call, Status: int(s), Words: words}
}
