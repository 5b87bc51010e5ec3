// Package cuda binds the part of CUDA that collectives between GPUs and the trainer need: device
// memory, streams, events and kernels. It uses the driver's library (libcuda.so.1), which every
// machine with an NVIDIA GPU has. Neither the toolkit nor its runtime is needed to build or to run.
//
// CUDA keeps the current device for each operating system thread. Device.Bind locks the calling
// goroutine to its thread; use a Device, and the NCCL communicator on it, only on that goroutine.
// Handing work to another goroutine costs microseconds each time, more than the calls themselves.
//
// Addresses in device memory are Pointers, numbers that Go never dereferences.
//
// A stream's work runs later, so CUDA reports its errors at a later call. A kernel's error (such as
// an invalid address) is final: every later call returns it until the process ends.
package cuda

// #include "table.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
)

// Variable is the name of the environment variable that can give the path of the driver's library,
// to use instead of the system's.
const Variable = "SCALEBENCH_CUDA"

// A Driver is the loaded library, initialised.
type Driver struct {
	table   *C.struct_cuda_table
	library *dl.Library
	version int
}

// Open loads and initialises the driver. It loads the library that the environment variable
// Variable names, else libcuda.so.1. getenv is usually os.Getenv. The error says which file was
// tried, or that the driver finds no GPU.
func Open(getenv func(string) string) (*Driver, error) {
	candidates := []string{"libcuda.so.1"}
	if own := getenv(Variable); own != "" {
		candidates = []string{own}
	}
	// Never freed: a Driver lives as long as the process.
	d := &Driver{table: (*C.struct_cuda_table)(C.calloc(1, C.sizeof_struct_cuda_table))}
	var err error
	if d.library, err = dl.Open("CUDA's driver", candidates, append(d.symbols(), d.graphSymbols()...)); err != nil {
		C.free(unsafe.Pointer(d.table))
		return nil, err
	}
	if err := d.check("cuInit", C.cuda_init(d.table)); err != nil {
		return nil, fmt.Errorf("%s: %w", d.library.Path(), err)
	}
	var v C.int
	if err := d.check("cuDriverGetVersion", C.cuda_version(d.table, &v)); err != nil {
		return nil, fmt.Errorf("%s: %w", d.library.Path(), err)
	}
	d.version = int(v)
	return d, nil
}

func (d *Driver) symbols() []dl.Symbol {
	t := d.table
	return []dl.Symbol{
		{Name: "cuInit", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Init))},
		{Name: "cuDriverGetVersion", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.DriverGetVersion))},
		{Name: "cuGetErrorString", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GetErrorString))},
		{Name: "cuDeviceGetCount", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.DeviceGetCount))},
		{Name: "cuDeviceGet", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.DeviceGet))},
		{Name: "cuDeviceGetName", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.DeviceGetName))},
		{Name: "cuDevicePrimaryCtxRetain", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.PrimaryCtxRetain))},
		{Name: "cuDevicePrimaryCtxRelease_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.PrimaryCtxRelease))},
		{Name: "cuCtxSetCurrent", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.CtxSetCurrent))},
		{Name: "cuMemAlloc_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemAlloc))},
		{Name: "cuMemFree_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemFree))},
		{Name: "cuMemcpyHtoDAsync_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemcpyHtoDAsync))},
		{Name: "cuMemcpyDtoHAsync_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemcpyDtoHAsync))},
		{Name: "cuStreamCreate", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.StreamCreate))},
		{Name: "cuStreamDestroy_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.StreamDestroy))},
		{Name: "cuStreamQuery", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.StreamQuery))},
		{Name: "cuStreamSynchronize", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.StreamSynchronize))},
		{Name: "cuEventCreate", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.EventCreate))},
		{Name: "cuEventDestroy_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.EventDestroy))},
		{Name: "cuEventRecord", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.EventRecord))},
		{Name: "cuEventQuery", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.EventQuery))},
		{Name: "cuEventElapsedTime", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.EventElapsedTime))},
		// All of these are older than the oldest driver that NCCL 2.14 runs on.
		{Name: "cuStreamWaitEvent", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.StreamWaitEvent))},
		{Name: "cuDeviceGetAttribute", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.DeviceGetAttribute))},
		{Name: "cuMemGetInfo_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemGetInfo))},
		{Name: "cuMemHostAlloc", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemHostAlloc))},
		{Name: "cuMemFreeHost", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemFreeHost))},
		{Name: "cuMemcpyDtoDAsync_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemcpyDtoDAsync))},
		{Name: "cuMemsetD8Async", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MemsetD8Async))},
		{Name: "cuModuleLoadDataEx", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.ModuleLoadDataEx))},
		{Name: "cuModuleUnload", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.ModuleUnload))},
		{Name: "cuModuleGetFunction", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.ModuleGetFunction))},
		{Name: "cuLaunchKernel", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.LaunchKernel))},
		{Name: "scalebenchDouble", Address: &t.double_notice, Optional: true},
	}
}

