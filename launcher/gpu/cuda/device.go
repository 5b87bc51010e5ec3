package cuda

// #include "table.h"
import "C"

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"
)

// A Pointer is an address in a device's memory. Adding bytes to it is allowed.
type Pointer uintptr

// A Stream is a queue of work on a device, a cudaStream_t.
type Stream uintptr

// An Event is a point in a stream.
type Event uintptr

// A Device is one GPU with its primary context. CUDA's runtime, and therefore PyTorch, uses the
// same context.
type Device struct {
	driver  *Driver
	handle  C.CUdevice
	context C.uintptr_t
}

// Bind makes a GPU current for the calling goroutine, and returns it. The goroutine is locked to
// its operating system thread until Release.
func (d *Driver) Bind(ordinal int) (*Device, error) {
	handle, err := d.handle(ordinal)
	if err != nil {
		return nil, err
	}
	v := &Device{driver: d, handle: handle}
	if err := d.check("cuDevicePrimaryCtxRetain", C.cuda_retain(d.table, &v.context, handle)); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	if err := d.check("cuCtxSetCurrent", C.cuda_set(d.table, v.context)); err != nil {
		v.Release()
		return nil, err
	}
	return v, nil
}

// Release releases the GPU and unlocks the goroutine from its thread. All allocated memory should
// have been freed before.
func (v *Device) Release() {
	C.cuda_set(v.driver.table, 0)
	C.cuda_release(v.driver.table, v.handle)
	runtime.UnlockOSThread()
}

// Driver returns the driver that the device belongs to.
func (v *Device) Driver() *Driver { return v.driver }

// Capability returns the GPU's compute capability: 9 and 0 for an H100.
func (v *Device) Capability() (major, minor int, err error) {
	const attributeMajor, attributeMinor = 75, 76 // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…
	if major, err = v.attribute(attributeMajor); err != nil {
		return 0, 0, err
	}
	minor, err = v.attribute(attributeMinor)
	return major, minor, err
}

// Multiprocessors returns the number of multiprocessors of the GPU: 132 for an H100 SXM.
func (v *Device) Multiprocessors() (int, error) {
	return v.attribute(16) // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
}

func (v *Device) attribute(number C.int) (int, error) {
	var n C.int
	err := v.driver.check("cuDeviceGetAttribute", C.cuda_attribute(v.driver.table, &n, number, v.handle))
	return int(n), err
}

// Memory returns the bytes of the device's memory that no process uses, and the total.
func (v *Device) Memory() (free, total int64, err error) {
	var f, t C.size_t
	err = v.driver.check("cuMemGetInfo", C.cuda_memory(v.driver.table, &f, &t))
	return int64(f), int64(t), err
}

// Alloc returns uninitialised device memory, aligned to 256 bytes.
func (v *Device) Alloc(bytes int64) (Pointer, error) {
	if bytes < 1 {
		return 0, fmt.Errorf("cuMemAlloc: %d bytes requested; want 1 or more", bytes)
	}
	var p C.CUdeviceptr
	if err := v.driver.check("cuMemAlloc", C.cuda_alloc(v.driver.table, &p, C.size_t(bytes))); err != nil {
		return 0, fmt.Errorf("%d bytes of device memory: %w", bytes, err)
	}
	return Pointer(p), nil
}

// Free frees memory. It waits for the device.
func (v *Device) Free(p Pointer) error {
	return v.driver.check("cuMemFree", C.cuda_free(v.driver.table, C.CUdeviceptr(p)))
}

// Upload copies host memory to the device after the work of the stream, and returns when the copy
// is complete. It waits without a limit: call it on a stream whose collectives have ended.
func (v *Device) Upload(to Pointer, from []byte, s Stream) error {
	if len(from) == 0 {
		return nil
	}
	return v.driver.check("cuMemcpyHtoDAsync", C.cuda_upload(v.driver.table, C.CUdeviceptr(to), unsafe.Pointer(&from[0]), C.size_t(len(from)), C.uintptr_t(s)))
}

// Download is like Upload, but copies from the device to host memory.
func (v *Device) Download(to []byte, from Pointer, s Stream) error {
	if len(to) == 0 {
		return nil
	}
	return v.driver.check("cuMemcpyDtoHAsync", C.cuda_download(v.driver.table, unsafe.Pointer(&to[0]), C.CUdeviceptr(from), C.size_t(len(to)), C.uintptr_t(s)))
}

