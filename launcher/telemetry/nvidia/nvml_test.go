package nvidia_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/dl"
	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/telemetry/nvidia"
)

// open loads a separate copy of the fake with the GPUs that text describes; set replaces the text.
func open(t *testing.T, text string, without ...string) (l *nvidia.Library, set func(string), err error) {
	t.Helper()
	dir := t.TempDir()
	library, err := gputest.BuildNVML(dir, without...)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "gpus")
	set = func(text string) {
		if err := os.WriteFile(script+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(script+".new", script); err != nil { // a call sees either the old or the new text
			t.Fatal(err)
		}
	}
	set(text)
	t.Setenv(gputest.NVMLVariable, script)
	l, err = nvidia.Open(func(name string) string {
		if name != nvidia.Variable {
			t.Errorf("%s was asked for", name)
		}
		return library
	})
	return l, set, err
}

func TestDevice(t *testing.T) {
	l, _, err := open(t, `time 100
gpu
gpu
power 0:200
average
busy 97
memory 68719476736
temperature 64
clocks 1980 2619
throttled 0 0.25
throttled 1 0.5
ecc 3 1
`)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.Devices(); n != 2 || err != nil || l.String() != "DOUBLE of NVML (not a GPU)" || filepath.Base(l.Path()) != "libnvidia-ml.so.1" {
		t.Errorf("%d GPUs of %s, %s, %v", n, l, l.Path(), err)
	}
	d, err := l.Device(1)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := d.Name(); name != "DOUBLE, not a GPU" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
	if id, err := d.UUID(); id != "GPU-d0ab1e01-0000-0000-0000-000000000000" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	of := func(p nvidia.Policy) func() (int64, error) { return func() (int64, error) { return d.Throttled(p) } }
	for name, c := range map[string]struct {
		read func() (int64, error)
		want int64
	}{
		"energy": {d.Energy, 20_000_000}, "power": {d.Power, 200_000}, "average": {d.AveragePower, 200_000}, // 200 W for 100 s
		"busy": {d.Busy, 97}, "memory": {d.Memory, 64 << 30}, "temperature": {d.Temperature, 64},
		"clock": {d.Clock, 1980}, "memory clock": {d.MemoryClock, 2619},
		"power cap": {of(nvidia.Power), 25e9}, "heat": {of(nvidia.Thermal), 50e9}, "sync boost": {of(nvidia.SyncBoost), 0},
		"corrected":   {func() (int64, error) { return d.Errors(false) }, 3},
		"uncorrected": {func() (int64, error) { return d.Errors(true) }, 1},
	} {
		if v, err := c.read(); v != c.want || err != nil {
			t.Errorf("%s is %d (%v), want %d", name, v, err, c.want)
		}
	}
}

// A call can fail for one GPU or for all, and returns the library's message.
func TestFailures(t *testing.T) {
	l, set, err := open(t, "time 1\ngpu\npower 0:100\ngpu\nmig\npower 0:100\nfail nvmlDeviceGetTotalEnergyConsumption 0 3\nfail nvmlDeviceGetMemoryInfo -1 4\n")
	if err != nil {
		t.Fatal(err)
	}
	expect := func(err error, code nvidia.Return, words string) {
		t.Helper()
		var refused *nvidia.Error
		if !errors.As(err, &refused) || refused.Return != code || !strings.Contains(err.Error(), words) {
			t.Errorf("%v; want %d, %q", err, code, words)
		}
	}
	first, err1 := l.Device(0)
	second, err2 := l.Device(1)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	_, err = first.Energy()
	expect(err, nvidia.NotSupported, "nvmlDeviceGetTotalEnergyConsumption: Not Supported (NVML error 3)")
	if v, err := second.Energy(); v != 100_000 || err != nil {
		t.Errorf("%d mJ, %v", v, err)
	}
	_, err = second.Memory()
	expect(err, nvidia.NoPermission, "Insufficient Permissions")
	_, err = second.Busy()
	expect(err, nvidia.NotSupported, "nvmlDeviceGetUtilizationRates")
	if divided, err := second.MIG(); !divided || err != nil {
		t.Errorf("%t, %v", divided, err)
	}
	_, err = second.AveragePower() // the field's own return code
	expect(err, nvidia.NotSupported, "nvmlDeviceGetFieldValues")
	_, err = second.Errors(true)
	expect(err, nvidia.NotSupported, "nvmlDeviceGetTotalEccErrors")
	_, err = l.Device(2)
	expect(err, 2, "Invalid Argument")
	set("time 2\ngpu\nlost\ngpu\n")
	_, err = first.Power()
	expect(err, nvidia.GPUIsLost, "GPU is lost")
	_, err = l.Device(0)
	expect(err, nvidia.GPUIsLost, "nvmlDeviceGetHandleByIndex: GPU is lost")
}

