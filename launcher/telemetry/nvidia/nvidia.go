// Package nvidia reads NVIDIA's GPUs for the sampler through NVML (the binding is nvml.go). It needs cgo and is only in
// the worker's GPU variant.
//
// Each value has a separate call and a separate reason if it fails: a GPU that does not report utilisation may still
// report energy. A GPU that reports nothing is still listed as present, so that the energy of the others is not
// mistaken for the total.
package nvidia

import (
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/launcher/telemetry"
	"github.com/scalebench/scalebench/metrics"
)

// mostGPUs bounds the number of GPUs that are read.
const mostGPUs = 64

// New returns the Devices of a sampler. The first call loads NVML, which can take seconds; getenv is os.Getenv.
func New(getenv func(string) string) telemetry.Devices {
	var library *Library
	uuids := map[int]string{} // a lost GPU keeps its identifier
	return func() ([]telemetry.Reading, map[string]string) {
		s := sample{missing: map[string]string{}}
		if library == nil {
			l, err := Open(getenv)
			if err != nil {
				return nil, map[string]string{metrics.TelemetryPresent: err.Error()}
			}
			library = l
		}
		count, err := library.Devices()
		if err != nil {
			return nil, map[string]string{metrics.TelemetryPresent: err.Error()}
		}
		for i := range min(count, mostGPUs) {
			s.gpu(library, i, uuids)
		}
		return s.list, s.missing
	}
}

type sample struct {
	list    []telemetry.Reading
	missing map[string]string
}

func (s *sample) gpu(library *Library, index int, uuids map[int]string) {
	name := fmt.Sprintf("GPU %d", index)
	d, err := library.Device(index)
	if err == nil && uuids[index] == "" {
		uuids[index], err = d.UUID()
	}
	source := fmt.Sprintf("%s, %s", library, uuids[index])
	if uuids[index] == "" {
		source = library.String()
	}
	if err != nil {
		s.list = append(s.list, telemetry.Gauge(metrics.TelemetryPresent, name, source, "", 1, 0))
		s.lack(metrics.TelemetryPresent, name, err)
		return
	}
	gauge := func(column, unit string, scale float64, read func() (int64, error)) {
		v, err := read()
		if err != nil {
			s.lack(column, name, err)
			return
		}
		s.list = append(s.list, telemetry.Gauge(column, name, source, unit, scale, v))
	}
	counter := func(column, of, unit string, scale float64, read func() (int64, error)) {
		v, err := read()
		if err != nil {
			s.lack(column, of, err)
			return
		}
		s.list = append(s.list, telemetry.Counter(column, of, source, unit, scale, v))
	}
	// Read the energy counter and the power first and close together, so that differences come from the method
	// and not from time.
	counter(metrics.TelemetryEnergy, name, "J", 1e-3, d.Energy)
	watts, err := d.AveragePower()
	how := "mean power over 1 s"
	if err != nil {
		watts, err = d.Power()
		how = "power shown"
	}
	if err == nil {
		s.list = append(s.list, telemetry.Gauge(metrics.TelemetryPower, name, source+", "+how, "W", 1e-3, watts))
	} else {
		s.lack(metrics.TelemetryPower, name, err)
	}
	// The handle of a lost GPU is still valid.
	present := int64(1)
	var refused *Error
	if _, err := d.Temperature(); errors.As(err, &refused) && refused.Return == GPUIsLost {
		present = 0
		s.lack(metrics.TelemetryPresent, name, err)
	}
	s.list = append(s.list, telemetry.Gauge(metrics.TelemetryPresent, name, source, "", 1, present))
	gauge(metrics.TelemetryTemperature, "°C", 1, d.Temperature)
	gauge(metrics.TelemetryDeviceMemory, "B", 1, d.Memory)
	if divided, err := d.MIG(); err == nil && divided {
		s.list = append(s.list, telemetry.Gauge(metrics.TelemetryDivided, name, source, "", 1, 1))
	}
	gauge(metrics.TelemetryBusy, "", 1e-2, d.Busy)
	gauge(metrics.TelemetryDeviceClock, "Hz", 1e6, d.Clock)
	gauge(metrics.TelemetryMemoryClock, "Hz", 1e6, d.MemoryClock)
	for _, policy := range policies {
		counter(metrics.TelemetryHeld, fmt.Sprintf("%s: %v", name, policy), "s", 1e-6, func() (int64, error) {
			ns, err := d.Throttled(policy)
			return ns / 1000, err
		})
	}
	for _, kind := range []string{"corrected", "uncorrected"} {
		counter(metrics.TelemetryErrors, name+": "+kind, "", 1, func() (int64, error) { return d.Errors(kind == "uncorrected") })
	}
}

// lack records why a value of a GPU is missing, for the first GPU only.
func (s *sample) lack(column, of string, err error) {
	if s.missing[column] == "" {
		s.missing[column] = of + ": " + err.Error()
	}
}
