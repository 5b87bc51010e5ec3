package measure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// Transformer is what an MFU is made of beside a rate: the model that is trained, and the
// device that it is trained on.
type Transformer struct {
	Architecture
	Device string `toml:"device"` // as its driver names it
	Dtype  string `toml:"dtype"`  // of the matrix multiplications
	// PeakTFLOPS is the device's peak without sparsity, in TFLOP/s, where it is not
	// known by its name; 0: it is.
	PeakTFLOPS float64 `toml:"peak_tflops"`
	// Recompute is what the program computes again, one of Recomputations; "": not known.
	Recompute string `toml:"recompute"`
}

// longest is more than any model file takes, in bytes.
const longest = 64 << 10

// ReadTransformer reads a model's TOML file.
func ReadTransformer(text string) (Transformer, error) {
	var m Transformer
	if len(text) > longest || strings.Contains(text, "[") { // nothing in it is nested
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

// keys are those of a model's file.
func keys() []string {
	return []string{"layers", "hidden", "heads", "kv_heads", "head_size", "ffn", "vocabulary", "sequence", "gated", "tied", "biases", "positions",
		"experts", "active_experts", "shared_ffn", "window", "global_every", "device", "dtype", "peak_tflops", "recompute"}
}

// dtypes are those whose peaks differ.
var dtypes = []string{"fp32", "tf32", "fp16", "bf16", "fp8", "nvfp4"}

// Peak is the device's, in FLOP/s.
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