// Functions that an older driver lacks fail; the others work.
func TestOldDriver(t *testing.T) {
	l, _, err := open(t, "time 1\ngpu\npower 0:100\n", "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetFieldValues", "nvmlDeviceGetMigMode")
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	_, err1 := d.Energy()
	_, err2 := d.AveragePower()
	_, err3 := d.MIG()
	for _, err := range []error{err1, err2, err3} {
		var refused *nvidia.Error
		if !errors.As(err, &refused) || refused.Return != nvidia.NotFound {
			t.Error(err)
		}
	}
	if v, err := d.Power(); v != 100_000 || err != nil {
		t.Errorf("%d mW, %v", v, err)
	}
}

func TestNoLibrary(t *testing.T) {
	if _, err := nvidia.Open(func(string) string { return "/nowhere/libnvidia-ml.so.1" }); err == nil || !strings.Contains(err.Error(), "NVML cannot be loaded: /nowhere/libnvidia-ml.so.1") {
		t.Error(err)
	}
	if _, _, err := open(t, "fail nvmlInit -1 9\n"); err == nil || !strings.Contains(err.Error(), "nvmlInit: Driver Not Loaded (NVML error 9)") {
		t.Error(err)
	}
	_, _, err := open(t, "gpu\n", "nvmlDeviceGetPowerUsage")
	var missing *dl.MissingError
	if !errors.As(err, &missing) || len(missing.Symbols) != 1 || missing.Symbols[0] != "nvmlDeviceGetPowerUsage" {
		t.Error(err)
	}
}

// The fake's counter is the integral of its power curve. The power of a window that covers a quarter of the
// time is not its mean. Values worked out by hand.
func TestPowerCurve(t *testing.T) {
	// 100 W until 10 s, a ramp to 300 W at 20 s, 300 W until 30 s: 1000 + 2000 + 3000 J.
	const curve = "gpu\npower 0:100 10:100 20:300 30:300\n"
	l, set, err := open(t, "time 0\n"+curve)
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]int64{"0": 0, "10": 1_000_000, "15": 1_750_000, "20": 3_000_000, "30": 6_000_000, "40": 9_000_000} {
		set("time " + at + "\n" + curve)
		if v, err := d.Energy(); v != want || err != nil {
			t.Errorf("after %s s: %d mJ (%v), want %d", at, v, err, want)
		}
	}
	// A kernel runs 25 ms at the end of each tenth of a second: 400 W during it and 100 W otherwise are 175 W
	// on average, and a window over the last quarter shows 400 W.
	const pulses = "gpu\nwindow 0.25\npower 0:100 0.075:100 0.075001:400 0.1:400 0.100001:100 0.175:100 0.175001:400 0.2:400\n"
	set("time 0.2\n" + pulses)
	power, err1 := d.Power()
	energy, err2 := d.Energy()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if mean := float64(energy) / 0.2; power < 399_900 || power > 400_000 || mean < 174_900 || mean > 175_100 {
		t.Errorf("%d mW shown, %.0f mW by the counter", power, mean)
	}
}
