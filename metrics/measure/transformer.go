package measure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// A Transformer holds the model and the device, from which an MFU follows given a rate.
type Transformer struct {
	Architecture
	Device string `toml:"device"` // as its driver names it
	Dtype  string `toml:"dtype"`  // of the matrix multiplications
	// PeakTFLOPS is the device's peak without sparsity, in TFLOP/s; 0 means the known
	// peak of Device.
	PeakTFLOPS float64 `toml:"peak_tflops"`
	// Recompute names what the program recomputes, one of Recomputations; "" if unknown.
	Recompute string `toml:"recompute"`
}

// longest is the largest accepted model file, in bytes.
const longest = 64 << 10

// ReadTransformer reads a model from TOML.
func ReadTransformer(text string) (Transformer, error) {
	var m Transformer
	if len(text) > longest || strings.Contains(text, "[") { // a model has no tables or arrays
		return m, fmt.Errorf("not a model: want lines such as layers = 32, of %s", strings.Join(keys(), ", "))
	}
	md, err := toml.Decode(text, &m)
	if err != nil {
		return m, err
	}
	if unknown := md.Undecoded(); len(unknown) > 0 {
		return m, fmt.Errorf("unknown key %s; valid: %s", unknown[0], strings.Join(keys(), ", "))
	}
	if err := m.Check(); err != nil {
		return m, err
	}
	if m.Recompute != "" && !slices.Contains(Recomputations(), m.Recompute) {
		return m, fmt.Errorf("recompute = %q; valid: %s", m.Recompute, strings.Join(Recomputations(), ", "))
	}
	_, err = m.Peak()
	return m, err
}

// keys returns the valid keys of a model file.
func keys() []string {
	return []string{"layers", "hidden", "heads", "kv_heads", "head_size", "ffn", "vocabulary", "sequence", "gated", "tied", "biases", "positions",
		"experts", "active_experts", "shared_ffn", "window", "global_every", "device", "dtype", "peak_tflops", "recompute"}
}

// dtypes lists the types with different peaks.
var dtypes = []string{"fp32", "tf32", "fp16", "bf16", "fp8", "nvfp4"}

// Peak returns the device's peak in FLOP/s.
func (m Transformer) Peak() (float64, error) {
	switch {
	case m.Device == "":
		return 0, fmt.Errorf("no device; name it as its driver does: device = \"NVIDIA H100 80GB HBM3\"")
	case !slices.Contains(dtypes, m.Dtype):
		return 0, fmt.Errorf("dtype = %q; valid: %s", m.Dtype, strings.Join(dtypes, ", "))
	case m.PeakTFLOPS != 0:
		return m.PeakTFLOPS * 1e12, CheckPeak(m.Device, m.Dtype, m.PeakTFLOPS*1e12)
	}
	p, err := PeakOf(m.Device, m.Dtype)
	if err != nil {
		return 0, fmt.Errorf("%w as peak_tflops", err)
	}
	return p.FLOPS, nil
}
