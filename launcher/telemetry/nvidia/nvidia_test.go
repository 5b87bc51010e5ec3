package nvidia_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/telemetry"
	"github.com/scalebench/scalebench/launcher/telemetry/nvidia"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/summary"
)

// A rig is a fake NVML and a reader of it.
type rig struct {
	t      *testing.T
	script string
	read   telemetry.Devices
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	library, err := gputest.BuildNVML(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, script: filepath.Join(dir, "gpus"), read: nvidia.New(func(string) string { return library })}
	t.Setenv(gputest.NVMLVariable, r.script)
	return r
}

func (r *rig) set(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.script+".new", []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(r.script+".new", r.script); err != nil {
		r.t.Fatal(err)
	}
}

func values(list []telemetry.Reading) map[string]float64 {
	m := map[string]float64{}
	for _, r := range list {
		m[r.Name+" "+r.Of] = float64(r.Count) * r.Scale
	}
	return m
}

var near = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(a)) })

func TestRead(t *testing.T) {
	r := newRig(t)
	r.set("time 100\ngpu\npower 0:200\nbusy 97\nmemory 68719476736\ntemperature 64\nclocks 1980 2619\nthrottled 0 0.25\necc 3 0\n" +
		"gpu\naverage\nmig\npower 0:100\nmemory 1000\ntemperature 40\nclocks 345 2619\n")
	list, missing := r.read()
	want := map[string]float64{
		"energy GPU 0": 20_000, "power GPU 0": 200, "present GPU 0": 1, "busy GPU 0": 0.97, "device_memory GPU 0": 64 << 30, "temperature GPU 0": 64,
		"device_clock GPU 0": 1.98e9, "memory_clock GPU 0": 2.619e9, "memory_errors GPU 0: corrected": 3, "memory_errors GPU 0: uncorrected": 0,
		"clock_throttled GPU 0: power cap": 25, "clock_throttled GPU 0: heat": 0, "clock_throttled GPU 0: sync boost": 0,
		"clock_throttled GPU 0: board limit": 0, "clock_throttled GPU 0: reliability limit": 0,
		// A GPU in MIG mode reports no utilisation, and this one lacks ECC.
		"energy GPU 1": 10_000, "power GPU 1": 100, "present GPU 1": 1, "divided GPU 1": 1, "device_memory GPU 1": 1000, "temperature GPU 1": 40,
		"device_clock GPU 1": 3.45e8, "memory_clock GPU 1": 2.619e9,
		"clock_throttled GPU 1: power cap": 0, "clock_throttled GPU 1: heat": 0, "clock_throttled GPU 1: sync boost": 0,
		"clock_throttled GPU 1: board limit": 0, "clock_throttled GPU 1: reliability limit": 0,
	}
	if diff := cmp.Diff(want, values(list), near); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(missing[metrics.TelemetryBusy], "GPU 1: nvmlDeviceGetUtilizationRates: Not Supported") {
		t.Errorf("%v", missing)
	}
	for _, reading := range list {
		if reading.Name != metrics.TelemetryPower {
			continue
		}
		how := map[string]string{"GPU 0": "DOUBLE of NVML (not a GPU), GPU-d0ab1e00-0000-0000-0000-000000000000, power shown",
			"GPU 1": "DOUBLE of NVML (not a GPU), GPU-d0ab1e01-0000-0000-0000-000000000000, mean power over 1 s"}[reading.Of]
		if reading.Source != how {
			t.Errorf("the power of %s is from %q, want %q", reading.Of, reading.Source, how)
		}
	}
}

// play samples once per second, as a sampler does, and returns the node's timeline.
func (r *rig) play(seconds int, script func(second int) string) *summary.SampledNode {
	n := &summary.SampledNode{Host: "n1"}
	for at := range seconds + 1 {
		r.set(fmt.Sprintf("time %d\n%s", at, script(at)))
		list, missing := r.read()
		b := metrics.Telemetry{Tick: 1, At: []int64{int64(at)}, Missing: missing}
		for _, x := range list {
			b.Columns = append(b.Columns, metrics.TelemetryColumn{Name: x.Name, Of: x.Of, Source: x.Source, Unit: x.Unit, Counter: x.Counter, Scale: x.Scale, Least: x.Count})
		}
		n.Add(0, &b)
	}
	return n
}