// graphSymbols are the functions of graphs. Drivers for CUDA 11.4 and later have all of them.
func (d *Driver) graphSymbols() []dl.Symbol {
	t := d.table
	return []dl.Symbol{
		{Name: "cuStreamBeginCapture_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.StreamBeginCapture)), Optional: true},
		{Name: "cuStreamEndCapture", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.StreamEndCapture)), Optional: true},
		{Name: "cuGraphInstantiateWithFlags", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GraphInstantiate)), Optional: true},
		{Name: "cuGraphLaunch", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GraphLaunch)), Optional: true},
		{Name: "cuGraphDestroy", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GraphDestroy)), Optional: true},
		{Name: "cuGraphExecDestroy", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.GraphExecDestroy)), Optional: true},
	}
}

// Path returns the library's file.
func (d *Driver) Path() string { return d.library.Path() }

// IsFake reports whether the library is scalebench's test fake, which uses no GPU. Its timings do
// not reflect any hardware.
func (d *Driver) IsFake() bool { return d.table.double_notice != nil }

// Version returns the latest CUDA version that the driver supports, "12.4".
func (d *Driver) Version() string { return fmt.Sprintf("%d.%d", d.version/1000, d.version%1000/10) }

// Before reports whether the driver is older than this version of CUDA.
func (d *Driver) Before(major, minor int) bool { return d.version < 1000*major+10*minor }

// Devices returns the number of GPUs that this process sees, which CUDA_VISIBLE_DEVICES may limit.
func (d *Driver) Devices() (int, error) {
	var n C.int
	err := d.check("cuDeviceGetCount", C.cuda_count(d.table, &n))
	return int(n), err
}

// Name returns a GPU's model, "NVIDIA H100 80GB HBM3"; ordinal is 0-based.
func (d *Driver) Name(ordinal int) (string, error) {
	handle, err := d.handle(ordinal)
	if err != nil {
		return "", err
	}
	var text [256]C.char
	if err := d.check("cuDeviceGetName", C.cuda_name(d.table, &text[0], C.int(len(text)), handle)); err != nil {
		return "", err
	}
	return strings.TrimSpace(C.GoString(&text[0])), nil
}

func (d *Driver) handle(ordinal int) (C.CUdevice, error) {
	n, err := d.Devices()
	if err != nil {
		return 0, err
	}
	if ordinal < 0 || ordinal >= n {
		return 0, fmt.Errorf("GPU %d was requested, but this process sees only %d, numbered from 0; check CUDA_VISIBLE_DEVICES and the job's request", ordinal, n)
	}
	var handle C.CUdevice
	err = d.check("cuDeviceGet", C.cuda_device(d.table, &handle, C.int(ordinal)))
	return handle, err
}

// An Error is an error code that the driver returned.
type Error struct {
	Call   string // "cuMemAlloc"
	Number int    // CUresult
	Words  string // the driver's message
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (CUDA error %d)", e.Call, e.Words, e.Number)
}

func (d *Driver) check(call string, r C.CUresult) error {
	if r == 0 {
		return nil
	}
	words := "an error unknown to the driver"
	if s := C.cuda_error(d.table, r); s != nil {
		words = C.GoString(s)
	}
	return &Error{Call: call, Number: int(r), Words: words}
}
