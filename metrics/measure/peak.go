package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// A Peak is a device's maximum rate of matrix multiplications without sparsity.
type Peak struct {
	Device string // words of the name that the driver reports
	Dtype  string
	FLOPS  float64 // FLOP/s
	Source string
}

const (
	byTorchtitan = "torchtitan's get_peak_flops, after the maker's data sheet"
	byRecipes    = "NVIDIA's DGX Cloud benchmarking recipes"
	bySheet      = "the maker's data sheet, halved where it is with sparsity"
)

// devicePeaks lists the known peaks. Sources differ: NVIDIA's recipes give 2450
// TFLOP/s for GB200 and GB300, AMD's data sheet 1307 for MI300X.
var devicePeaks = []Peak{
	{"A100", "bf16", 312e12, byTorchtitan},
	{"A100 PCIe", "bf16", 312e12, byTorchtitan},
	{"H100 NVL", "bf16", 835e12, byTorchtitan},
	{"H100 PCIe", "bf16", 756e12, byTorchtitan},
	{"H100", "bf16", 989e12, byTorchtitan},
	{"H100", "fp8", 1979e12, bySheet},
	{"H200", "bf16", 989e12, byTorchtitan},
	{"B200", "bf16", 2250e12, byTorchtitan},
	{"B200", "fp8", 4500e12, bySheet},
	{"B200", "nvfp4", 9000e12, bySheet},
	{"B300", "bf16", 2250e12, byTorchtitan},
	{"GB200", "bf16", 2500e12, byTorchtitan},
	{"GB300", "bf16", 2500e12, byTorchtitan},
	{"GB300", "nvfp4", 14700e12, byRecipes},
	{"MI300X", "bf16", 1300e12, byTorchtitan},
	{"MI355X", "bf16", 2500e12, byTorchtitan},
}

// variants are words that mark a different device from the one without them. A MIG
// device, for example, is only part of a GPU.
var variants = []string{"nvl", "pcie", "mig"}

// words splits a device name into words.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// PeakOf returns the peak of a device, by its driver's name. Unknown devices are an
// error, since another device's peak would give a wrong MFU.
func PeakOf(device, dtype string) (Peak, error) {
	has := words(device)
	for _, p := range devicePeaks {
		want := words(p.Device)
		lacks := func(w string) bool { return !slices.Contains(has, w) }
		other := func(w string) bool { return slices.Contains(has, w) && !slices.Contains(want, w) }
		if p.Dtype == strings.ToLower(dtype) && !slices.ContainsFunc(want, lacks) && !slices.ContainsFunc(variants, other) {
			return p, nil
		}
	}
	var known []string
	for _, p := range devicePeaks {
		known = append(known, p.Device+" "+p.Dtype)
	}
	return Peak{}, fmt.Errorf("no peak is known of %q in %q; known: %s. Give the device's peak without sparsity", device, dtype, strings.Join(known, ", "))
}

// CheckPeak rejects a peak that assumes sparsity: twice the known one.
func CheckPeak(device, dtype string, flops float64) error {
	if !(flops > 0) || math.IsInf(flops, 0) {
		return fmt.Errorf("a peak of %g FLOP/s; want more than 0", flops)
	}
	p, err := PeakOf(device, dtype)
	if err == nil && math.Abs(flops/p.FLOPS-2) < 0.05 {
		return fmt.Errorf("a peak of %.4g TFLOP/s is that of %s in %s with sparsity, which training does not use; without, it is %.4g", flops/1e12, p.Device, p.Dtype, p.FLOPS/1e12)
	}
	return nil
}
