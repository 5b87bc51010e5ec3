package nvidia

// #include "table.h"
import "C"

// A Device is one GPU. Only one goroutine may call its methods at a time.
type Device struct {
	library *Library
	handle  C.uintptr_t
}

// Device returns the GPU with an index in bus order. CUDA may use another order.
func (l *Library) Device(index int) (*Device, error) {
	d := &Device{library: l}
	return d, l.check("nvmlDeviceGetHandleByIndex", C.nvml_handle(l.table, C.uint(index), &d.handle))
}

// UUID returns the GPU's globally unique identifier: "GPU-5fd7f1d7-…".
func (d *Device) UUID() (string, error) {
	var text [96]C.char
	err := d.library.check("nvmlDeviceGetUUID", C.nvml_uuid(d.library.table, d.handle, &text[0], C.uint(len(text))))
	return C.GoString(&text[0]), err
}

// Name returns the model, "NVIDIA H100 80GB HBM3".
func (d *Device) Name() (string, error) {
	var text [96]C.char
	err := d.library.check("nvmlDeviceGetName", C.nvml_name(d.library.table, d.handle, &text[0], C.uint(len(text))))
	return C.GoString(&text[0]), err
}

// Energy returns the energy counter in millijoules since the driver was loaded. Supported since Volta.
func (d *Device) Energy() (int64, error) {
	var v C.ulonglong
	err := d.library.check("nvmlDeviceGetTotalEnergyConsumption", C.nvml_energy(d.library.table, d.handle, &v))
	return int64(v), err
}

// AveragePower returns the mean power over a second, in milliwatts.
func (d *Device) AveragePower() (int64, error) {
	var v C.uint
	err := d.library.check("nvmlDeviceGetFieldValues", C.nvml_average(d.library.table, d.handle, &v))
	return int64(v), err
}

// Power returns the GPU's power in milliwatts. On Ampere and later it is a mean over a second; on
// GA100 and before, a mean over a window that may cover only a quarter of the time.
func (d *Device) Power() (int64, error) {
	var v C.uint
	err := d.library.check("nvmlDeviceGetPowerUsage", C.nvml_power(d.library.table, d.handle, &v))
	return int64(v), err
}

// Busy returns the percentage of the last sampling period, at most a second, in which a kernel was running.
func (d *Device) Busy() (int64, error) {
	var v C.uint
	err := d.library.check("nvmlDeviceGetUtilizationRates", C.nvml_busy(d.library.table, d.handle, &v))
	return int64(v), err
}

// Memory returns how many bytes of the GPU's memory are in use, including the driver's.
func (d *Device) Memory() (int64, error) {
	var v C.ulonglong
	err := d.library.check("nvmlDeviceGetMemoryInfo", C.nvml_memory(d.library.table, d.handle, &v))
	return int64(v), err
}

// Temperature returns the chip's temperature in °C.
func (d *Device) Temperature() (int64, error) {
	var v C.uint
	err := d.library.check("nvmlDeviceGetTemperature", C.nvml_temperature(d.library.table, d.handle, &v))
	return int64(v), err
}

// Clock returns the clock of the multiprocessors, in MHz.
func (d *Device) Clock() (int64, error) { return d.clock(C.nvml_clock_sm) }

// MemoryClock returns the clock of the memory, in MHz.
func (d *Device) MemoryClock() (int64, error) { return d.clock(C.nvml_clock_memory) }

func (d *Device) clock(which C.int) (int64, error) {
	var v C.uint
	err := d.library.check("nvmlDeviceGetClockInfo", C.nvml_clock(d.library.table, d.handle, which, &v))
	return int64(v), err
}

// A Policy is a reason for which clocks are reduced (nvmlPerfPolicyType_t).
type Policy int

// policies lists the policies that keep a GPU below its normal clock, in the library's order, without low
// utilisation.
var policies = []Policy{Power, Thermal, SyncBoost, BoardLimit, Reliability}

const (
	Power       Policy = 0
	Thermal     Policy = 1
	SyncBoost   Policy = 2
	BoardLimit  Policy = 3
	Reliability Policy = 5
)

func (p Policy) String() string {
	return map[Policy]string{Power: "power cap", Thermal: "heat", SyncBoost: "sync boost", BoardLimit: "board limit", Reliability: "reliability limit"}[p]
}

// Throttled returns how long a policy has reduced the clocks, in nanoseconds since the driver was loaded.
// Policies overlap, so their times do not add up.
func (d *Device) Throttled(p Policy) (int64, error) {
	var v C.ulonglong
	err := d.library.check("nvmlDeviceGetViolationStatus", C.nvml_violation(d.library.table, d.handle, C.int(p), &v))
	return int64(v), err
}

// Errors returns the number of memory errors since the driver was loaded, uncorrected or corrected.
func (d *Device) Errors(uncorrected bool) (int64, error) {
	var v C.ulonglong
	kind := C.int(0)
	if uncorrected {
		kind = 1
	}
	err := d.library.check("nvmlDeviceGetTotalEccErrors", C.nvml_ecc(d.library.table, d.handle, kind, &v))
	return int64(v), err
}

// MIG reports whether the GPU is divided into instances. Its values then cover all instances of all users.
func (d *Device) MIG() (bool, error) {
	var v C.uint
	err := d.library.check("nvmlDeviceGetMigMode", C.nvml_mig(d.library.table, d.handle, &v))
	return v == 1, err
}
