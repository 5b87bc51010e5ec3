//go:build gpu

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/telemetry/nvidia"
	"github.com/scalebench/scalebench/metrics"
)

// The sampler of the GPU variant reads the fake's GPUs, and marks them as a fake's.
func TestGPUSampled(t *testing.T) {
	dir := runFolder(t, 1)
	if err := os.WriteFile(dir.Attempt(), []byte(`{"sample_every":"100ms"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	library, err := gputest.BuildNVML(folder)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(folder, "gpus")
	if err := os.WriteFile(script, []byte("gpu\npower 0:250\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := supervisor(t, dir)
	cmd.Env = append(cmd.Env, nvidia.Variable+"="+library, gputest.NVMLVariable+"="+script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var sampled []string
	for _, e := range events(t, dir, "telemetry") {
		if e.Telemetry == nil {
			continue
		}
		for _, c := range e.Telemetry.Columns {
			if c.Of == "GPU 0" && (c.Name == metrics.TelemetryEnergy || c.Name == metrics.TelemetryPower) {
				sampled = append(sampled, c.Name+" "+c.Source)
			}
		}
	}
	if text := strings.Join(sampled, "\n"); !strings.Contains(text, "energy DOUBLE of NVML (not a GPU)") || !strings.Contains(text, "power DOUBLE of NVML") {
		t.Errorf("sampled: %q", sampled)
	}
}