// EnqueueCopy adds a copy within the device's memory to the stream.
func (v *Device) EnqueueCopy(to, from Pointer, bytes int64, s Stream) error {
	if bytes < 1 {
		return negative("cuMemcpyDtoDAsync", bytes)
	}
	return v.driver.check("cuMemcpyDtoDAsync", C.cuda_enqueue_copy(v.driver.table, C.CUdeviceptr(to), C.CUdeviceptr(from), C.size_t(bytes), C.uintptr_t(s)))
}

// Fill adds an operation to the stream that sets each of the bytes to a value.
func (v *Device) Fill(to Pointer, value byte, bytes int64, s Stream) error {
	if bytes < 1 {
		return negative("cuMemsetD8Async", bytes)
	}
	return v.driver.check("cuMemsetD8Async", C.cuda_fill(v.driver.table, C.CUdeviceptr(to), C.uchar(value), C.size_t(bytes), C.uintptr_t(s)))
}

// negative returns an error for a negative size.
func negative(call string, bytes int64) error {
	if bytes < 0 {
		return fmt.Errorf("%s: %d bytes", call, bytes)
	}
	return nil
}

// NewStream makes a stream that does not wait for the device's null stream.
func (v *Device) NewStream() (Stream, error) {
	var s C.uintptr_t
	err := v.driver.check("cuStreamCreate", C.cuda_stream(v.driver.table, &s))
	return Stream(s), err
}

// DestroyStream releases the stream at once; its work still runs to its end.
func (v *Device) DestroyStream(s Stream) error {
	return v.driver.check("cuStreamDestroy", C.cuda_stream_destroy(v.driver.table, C.uintptr_t(s)))
}

// notReady is CUDA_ERROR_NOT_READY: not an error, the work is still running.
const notReady = 600

// Done reports whether all work of the stream has ended, without waiting. Its error may come from
// earlier work, because CUDA reports errors at the next call.
func (v *Device) Done(s Stream) (bool, error) {
	return v.ended("cuStreamQuery", C.cuda_stream_query(v.driver.table, C.uintptr_t(s)))
}

func (v *Device) ended(call string, r C.CUresult) (bool, error) {
	if r == notReady {
		return false, nil
	}
	err := v.driver.check(call, r)
	return err == nil, err
}

// NewEvent returns a new event that records the time at which it is reached.
func (v *Device) NewEvent() (Event, error) {
	var e C.uintptr_t
	err := v.driver.check("cuEventCreate", C.cuda_event(v.driver.table, &e))
	return Event(e), err
}

// DestroyEvent frees an event.
func (v *Device) DestroyEvent(e Event) error {
	return v.driver.check("cuEventDestroy", C.cuda_event_destroy(v.driver.table, C.uintptr_t(e)))
}

// Record adds the event to the stream. It is reached when all earlier work in the stream has ended.
func (v *Device) Record(e Event, s Stream) error {
	return v.driver.check("cuEventRecord", C.cuda_event_record(v.driver.table, C.uintptr_t(e), C.uintptr_t(s)))
}

// Wait makes later work in the stream wait for the event's latest Record in any stream; the program continues.
// An event that was never recorded has no effect.
func (v *Device) Wait(s Stream, e Event) error {
	return v.driver.check("cuStreamWaitEvent", C.cuda_wait(v.driver.table, C.uintptr_t(s), C.uintptr_t(e)))
}

// Reached reports whether the work before an event has ended, without waiting. An event that was
// never recorded counts as reached.
func (v *Device) Reached(e Event) (bool, error) {
	return v.ended("cuEventQuery", C.cuda_event_query(v.driver.table, C.uintptr_t(e)))
}

// Elapsed returns the time between two events that were reached, by the device's clock with a resolution of
// about 0.5 µs.
func (v *Device) Elapsed(begin, end Event) (time.Duration, error) {
	var ms C.float
	err := v.driver.check("cuEventElapsedTime", C.cuda_elapsed(v.driver.table, &ms, C.uintptr_t(begin), C.uintptr_t(end)))
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}
