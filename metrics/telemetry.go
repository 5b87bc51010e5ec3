package metrics

import (
	"errors"
	"fmt"
	"math"
)

// Telemetry is a batch of what one node's sampler has read, as columns. What
// could not be read has no column, or null in its place: never 0.
type Telemetry struct {
	Tick    float64           `json:"tick"` // seconds that one unit of At stands for
	At      []int64           `json:"at"`   // when each sample was taken, in ticks of the writer's clock, ascending
	Columns []TelemetryColumn `json:"columns"`
	// Missing says of what could not be read why, by the column's name.
	Missing map[string]string `json:"missing,omitempty"`
}

// TelemetryColumn is one quantity over the samples of a batch. Entry i is
// (Least + Above[i]) × Scale in Unit.
type TelemetryColumn struct {
	Name   string `json:"name"`         // a Telemetry… constant, or what a later version adds
	Of     string `json:"of,omitempty"` // device, interface, package; "" is the run's processes or the node
	Source string `json:"source"`       // where it was read, and whose it is where that is not the run's own
	Unit   string `json:"unit,omitempty"`
	// Counter: the difference between two entries is what was used between them.
	Counter bool     `json:"counter,omitempty"`
	Scale   float64  `json:"scale"`
	Least   int64    `json:"least"`
	Above   []*int64 `json:"above,omitempty"` // null: not read; no list: every entry is Least
}

// Names of telemetry columns, with their units; c marks counters.
const (
	TelemetryCPU           = "cpu"            // s, c: CPU time
	TelemetryCPUs          = "cpus"           // that the run's processes may use
	TelemetryOnline        = "cpus_online"    // of the node
	TelemetryPeriods       = "periods"        // c: periods of a quota of CPU time
	TelemetryThrottled     = "throttled"      // c: those in which it was used up
	TelemetryMemory        = "memory"         // B: without the page cache
	TelemetryMemoryPeak    = "memory_peak"    // B: of each process, added up
	TelemetryCharged       = "charged_peak"   // B: of the cgroup, page cache included
	TelemetryPageCache     = "page_cache"     // B
	TelemetryRead          = "read"           // B, c: that storage had to deliver
	TelemetryReadCalls     = "read_calls"     // B, c: by read(2) and the like, from the page cache too
	TelemetryWritten       = "written"        // B, c
	TelemetryDeviceRead    = "device_read"    // B, c: Of a block device
	TelemetryDeviceWritten = "device_written" // B, c
	TelemetryReceived      = "received"       // B, c: Of a network interface
	TelemetrySent          = "sent"           // B, c
	TelemetryPressure      = "pressure"       // s, c: some task waited for it; Of cpu, memory or io
	TelemetryClock         = "clock"          // Hz: mean over CPUs
	TelemetryEnergy        = "energy"         // J, c: Of what the counter is of
	TelemetryPower         = "power"          // W
	TelemetrySampler       = "sampler"        // s, c: CPU time of the sampler itself
)

// Names of what is read of GPUs, and of CPU packages where it says so.
const (
	TelemetryPresent      = "present"         // 1: the GPU answers; 0: it is there and does not
	TelemetryDivided      = "divided"         // 1: into instances (MIG), of which others may be somebody else's
	TelemetryBusy         = "busy"            // fraction of the time in which it computed something
	TelemetryDeviceMemory = "device_memory"   // B: in use
	TelemetryTemperature  = "temperature"     // °C
	TelemetryDeviceClock  = "device_clock"    // Hz: of the multiprocessors
	TelemetryMemoryClock  = "memory_clock"    // Hz
	TelemetryHeld         = "clock_throttled" // s, c: its clock was held down; Of "GPU 0: heat", "package-0: heat"
	TelemetryErrors       = "memory_errors"   // c: Of "GPU 0: corrected"
)

// What a batch may hold at most: a line of [], [], … would otherwise become many
// times its size.
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

// Value is entry i in Unit; NaN where it was not read.
func (c *TelemetryColumn) Value(i int) float64 {
	switch {
	case c.Above == nil:
		return float64(c.Least) * c.Scale
	case c.Above[i] == nil:
		return math.NaN()
	}
	return float64(c.Least+*c.Above[i]) * c.Scale
}
