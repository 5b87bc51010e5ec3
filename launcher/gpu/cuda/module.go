package cuda

// #include "table.h"
import "C"

import (
	"bytes"
	"fmt"
	"math"
	"unsafe"
)

// A Module holds kernels that the driver has compiled for a device.
type Module struct {
	device *Device
	handle C.uintptr_t
}

// A Function is a kernel of a module.
type Function uintptr

// logBytes is the size of the buffer for the driver's compiler messages.
const logBytes = 16 << 10

// Load compiles PTX for the device and returns the module. The driver compiles it, and keeps the
// result in a cache on disk (~/.nv/ComputeCache). So the first call may take seconds. The error
// contains the compiler's messages.
func (v *Device) Load(ptx []byte) (*Module, error) {
	image := append(bytes.Clone(ptx), 0) // a C string, which must end in a zero byte
	info, complaint := make([]byte, logBytes), make([]byte, logBytes)
	m := &Module{device: v}
	r := C.cuda_load(v.driver.table, &m.handle, unsafe.Pointer(&image[0]), (*C.char)(unsafe.Pointer(&info[0])), (*C.char)(unsafe.Pointer(&complaint[0])), logBytes)
	err := v.driver.check("cuModuleLoadDataEx", r)
	if err == nil {
		return m, nil
	}
	for _, log := range [][]byte{complaint, info} {
		log, _, _ = bytes.Cut(log, []byte{0})
		if log = bytes.TrimSpace(log); len(log) > 0 {
			err = fmt.Errorf("%w; the driver's compiler says: %s", err, log)
			break
		}
	}
	if major, minor, unknown := v.Capability(); unknown == nil {
		return nil, fmt.Errorf("kernels for a GPU of compute capability %d.%d: %w", major, minor, err)
	}
	return nil, fmt.Errorf("kernels: %w", err)
}

// Unload frees the module. None of its functions may be used afterwards.
func (m *Module) Unload() error {
	return m.device.driver.check("cuModuleUnload", C.cuda_unload(m.device.driver.table, m.handle))
}

// Function finds a kernel by its name in PTX (.entry).
func (m *Module) Function(name string) (Function, error) {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	var f C.uintptr_t
	if err := m.device.driver.check("cuModuleGetFunction", C.cuda_function(m.device.driver.table, &f, m.handle, s)); err != nil {
		return 0, fmt.Errorf("kernel %s: %w", name, err)
	}
	return Function(f), nil
}

// BlockSize is the number of threads in each block of Launch.
const BlockSize = 256

// maxBlocks is CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X of every GPU since Kepler.
const maxBlocks = math.MaxInt32

// Launch enqueues a one-dimensional kernel on the stream. The number of threads is rounded up to whole blocks;
// the kernel must ignore the extra ones. Its only parameter is a struct, passed by value, that args points to:
// a Go variable with the kernel's layout and without Go pointers. It is copied before Launch returns.
func (v *Device) Launch(f Function, threads int64, s Stream, args unsafe.Pointer) error {
	blocks := (threads-1)/BlockSize + 1
	if threads < 1 || blocks > maxBlocks {
		return fmt.Errorf("cuLaunchKernel: %d threads requested; want 1 to %d", threads, int64(maxBlocks)*BlockSize)
	}
	return v.driver.check("cuLaunchKernel", C.cuda_launch(v.driver.table, C.uintptr_t(f), C.uint(blocks), BlockSize, C.uintptr_t(s), args))
}
