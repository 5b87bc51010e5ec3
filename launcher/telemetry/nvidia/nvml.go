package nvidia

// #include "table.h"
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
)

// This file reads NVIDIA's GPUs through the driver's management library
// (libnvidia-ml.so.1), which every machine with NVIDIA's driver has. It is looked
// for when the program runs; nothing of it is needed to build.
//
// Each value is a call of its own, and each call can fail by itself: a GPU may
// have no energy counter, and a GPU in MIG mode no utilisation. A call can also
// hang, where a GPU has fallen off the bus: call from a goroutine that may be left
// behind.
//
// The package only reads, and knows nothing of scalebench. Its tests use a fake of NVML
// (launcher/gpu/fake); docs/gpu-check.md has its readings of a real GPU.

// Variable names an environment variable with the library's file, instead of the
// system's.
const Variable = "SCALEBENCH_NVML"

// A Library is the loaded NVML, initialised.
type Library struct {
	table   *C.struct_nvml_table
	library *dl.Library
	driver  string
}

// Open loads and initialises the library of Variable, if getenv (os.Getenv) has it,
// else the driver's. The first call on a machine can take seconds: a driver whose
// GPUs nobody uses loads them anew.
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

// Path is the library's file.
func (l *Library) Path() string { return l.library.Path() }

// String names the library with the driver's version, and the double as what it is.
func (l *Library) String() string {
	if l.table.double_notice != nil {
		return "DOUBLE of NVML (not a GPU)"
	}
	return "NVML " + l.driver
}

// Devices is how many GPUs the library shows: those of the node that the job's
// cgroup lets through, whatever CUDA_VISIBLE_DEVICES says.
func (l *Library) Devices() (int, error) {
	var n C.uint
	err := l.check("nvmlDeviceGetCount", C.nvml_count(l.table, &n))
	return int(n), err
}

// Return is nvmlReturn_t.
type Return int

// Those that a caller tells apart.
const (
	NotSupported  Return = 3
	NoPermission  Return = 4
	NotFound      Return = 13 // the driver is older than the function
	GPUIsLost     Return = 15
	Uninitialized Return = 1
)

// Error is a return code other than success.
type Error struct {
	Call   string // "nvmlDeviceGetPowerUsage"
	Return Return
	Words  string // the library's own
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
