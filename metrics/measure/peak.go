package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Peak is what a device can do at most in matrix multiplications without sparsity.
type Peak struct {
	Device string // its words in the name that the driver gives
	Dtype  string
	FLOPS  float64 // FLOP/s
	Source string
}

const (
	byTorchtitan = "torchtitan's get_peak_flops, after the maker's data sheet"
	byRecipes    = "NVIDIA's DGX Cloud benchmarking recipes"
	bySheet      = "the maker's data sheet, halved where it is with sparsity"
)

// devicePeaks are those that are known. Sources differ: GB200 and GB300 have 2450 TFLOP/s
// in NVIDIA's recipes, MI300X 1307 in AMD's sheet.
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

// variants are words that name another device than the one without them: a MIG
// device is a part of one.
var variants = []string{"nvl", "pcie", "mig"}

// words are those of a device's name.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// PeakOf is the peak of a device, by the name that its driver gives it. One that is
// not known has none: another's would make a wrong MFU.
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

// CheckPeak refuses a stated peak that is one with sparsity: twice the known one.
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
