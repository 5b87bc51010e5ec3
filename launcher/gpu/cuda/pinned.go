package cuda

// #include "table.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Pinned is host memory that the device reads and writes itself, so that copies are faster and run
// while the program continues. It is not managed by Go.
type Pinned struct {
	device *Device
	at     unsafe.Pointer
	bytes  int64
}

// AllocPinned returns the given number of bytes of pinned memory, not cleared. A node has less of
// it than of other memory, because it cannot be swapped out.
func (v *Device) AllocPinned(bytes int64) (*Pinned, error) {
	if bytes < 1 {
		return nil, fmt.Errorf("cuMemHostAlloc: %d bytes requested; want 1 or more", bytes)
	}
	p := &Pinned{device: v, bytes: bytes}
	if err := v.driver.check("cuMemHostAlloc", C.cuda_host_alloc(v.driver.table, &p.at, C.size_t(bytes))); err != nil {
		return nil, fmt.Errorf("%d bytes of pinned memory: %w", bytes, err)
	}
	return p, nil
}

// Free frees the memory. No view of it may be used afterwards.
func (p *Pinned) Free() error {
	at := p.at
	p.at, p.bytes = nil, 0
	return p.device.driver.check("cuMemFreeHost", C.cuda_host_free(p.device.driver.table, at))
}

// View returns pinned memory as a slice of numbers, without a remainder at the end that is too
// small for a number. While a copy is in progress, the program must not use the slice.
func View[T byte | uint16 | int32 | uint32 | int64 | float32 | float64](p *Pinned) []T {
	var t T
	return unsafe.Slice((*T)(p.at), p.bytes/int64(unsafe.Sizeof(t)))
}

// part returns the address of a part of the memory.
func (p *Pinned) part(offset, bytes int64) (unsafe.Pointer, error) {
	if offset < 0 || bytes < 0 || offset > p.bytes-bytes {
		return nil, fmt.Errorf("%d bytes from byte %d are not all in a pinned memory of %d bytes", bytes, offset, p.bytes)
	}
	return unsafe.Add(p.at, offset), nil
}

// EnqueueUpload adds a copy of the given number of bytes, from an offset in pinned memory to the
// device, to the stream. It returns before the copy is made.
func (v *Device) EnqueueUpload(to Pointer, from *Pinned, offset, bytes int64, s Stream) error {
	at, err := from.part(offset, bytes)
	if err != nil || bytes == 0 {
		return err
	}
	return v.driver.check("cuMemcpyHtoDAsync", C.cuda_enqueue_upload(v.driver.table, C.CUdeviceptr(to), at, C.size_t(bytes), C.uintptr_t(s)))
}

// EnqueueDownload is like EnqueueUpload, but copies from the device to pinned memory.
func (v *Device) EnqueueDownload(to *Pinned, offset, bytes int64, from Pointer, s Stream) error {
	at, err := to.part(offset, bytes)
	if err != nil || bytes == 0 {
		return err
	}
	return v.driver.check("cuMemcpyDtoHAsync", C.cuda_enqueue_download(v.driver.table, at, C.CUdeviceptr(from), C.size_t(bytes), C.uintptr_t(s)))
}
