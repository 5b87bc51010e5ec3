package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
)

// As NVIDIA's MIG User Guide and nvidia-smi's manual show the output.
func TestGPUs(t *testing.T) {
	list := parseGPUs("NVIDIA A100-SXM4-40GB, GPU-1, 535.54.03, 40960\nNVIDIA A100-SXM4-40GB, GPU-2, 535.54.03, 40960\nTesla V100, GPU-3, 535.54.03, [N/A]\n")
	addLimits(list, "GPU-1, 400.00, Enabled\nGPU-2, 300.00, Disabled\nGPU-3, [N/A], [N/A]\n")
	addProfiles(list, `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)
  MIG 3g.20gb     Device  0: (UUID: MIG-a)
  MIG 1g.5gb      Device  1: (UUID: MIG-b)
  MIG 1g.5gb      Device  2: (UUID: MIG-c)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)
GPU 2: Tesla V100 (UUID: GPU-3)
`)
	want := []metrics.GPU{
		{Name: "NVIDIA A100-SXM4-40GB", UUID: "GPU-1", Driver: "535.54.03", MemoryBytes: 40 << 30, MIG: "1g.5gb+3g.20gb", PowerLimitWatts: 400},
		{Name: "NVIDIA A100-SXM4-40GB", UUID: "GPU-2", Driver: "535.54.03", MemoryBytes: 40 << 30, MIG: "off", PowerLimitWatts: 300},
		{Name: "Tesla V100", UUID: "GPU-3", Driver: "535.54.03", MIG: "off"},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	// A driver that knows neither leaves them unknown.
	old := parseGPUs("Tesla K80, GPU-1, 390.1, 11441\n")
	addLimits(old, "")
	addProfiles(old, "")
	if old[0].MIG != "" || old[0].PowerLimitWatts != 0 {
		t.Errorf("%+v", old[0])
	}
}
