//go:build cgo

package gpu

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/metrics/number"
)

// An arena is the device memory of an engine. It is planned first and allocated in one piece, so
// that steps allocate nothing, and too little memory is noticed before the training.
type arena struct {
	bytes   int64
	largest int64 // number of elements of the largest float32 array
	list    []*reservation
	base    cuda.Pointer
}

// A reservation is a part of an arena, with the pointers that receive its address.
type reservation struct {
	offset int64
	to     []*cuda.Pointer
}

// also adds a pointer that receives the address.
func (r *reservation) also(to *cuda.Pointer) { r.to = append(r.to, to) }

// alignment is the alignment of the driver's allocations, in bytes.
const alignment = 256

// reserve plans memory for the given number of bytes. place writes its address to to.
func (a *arena) reserve(bytes int64, to *cuda.Pointer) *reservation {
	r := &reservation{offset: a.bytes}
	if to != nil {
		r.also(to)
	}
	a.bytes += (max(bytes, 1) + alignment - 1) / alignment * alignment
	a.list = append(a.list, r)
	return r
}

func (a *arena) floats(n int64, to *cuda.Pointer) *reservation {
	a.largest = max(a.largest, n)
	return a.reserve(4*n, to)
}

func (a *arena) doubles(n int64, to *cuda.Pointer) { a.reserve(8*n, to) }

// place allocates the memory and sets the addresses.
func (a *arena) place(device *cuda.Device) error {
	var err error
	if a.base, err = device.Alloc(a.bytes); err != nil {
		if free, total, unknown := device.Memory(); unknown == nil {
			err = fmt.Errorf("the training needs %s of GPU memory; %s of %s are free: use a smaller batch or an unused GPU (%w)",
				number.Bytes(float64(a.bytes)), number.Bytes(float64(free)), number.Bytes(float64(total)), err)
		}
		return err
	}
	for _, r := range a.list {
		for _, to := range r.to {
			*to = a.base + cuda.Pointer(r.offset)
		}
	}
	return nil
}

// free frees the memory. It ignores errors, since the end of the process frees it, too.
func (a *arena) free(device *cuda.Device) {
	if a.base != 0 {
		_ = device.Free(a.base)
		a.base = 0
	}
}
