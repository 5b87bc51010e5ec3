package measure

import (
	"strings"
	"testing"
)

func flopsOf(t *testing.T, convention string, a Architecture) float64 {
	t.Helper()
	c, err := FindConvention(convention)
	if err != nil {
		t.Fatal(err)
	}
	flops, err := c.FLOPs(a)
	if err != nil {
		t.Fatal(err)
	}
	return flops
}

// torchtitan publishes by how much its count of gpt-oss went down when it began to count
// windows (pull request 4300): 2,340,421,632 FLOPs a token for 20b, 3,510,632,448 for
// 120b, at 4096 tokens. Every second of 24 and of 36 layers looks at 128:
// 12 · 12·64·64 · (4096 − 128) and 18 · 12·64·64 · 3968.
func TestWindowsAsTorchtitanCountsThem(t *testing.T) {
	for layers, want := range map[int]float64{24: 2340421632, 36: 3510632448} {
		whole := Architecture{Layers: layers, Hidden: 2880, Heads: 64, KVHeads: 8, HeadSize: 64, FFN: 2880, Vocabulary: 201088, Sequence: 4096, Gated: true, Experts: 32, Active: 4}
		windows := whole
		windows.Window, windows.GlobalEvery = 128, 2
		for _, convention := range []string{"torchtitan", "palm"} {
			if got := flopsOf(t, convention, whole) - flopsOf(t, convention, windows); got != want {
				t.Errorf("%s, %d layers: %.0f FLOPs a token fewer, want %.0f", convention, layers, got, want)
			}
		}
	}
}

// MaxText's own test of Gemma 2 (tests of maxtext_utils) has 8192 tokens, windows of 4096
// in every second of 20 layers, 8 heads of 128: for a batch of B, causal attention takes
// 3 · 10 · (2·B·T²·8·128 + 4·B·(T·W − W²/2)·8·128) FLOPs, which is of a token
// 30720 · (2·8192 + 4·3072) = 880803840. Without windows: 20 · 12·1024 · 4096 = 1006632960.
func TestWindowsAsMaxTextCountsThem(t *testing.T) {
	a := Architecture{Layers: 20, Hidden: 1024, Heads: 8, FFN: 4096, Vocabulary: 256, Sequence: 8192}
	whole := flopsOf(t, "megatron", a)
	a.Window, a.GlobalEvery = 4096, 2
	if got := whole - flopsOf(t, "megatron", a); got != 1006632960-880803840 {
		t.Errorf("%.0f FLOPs a token fewer, want %d", got, 1006632960-880803840)
	}
}

// A window of at least the sequence length has no effect. If the number of layers is
// not a multiple of GlobalEvery, the last layers use windows: 22 of 26 layers with
// every sixth global. By hand: 12 · 1024 · (4·8192 + 22·512) = 541065216.
func TestWindowsAtTheEdges(t *testing.T) {
	a := Architecture{Layers: 26, Hidden: 1024, Heads: 8, FFN: 4096, Vocabulary: 256, Sequence: 8192}
	whole, half := a.square(), a.causal()
	for _, window := range []int{8192, 32768} {
		a.Window, a.GlobalEvery = window, 6
		if a.square() != whole || a.causal() != half {
			t.Errorf("window %d: %.0f and %.0f, want %.0f and %.0f", window, a.square(), a.causal(), whole, half)
		}
	}
	if a.Window = 512; a.square() != 541065216 {
		t.Errorf("%.0f, want 541065216", a.square())
	}
	if hf := flopsOf(t, "hf", a); hf != flopsOf(t, "hf", Architecture{Layers: 26, Hidden: 1024, Heads: 8, FFN: 4096, Vocabulary: 256, Sequence: 8192}) {
		t.Error("hf counts no attention")
	}
}

func TestWindowsRefused(t *testing.T) {
	for want, change := range map[string]func(*Architecture){
		"nanogpt counts no windows; choose palm":   func(a *Architecture) { a.Window = 128 },
		"window = -1; want the tokens":             func(a *Architecture) { a.Window = -1 },
		"global_every is of a model with windows":  func(a *Architecture) { a.GlobalEvery = 2 },
		"global_every = 33 of layers = 32":         func(a *Architecture) { a.Window, a.GlobalEvery = 128, 33 },
		"global_every = -1 of layers = 32; want a": func(a *Architecture) { a.Window, a.GlobalEvery = 128, -1 },
	} {
		a := llama3
		change(&a)
		c, err := FindConvention("nanogpt")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.FLOPs(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
