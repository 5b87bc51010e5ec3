package summary

import (
	"math"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// The line that torchtitan logs of Llama 3 8B on H100s: tps 5,856 at 57,914,449,920
// FLOPs a token are 339.15 TFLOP/s, 34.29 % of 989. By Megatron's count, 51,470,401,536,
// the same run is at 30.48 %, by nanoGPT's at 36.16 %, by Hugging Face's at 26.66 %.
func TestUtilisation(t *testing.T) {
	llama := measure.Architecture{Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336, Vocabulary: 128256, Sequence: 8192, Gated: true}
	h100 := []Place{{Environment: &metrics.Environment{GPUs: []metrics.GPU{{Name: "NVIDIA H100 80GB HBM3"}}}}}
	run := func(convention, precision, device string, places []Place, rate, stated float64, more ...metrics.Figure) Outcome {
		c, err := measure.FindConvention(convention)
		if err != nil {
			t.Fatal(err)
		}
		flops, err := c.FLOPs(llama)
		if err != nil {
			t.Fatal(err)
		}
		asked := MFUOf(map[string]any{"workload.mfu": convention, "mfu.flops_per_token": flops, "workload.precision": precision, "workload.peak_tflops": stated})
		name := measure.TokensPerGPU
		if device == "cpu" {
			name = measure.TokensPerSecond + "_per_worker"
		}
		return Summarize(Input{Kind: "train", Workers: 8, World: 8, Device: device, Places: places, MFU: asked,
			Figures: append(more, metrics.Figure{Name: name, Unit: "tokens/s", Value: rate})})
	}
	for convention, want := range map[string]float64{"torchtitan": 34.29, "megatron": 30.48, "nanogpt": 36.16, "palm": 36.16, "hf": 26.66} {
		r := run(convention, "bf16", "gpu", h100, 5856, 0)
		if got := 100 * r.Values["mfu_"+convention]; math.Abs(got-want) > 0.005 {
			t.Errorf("%s: %.3f %%, want %g", convention, got, want)
		}
		if !strings.Contains(strings.Join(r.Warnings, "\n"), "the peak of H100, 989 TFLOP/s (torchtitan's") {
			t.Errorf("%q", r.Warnings)
		}
	}
	gemm := metrics.Figure{Name: "gemm_flops", Unit: "FLOP/s", Value: 579144499200} // 10 tokens/s
	if r := run("torchtitan", "fp32", "cpu", nil, 4, 0, gemm); math.Abs(r.Values["mfu_torchtitan"]-0.4) > 1e-9 || !strings.Contains(strings.Join(r.Warnings, "\n"), "in a matrix multiplication before or after the training, not a maker's figure") {
		t.Error(r.Values, r.Warnings)
	}
	if r := run("torchtitan", "fp32", "cpu", nil, 5, 0.579144499200); math.Abs(r.Values["mfu_torchtitan"]-0.5) > 1e-9 {
		t.Error(r.Values, r.Warnings)
	}
	l4 := []Place{{Environment: &metrics.Environment{GPUs: []metrics.GPU{{Name: "NVIDIA L4"}}}}}
	for why, r := range map[string]Outcome{
		"exceed the device's 989 TFLOP/s":                           run("torchtitan", "bf16", "gpu", h100, 58560, 0),
		"no peak is known of \"NVIDIA L4\"":                         run("torchtitan", "bf16", "gpu", l4, 100, 0),
		"no peak is known of \"NVIDIA H100 80GB HBM3\" in \"fp32\"": run("torchtitan", "fp32", "gpu", h100, 100, 0),
		"no peak is known of a CPU":                                 run("torchtitan", "fp32", "cpu", nil, 5, 0),
		"with sparsity":                                             run("torchtitan", "bf16", "gpu", h100, 5856, 1979),
	} {
		if _, has := r.Values["mfu_torchtitan"]; has || !strings.Contains(r.Why["mfu_torchtitan"], why) {
			t.Errorf("%s: %v, %q", why, r.Values, r.Why["mfu_torchtitan"])
		}
	}
	// With all layers computed again, a token takes 76,168,585,216 FLOPs (package mfu): at
	// 5,856 tokens/s 45.10 % of 989 TFLOP/s. If it is unknown what is recomputed, the HFU
	// is missing.
	for hardware, want := range map[float64]float64{76168585216: 45.10, 0: 0} {
		asked := MFUOf(map[string]any{"workload.mfu": "torchtitan", "mfu.flops_per_token": 57914449920.0, "mfu.hardware_flops_per_token": hardware, "workload.precision": "bf16"})
		r := Summarize(Input{Kind: "train", Workers: 8, World: 8, Device: "gpu", Places: h100, MFU: asked, Figures: []metrics.Figure{{Name: measure.TokensPerGPU, Unit: "tokens/s", Value: 5856}}})
		if got := 100 * r.Values["hfu_torchtitan"]; math.Abs(got-want) > 0.005 || (r.Why["hfu_torchtitan"] != "") != (hardware == 0) {
			t.Errorf("%g: %.3f %%, %q", hardware, got, r.Why["hfu_torchtitan"])
		}
		if got := 100 * r.Values["mfu_torchtitan"]; math.Abs(got-34.29) > 0.005 {
			t.Errorf("%g: an MFU of %.3f %%", hardware, got)
		}
	}
	if MFUOf(map[string]any{"workload.mfu": "palm"}) != nil || MFUOf(nil) != nil {
		t.Error("an MFU without FLOPs")
	}
}
