package metrics

import (
	"errors"
	"fmt"
	"math"
)

// Telemetry is a batch of one node's resource samples, stored as columns. A value that could not be
// read is null or has no column; it is never 0.
type Telemetry struct {
	Tick    float64           `json:"tick"` // seconds per unit of At
	At      []int64           `json:"at"`   // times of the samples on the writer's clock, in ticks, ascending
	Columns []TelemetryColumn `json:"columns"`
	// Missing gives, by column name, the reason why a quantity could not be read.
	Missing map[string]string `json:"missing,omitempty"`
}

// TelemetryColumn is one quantity over the samples of a batch. Its value at sample i, in Unit, is
// (Least + Above[i]) × Scale.
type TelemetryColumn struct {
	Name   string `json:"name"`         // a Telemetry… constant, or a name from a later version
	Of     string `json:"of,omitempty"` // device, interface, package; "" is the run's processes or the node
	Source string `json:"source"`       // source of the reading, and what it covers if not only the run
	Unit   string `json:"unit,omitempty"`
	// Counter marks a cumulative quantity: differences between samples give the use in between.
	Counter bool     `json:"counter,omitempty"`
	Scale   float64  `json:"scale"`
	Least   int64    `json:"least"`
	Above   []*int64 `json:"above,omitempty"` // null: not read; no list: all values are Least
}

// Names of telemetry columns with their units; c marks counters.
const (
	TelemetryCPU           = "cpu"            // s, c: CPU time
	TelemetryCPUs          = "cpus"           // CPUs that the run's processes may use
	TelemetryOnline        = "cpus_online"    // CPUs of the node
	TelemetryPeriods       = "periods"        // c: periods of the CPU quota
	TelemetryThrottled     = "throttled"      // c: periods in which the quota was used up
	TelemetryMemory        = "memory"         // B: without the page cache
	TelemetryMemoryPeak    = "memory_peak"    // B: sum over the processes
	TelemetryCharged       = "charged_peak"   // B: peak of the cgroup, including the page cache
	TelemetryPageCache     = "page_cache"     // B
	TelemetryRead          = "read"           // B, c: read from storage
	TelemetryReadCalls     = "read_calls"     // B, c: by system calls such as read(2), including from the page cache
	TelemetryWritten       = "written"        // B, c
	TelemetryDeviceRead    = "device_read"    // B, c: of the block device Of
	TelemetryDeviceWritten = "device_written" // B, c
	TelemetryReceived      = "received"       // B, c: of the network interface Of
	TelemetrySent          = "sent"           // B, c
	TelemetryPressure      = "pressure"       // s, c: time in which a task waited for the resource Of: cpu, memory or io
	TelemetryClock         = "clock"          // Hz: mean over CPUs
	TelemetryEnergy        = "energy"         // J, c: of the component Of
	TelemetryPower         = "power"          // W
	TelemetrySampler       = "sampler"        // s, c: CPU time of the sampler itself
)

// Names of columns of GPUs, some of which CPU packages have too.
const (
	TelemetryPresent      = "present"         // 1: the GPU responds; 0: it exists but does not respond
	TelemetryDivided      = "divided"         // 1: the GPU is partitioned (MIG), and other jobs may use other instances
	TelemetryBusy         = "busy"            // fraction of the time in which it was computing
	TelemetryDeviceMemory = "device_memory"   // B: in use
	TelemetryTemperature  = "temperature"     // °C
	TelemetryDeviceClock  = "device_clock"    // Hz: of the multiprocessors
	TelemetryMemoryClock  = "memory_clock"    // Hz
	TelemetryHeld         = "clock_throttled" // s, c: its clock was held down; Of "GPU 0: heat", "package-0: heat"
	TelemetryErrors       = "memory_errors"   // c: Of "GPU 0: corrected"
)

// Limits of a batch. Without them, a line of [], [], … would take many times its length in memory.
const (
	maxSamples = 100_000
	maxColumns = 4096
	maxEntries = 1_000_000
)

func (t *Telemetry) validate() error {
	n := len(t.At)
	switch {
	case n == 0:
		return errors.New("telemetry.at is empty")
	case n > maxSamples || len(t.Columns) > maxColumns || n*len(t.Columns) > maxEntries:
		return fmt.Errorf("telemetry has %d samples of %d columns, want at most %d values", n, len(t.Columns), maxEntries)
	case !(t.Tick >= MinTick && t.Tick <= MaxSeconds):
		return fmt.Errorf("telemetry.tick = %g seconds, want %g to %g", t.Tick, MinTick, float64(MaxSeconds))
	}
	for i, at := range t.At {
		if at < 0 || float64(at)*t.Tick > MaxSeconds {
			return fmt.Errorf("telemetry.at has %d, want 0 to %.0f", at, MaxSeconds/t.Tick)
		}
		if i > 0 && at <= t.At[i-1] {
			return fmt.Errorf("telemetry.at has %d after %d, want ascending times", at, t.At[i-1])
		}
	}
	for i := range t.Columns {
		if err := t.Columns[i].validate(n); err != nil {
			return fmt.Errorf("telemetry.columns[%d]: %w", i, err)
		}
	}
	return nil
}

func (c *TelemetryColumn) validate(n int) error {
	switch {
	case c.Name == "":
		return errors.New("name is empty")
	case c.Above != nil && len(c.Above) != n:
		return fmt.Errorf("above of %s has %d entries, at has %d", c.Name, len(c.Above), n)
	case !(c.Scale >= 1e-12 && c.Scale <= 1e12):
		return fmt.Errorf("scale of %s = %g, want 1e-12 to 1e12", c.Name, c.Scale)
	case c.Least < 0 || c.Least > MaxCount:
		return fmt.Errorf("least of %s = %d, want 0 to %d", c.Name, c.Least, MaxCount)
	}
	for _, above := range c.Above {
		if above != nil && (*above < 0 || *above > MaxCount) {
			return fmt.Errorf("above of %s has %d, want 0 to %d", c.Name, *above, MaxCount)
		}
	}
	return nil
}

// Value returns the value at sample i, in Unit; NaN if it was not read.
func (c *TelemetryColumn) Value(i int) float64 {
	switch {
	case c.Above == nil:
		return float64(c.Least) * c.Scale
	case c.Above[i] == nil:
		return math.NaN()
	}
	return float64(c.Least+*c.Above[i]) * c.Scale
}
