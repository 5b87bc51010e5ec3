package nvidia

// #include "table.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
)

// This file reads NVIDIA's GPUs through the driver's management library NVML (libnvidia-ml.so.1), which every
// machine with NVIDIA's driver has. The library is loaded at run time and not needed to build.
//
// Each value has a separate call, and each call can fail alone: a GPU may have no energy counter, and a GPU in
// MIG mode no utilisation. A call can also hang if a GPU has fallen off the bus, so call from a goroutine that
// may be abandoned.
//
// The package only reads and is independent of scalebench. Its tests use a fake of NVML (launcher/gpu/gputest);
// launcher/gpucheck/record.md has readings of a real GPU.

// Variable names the environment variable with the path of the library. It replaces the system's library.
const Variable = "SCALEBENCH_NVML"

// A Library is a loaded and initialised NVML.
type Library struct {
	table   *C.struct_nvml_table
	library *dl.Library
	driver  string
}

// Open loads and initialises the library that Variable names in getenv (os.Getenv), or else the driver's. The
// first call on a machine can take seconds: an idle driver initialises its GPUs first.
func Open(getenv func(string) string) (*Library, error) {
	candidates := []string{"libnvidia-ml.so.1"}
	if own := getenv(Variable); own != "" {
		candidates = []string{own}
	}
	// Never freed: a Library lives as long as the process.
	l := &Library{table: (*C.struct_nvml_table)(C.calloc(1, C.sizeof_struct_nvml_table))}
	var err error
	if l.library, err = dl.Open("NVML", candidates, l.symbols()); err != nil {
		C.free(unsafe.Pointer(l.table))
		return nil, err
	}
	if err := l.check("nvmlInit", C.nvml_init(l.table)); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Path(), err)
	}
	var text [80]C.char
	if err := l.check("nvmlSystemGetDriverVersion", C.nvml_driver(l.table, &text[0], C.uint(len(text)))); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Path(), err)
	}
	l.driver = strings.TrimSpace(C.GoString(&text[0]))
	return l, nil
}

func (l *Library) symbols() []dl.Symbol {
	t := l.table
	return []dl.Symbol{
		{Name: "nvmlInit_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Init))},
		{Name: "nvmlErrorString", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.ErrorString))},
		{Name: "nvmlSystemGetDriverVersion", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.DriverVersion))},
		{Name: "nvmlDeviceGetCount_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Count))},
		{Name: "nvmlDeviceGetHandleByIndex_v2", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Handle))},
		{Name: "nvmlDeviceGetUUID", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.UUID))},
		{Name: "nvmlDeviceGetName", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Name))},
		{Name: "nvmlDeviceGetPowerUsage", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Power))},
		{Name: "nvmlDeviceGetUtilizationRates", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Utilization))},
		{Name: "nvmlDeviceGetMemoryInfo", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Memory))},
		{Name: "nvmlDeviceGetTemperature", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Temperature))},
		{Name: "nvmlDeviceGetClockInfo", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Clock))},
		{Name: "nvmlDeviceGetTotalEnergyConsumption", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Energy)), Optional: true},
		{Name: "nvmlDeviceGetFieldValues", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Fields)), Optional: true},
		{Name: "nvmlDeviceGetViolationStatus", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.Violation)), Optional: true},
		{Name: "nvmlDeviceGetTotalEccErrors", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.ECC)), Optional: true},
		{Name: "nvmlDeviceGetMigMode", Address: (*unsafe.Pointer)(unsafe.Pointer(&t.MIG)), Optional: true},
		{Name: "scalebenchDouble", Address: &t.double_notice, Optional: true},
	}
}

// Path returns the library's file.
func (l *Library) Path() string { return l.library.Path() }

// String returns the library's name with the driver's version, or says that it is the test fake.
func (l *Library) String() string {
	if l.table.double_notice != nil {
		return "DOUBLE of NVML (not a GPU)"
	}
	return "NVML " + l.driver
}

// Devices returns the number of GPUs that the library shows: all GPUs of the node that the job's cgroup allows,
// regardless of CUDA_VISIBLE_DEVICES.
func (l *Library) Devices() (int, error) {
	var n C.uint
	err := l.check("nvmlDeviceGetCount", C.nvml_count(l.table, &n))
	return int(n), err
}

// A Return is an nvmlReturn_t.
type Return int

// Return codes that callers distinguish.
const (
	NotSupported  Return = 3
	NoPermission  Return = 4
	NotFound      Return = 13 // the driver is older than the function
	GPUIsLost     Return = 15
	Uninitialized Return = 1
)

// An Error is a return code other than success.
type Error struct {
	Call   string // "nvmlDeviceGetPowerUsage"
	Return Return
	Words  string // the library's message
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (NVML error %d)", e.Call, e.Words, int(e.Return))
}

func (l *Library) check(call string, r C.nvmlReturn_t) error {
	if r == 0 {
		return nil
	}
	e := &Error{Call: call, Return: Return(r), Words: "an error unknown to the library"}
	if s := C.nvml_error(l.table, r); s != nil {
		e.Words = C.GoString(s)
	}
	return e
}