// A power curve of 6000 J. For slow changes the counter and the integrated power agree. For pulses that the
// power's averaging window always or never sees, the integral is wrong, and the counter's value is used.
func TestEnergy(t *testing.T) {
	r := newRig(t)
	slow := r.play(30, func(int) string { return "gpu\npower 0:100 10:100 20:300 30:300\n" })
	w := summary.Window{From: 0, To: 30}
	e, err := slow.Energy(w)
	if err != nil {
		t.Fatal(err)
	}
	// The reported power is the mean of the last 0.1 s: on the ramp of 20 W/s it is 1 W too low for 10 s, 10 J.
	if p := e.Parts[0]; e.Joules != 6000 || *p.Counter != 6000 || math.Abs(*p.Area-5990) > 1 {
		t.Errorf("%g J, counter %g, area %g; want 6000, 6000, 5990", e.Joules, *p.Counter, *p.Area)
	}

	// 400 W in the last quarter of each tenth of a second and 100 W otherwise are 175 W on average. A line of
	// the fake holds only 6 periods, so its time runs at a tenth of real time and the samples are 0.1 s apart.
	pulses := func(window string) func(int) string {
		return func(at int) string {
			var s strings.Builder
			fmt.Fprintf(&s, "time %g\ngpu\nwindow %s\npower", float64(at)/10, window)
			for i := range 10 {
				from := float64(i) / 10
				fmt.Fprintf(&s, " %f:100 %f:100 %f:400 %f:400", from+1e-6, from+0.075-1e-6, from+0.075+1e-6, from+0.1-1e-6)
			}
			return s.String() + "\n"
		}
	}
	for window, area := range map[string]float64{"0.25": 400 * 9.5, "1": 175 * 9.5} {
		n := r.play(10, pulses(window))
		e, err := n.Energy(summary.Window{From: 0, To: 10})
		if err != nil {
			t.Fatal(err)
		}
		// The counter, 17.5 J in a second of the fake's time, is in joules regardless of our clock. The first
		// sample still shows the 100 W from before: half a period less.
		want := area + 100*0.5
		if p := e.Parts[0]; math.Abs(*p.Counter-175) > 0.1 || math.Abs(*p.Area-want) > 0.01*want || e.Joules != *p.Counter {
			t.Errorf("window %s: %g J, counter %g, area %g; want the counter, 175, %g", window, e.Joules, *p.Counter, *p.Area, want)
		}
	}
}

// A GPU without counter and power is still present: without its energy the total is not the node's. The same
// applies to a GPU that is lost during the run.
func TestNoPartOfTheEnergy(t *testing.T) {
	r := newRig(t)
	w := summary.Window{From: 0, To: 10}
	for name, c := range map[string]struct {
		script func(int) string
		want   string
	}{
		"neither counter nor power": {func(int) string {
			return "gpu\npower 0:100\ngpu\npower 0:100\nfail nvmlDeviceGetTotalEnergyConsumption 1 3\nfail nvmlDeviceGetPowerUsage 1 3\n"
		}, "GPU 1"},
		"lost before it was seen": {func(int) string { return "gpu\npower 0:100\ngpu\nlost\n" }, "GPU 1"},
		"lost during the run": {func(at int) string {
			if at < 5 {
				return "gpu\npower 0:100\ngpu\npower 0:100\n"
			}
			return "gpu\npower 0:100\ngpu\npower 0:100\nlost\n"
		}, "GPU 1"},
	} {
		if e, err := r.play(10, c.script).Energy(w); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %g J, %v; want an error about %s", name, e.Joules, err, c.want)
		}
	}
	// Without the counter, which is not supported before Volta, the power is integrated.
	e, err := r.play(10, func(int) string { return "gpu\npower 0:100\nfail nvmlDeviceGetTotalEnergyConsumption -1 3\n" }).Energy(w)
	if err != nil || math.Abs(e.Joules-1000) > 1e-9 || e.Parts[0].Counter != nil {
		t.Errorf("%+v, %v; want 1000 J by the area", e, err)
	}
}

func TestNoNVML(t *testing.T) {
	list, missing := nvidia.New(func(string) string { return "/nowhere/libnvidia-ml.so.1" })()
	if len(list) != 0 || !strings.Contains(missing[metrics.TelemetryPresent], "/nowhere/libnvidia-ml.so.1") {
		t.Errorf("%v, %v", list, missing)
	}
}

// A hanging call delays neither the sampler nor its end; its readings are missing.
func TestHang(t *testing.T) {
	r := newRig(t)
	r.set("gpu\npower 0:100\nhang nvmlDeviceGetPowerUsage 0\n")
	var out bytes.Buffer
	events, err := metrics.NewWriter(&out, metrics.Start{Writer: "telemetry", WorldSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := telemetry.Start(events, telemetry.Options{Root: t.TempDir(), Every: time.Millisecond, Devices: r.read})
	if !s.Stop() {
		t.Fatal("it did not stop")
	}
	r.set("gpu\n") // let the thread end
	samples := 0
	for reader := metrics.NewReader(&out, "x", 0, 0); ; {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Telemetry == nil {
			continue
		}
		samples++
		for _, c := range e.Telemetry.Columns {
			if c.Name != metrics.TelemetrySampler {
				t.Errorf("%+v was read", c)
			}
		}
		if why := e.Telemetry.Missing[metrics.TelemetryPower]; !strings.Contains(why, "did not answer") {
			t.Errorf("the reason is %q", why)
		}
	}
	if samples == 0 {
		t.Error("no sample")
	}
}
