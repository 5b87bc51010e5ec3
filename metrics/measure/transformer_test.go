package measure

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

const llama3File = `
device = "NVIDIA H100 80GB HBM3"
dtype = "bf16"
layers = 32
hidden = 4096
heads = 32
kv_heads = 8
ffn = 14336
gated = true
vocabulary = 128256
sequence = 8192
`

func TestRead(t *testing.T) {
	m, err := ReadTransformer(llama3File)
	if err != nil || m.Architecture != llama3 {
		t.Errorf("%+v, %v", m, err)
	}
	if peak, err := m.Peak(); err != nil || peak != 989e12 {
		t.Errorf("peak %g, %v", peak, err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{"kv_heads", "kv_head", "unknown key kv_head; valid: layers, hidden"},
		{"layers = 32", "layers = 0", "layers = 0; want a whole number from 1"},
		{"layers = 32", "layers = 3.5", "incompatible types"},
		{`"bf16"`, `"int8"`, `dtype = "int8"; valid: fp32`},
		{"NVIDIA H100 80GB HBM3", "RTX 4090", `no peak is known of "RTX 4090" in "bf16"`},
		{"layers = 32", "peak_tflops = 1979\nlayers = 32", "with sparsity"},
		{"layers = 32", "peak_tflops = -1\nlayers = 32", "a peak of -1e+12 FLOP/s; want more than 0"},
		{"layers = 32", "[model]\nlayers = 32", "not a model: want lines such as layers = 32"},
		{`device = "NVIDIA H100 80GB HBM3"`, "", "no device; name it"},
	} {
		if _, err := ReadTransformer(strings.Replace(llama3File, tt.old, tt.new, 1)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.new, err, tt.want)
		}
	}
	own := strings.Replace(strings.Replace(llama3File, "NVIDIA H100 80GB HBM3", "RTX 4090", 1), "layers", "peak_tflops = 165.2\nlayers", 1)
	if m, err = ReadTransformer(own); err != nil || m.PeakTFLOPS != 165.2 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Errors list exactly the valid keys.
func TestKeys(t *testing.T) {
	var tags []string
	for _, of := range []reflect.Type{reflect.TypeFor[Architecture](), reflect.TypeFor[Transformer]()} {
		for field := range of.Fields() {
			if tag := field.Tag.Get("toml"); tag != "" {
				tags = append(tags, tag)
			}
		}
	}
	slices.Sort(tags)
	if want := slices.Sorted(slices.Values(keys())); !slices.Equal(tags, want) {
		t.Errorf("%q, want %q", tags, want)
	}
}
