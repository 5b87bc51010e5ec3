//go:build cgo

package gpu

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher/gpu/cuda"
	"github.com/scalebench/scalebench/metrics/number"
)

// An arena is all device memory of an engine: planned first, allocated at once, so
// that a step allocates nothing and what does not fit is known before training.
type arena struct {
	bytes   int64
	largest int64 // elements of the largest array of float32
	list    []*reservation
	base    cuda.Pointer
}

// A reservation is a part of it, and who wants to know where.
type reservation struct {
	offset int64
	to     []*cuda.Pointer
}

// also tells somebody else where it is.
func (r *reservation) also(to *cuda.Pointer) { r.to = append(r.to, to) }

// alignment is the alignment of the driver's allocations, in bytes.
const alignment = 256

// reserve plans so many bytes, whose address place writes to to.
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

// place allocates the memory.
func (a *arena) place(device *cuda.Device) error {
	var err error
	if a.base, err = device.Alloc(a.bytes); err != nil {
		if free, total, unknown := device.Memory(); unknown == nil {
			err = fmt.Errorf("the training takes %s of the GPU's memory; %s of its %s are free: take a smaller batch, or a GPU that nobody else uses (%w)",
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

// free gives it back; what goes wrong ends with the process.
func (a *arena) free(device *cuda.Device) {
	if a.base != 0 {
		_ = device.Free(a.base)
		a.base = 0
	}
}
