// Package ptx has the trainer's GPU kernels, for everything except matrix products: preparing
// convolutions as products, batch normalisation, loss and optimisers. Layouts, formulas and
// precision are the same as on CPUs (package cpu), so that both engines can use the same
// parameters.
//
// The kernels are written in CUDA. clang compiles them to PTX, which is checked in (kernels.ptx);
// the GPU's driver compiles the PTX at load time. So CUDA's toolkit is needed neither to build nor
// to run. `make kernels` compiles the kernels again.
//
// Each kernel has a struct here with its arguments, in the layout of the C struct: the addresses,
// then the sizes. All elements are float32 unless stated otherwise. A method of Set checks the
// arguments, as far as possible without knowing the memory layout, and launches the kernel on a
// stream without waiting. Every array may have up to MostElements elements.
//
// Results do not depend on the order of threads: equal inputs give equal bits.
package ptx

import (
	"embed"
	"fmt"
	"io/fs"
	"math"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
)

//go:generate clang-14 -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_70 -O2 -ffp-contract=off -Wall -Wextra -Werror -S -o kernels.ptx source/kernels.cu

//go:embed kernels.ptx
var files embed.FS

// Source returns a folder with the kernels' PTX, from which the fake CUDA driver is built.
func Source() fs.FS { return files }

func ptx() ([]byte, error) { return files.ReadFile("kernels.ptx") }

// A Set has the kernels, loaded on a device.
type Set struct {
	// Launched, if not nil, is called after each launch.
	Launched func(Launch)

	device    *cuda.Device
	functions map[string]cuda.Function
}

// A Launch is one launch of a kernel on a stream.
type Launch struct {
	Kernel    string
	Blocks    int64 // number of blocks of cuda.BlockSize threads
	Arguments any   // a pointer to the kernel's struct
}

var names = []string{
	"decode", "im2col", "im2col_bfloat16", "col2im", "pool", "pool_gradient",
	"moments", "norm_statistics", "norm_averages", "normalise",
	"rectify", "gradient_moments", "norm_gradient_coefficients", "norm_gradient",
	"bias", "bias_gradient", "cross_entropy",
	"column_sums", "sum_rows", "squared_norm",
	"sgd", "adam", "to_bfloat16", "from_bfloat16",
}

// Load compiles the kernels for the device.
func Load(device *cuda.Device) (*Set, error) {
	text, err := ptx()
	if err != nil {
		return nil, err
	}
	module, err := device.Load(text)
	if err != nil {
		return nil, fmt.Errorf("the trainer's kernels: %w", err)
	}
	s := &Set{device: device, functions: map[string]cuda.Function{}}
	for _, name := range names {
		if s.functions[name], err = module.Function(name); err != nil {
			return nil, fmt.Errorf("the trainer's kernels: %w", err)
		}
	}
	return s, nil
}

// MostElements is the largest number of elements of an array: kernels count them in 32 bits, and
// the last block of threads may start past the end.
const MostElements = math.MaxInt32 - 1024

// arguments collects what a launch checks: addresses that must not be null, and array sizes by
// their factors.
type arguments struct {
	kernel string
	err    error
}

func (a *arguments) refuse(format string, values ...any) {
	if a.err == nil {
		a.err = fmt.Errorf("kernel %s: %s", a.kernel, fmt.Sprintf(format, values...))
	}
}

func (a *arguments) need(addresses ...cuda.Pointer) {
	for i, p := range addresses {
		if p == 0 {
			a.refuse("address %d of %d is null", i+1, len(addresses))
		}
	}
}

// aligned checks that addresses are aligned for reading four elements at once.
func (a *arguments) aligned(addresses ...cuda.Pointer) {
	for i, p := range addresses {
		if p%16 != 0 {
			a.refuse("address %d of %d is %#x; want a multiple of 16", i+1, len(addresses), uintptr(p))
		}
	}
}

// size returns the number of elements of an array with these dimensions.
func (a *arguments) size(dimensions ...int32) int64 {
	n := int64(1)
	for _, d := range dimensions {
		if d < 1 || n > MostElements/int64(d) {
			a.refuse("an array of dimensions %v; want 1 or more of each, and at most %d elements: take fewer images at a time", dimensions, MostElements)
			return 0
		}
		n *= int64(d)
	}
	return n
}

// chunks returns the number of chunks of rows.
func (a *arguments) chunks(rows, chunk int32) int32 {
	if rows < 1 || chunk < 1 {
		a.refuse("%d rows in chunks of %d; want 1 or more", rows, chunk)
		return 0
	}
	return Chunks(rows, chunk)
}

// launch launches a kernel on a stream, unless its arguments are invalid.
func launch[A any](s *Set, a *arguments, threads int64, stream cuda.Stream, args *A) error {
	if a.err != nil {
		return a.err
	}
	if err := s.device.Launch(s.functions[a.kernel], threads, stream, unsafe.Pointer(args)); err != nil {
		return fmt.Errorf("kernel %s: %w", a.kernel, err)
	}
	if s.Launched != nil {
		kept := *args // so that args escapes to the heap only here
		s.Launched(Launch{a.kernel, (threads-1)/cuda.BlockSize + 1, &kept})
	}
	return nil
}

// A Shape is the shape of a batch of images in memory, NHWC.
type Shape struct{ Images, Lines, Points, Channels int32 }

func (s Shape) dimensions() []int32 { return []int32{s.Images, s.Lines, s.Points, s.Channels} }

// Convolved is the shape of a 3×3 convolution's output, with zero padding 1.
func (s Shape) Convolved(channels, stride int32) Shape {
	return Shape{s.Images, (s.Lines-1)/stride + 1, (s.Points-1)/stride + 1, channels}
}
