package measure

import (
	"fmt"
	"strings"
	"testing"
)

// llama3 is Llama 3 8B at a sequence of 8192.
var llama3 = Architecture{Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336, Vocabulary: 128256, Sequence: 8192, Gated: true}

// gpt2 is the smallest GPT-2.
var gpt2 = Architecture{Layers: 12, Hidden: 768, Heads: 12, FFN: 3072, Vocabulary: 50257, Sequence: 1024, Tied: true, Biases: true, Positions: 1024}

// Published counts: Llama 3 8B has 8,030,261,248 parameters, GPT-2 124,439,808;
// nanoGPT, without biases and with a padded vocabulary, prints 123.59M without
// positions. Mixtral 8x7B has 46,702,792,704, of which a token visits 12,879,925,248.
func TestParameters(t *testing.T) {
	nano := gpt2
	nano.Biases, nano.Vocabulary = false, 50304
	mixtral := Architecture{Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336, Vocabulary: 32000, Sequence: 4096, Gated: true, Experts: 8, Active: 2}
	for _, tt := range []struct {
		name string
		a    Architecture
		all  bool
		want float64
	}{
		{"Llama 3 8B", llama3, true, 8030261248},
		{"Llama 3 8B, visited", llama3, false, 8030261248},
		{"GPT-2", gpt2, true, 124439808},
		{"nanoGPT", nano, true, 123587328 + 1024*768},
		{"Mixtral 8x7B", mixtral, true, 46702792704},
		{"Mixtral 8x7B, visited", mixtral, false, 12879925248},
	} {
		if got := tt.a.Parameters(tt.all); got != tt.want {
			t.Errorf("%s: %.0f, want %.0f", tt.name, got, tt.want)
		}
	}
}

// A published line of torchtitan, of Llama 3 8B on H100s, whose peak it takes as
// 989 TFLOP/s: tps: 5,856  tflops: 339.16  mfu: 34.29%. Its rate is rounded to a
// token, which is 0.009 % of it, so that 339.15 is as near as can be.
//
// FLOPs by hand: torchtitan 6·7504924672 + 12·32·4096·8192 = 57914449920; Megatron
// 6·(32·(41943040 + 176160768) + 525336576) + 6·32·4096·8192 = 51470401536; PaLM and
// nanoGPT 6·8030261248 + 12884901888 = 61066469376; Hugging Face 6·7504924672.
func TestOneRunInFiveConventions(t *testing.T) {
	peak, err := PeakOf("NVIDIA H100 80GB HBM3", "bf16")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		convention string
		flops      float64
		tflops     string
		mfu        string
	}{
		{"torchtitan", 57914449920, "339.15", "34.29"},
		{"megatron", 51470401536, "301.41", "30.48"},
		{"palm", 61066469376, "357.61", "36.16"},
		{"nanogpt", 61066469376, "357.61", "36.16"},
		{"hf", 45029548032, "263.69", "26.66"},
	} {
		c, err := FindConvention(tt.convention)
		if err != nil {
			t.Fatal(err)
		}
		flops, err := c.FLOPs(llama3)
		if err != nil || flops != tt.flops {
			t.Errorf("%s: %.0f FLOPs a token, %v; want %.0f", tt.convention, flops, err, tt.flops)
		}
		x, err := Utilisation(flops, 5856, peak.FLOPS)
		if got := fmt.Sprintf("%.2f", 100*x); err != nil || got != tt.mfu {
			t.Errorf("%s: %s %%, %v; want %s", tt.convention, got, err, tt.mfu)
		}
		if got := fmt.Sprintf("%.2f", flops*5856/1e12); got != tt.tflops {
			t.Errorf("%s: %s TFLOP/s, want %s", tt.convention, got, tt.tflops)
		}
	}
}

// At 131072 tokens, torchtitan counts 1.70 times what Megatron does.
func TestLongSequences(t *testing.T) {
	a := llama3
	a.Sequence = 131072
	var flops [2]float64
	for i, name := range []string{"torchtitan", "megatron"} {
		c, err := FindConvention(name)
		if err != nil {
			t.Fatal(err)
		}
		if flops[i], err = c.FLOPs(a); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprintf("%.2f", flops[0]/flops[1]); got != "1.70" {
		t.Errorf("%s times as many, want 1.70", got)
	}
}

// A tied embedding is also the output matrix. torchtitan's count includes it, Hugging Face's
// does not. GPT-2 has 124439808 scalars, 38597376 of them in the token
// embedding, 786432 in positions; attention is 12·12·768·1024 = 113246208.
func TestTied(t *testing.T) {
	for name, want := range map[string]float64{
		"torchtitan": 6*124439808 + 113246208,
		"palm":       6*124439808 + 113246208,
		"nanogpt":    6*(124439808-786432) + 113246208,
		"hf":         6 * (124439808 - 38597376 - 786432),
		// 12 layers of 4·768² and 2·768·3072.
		"megatron": 6*(12*(4*768*768+2*768*3072)+38597376) + 113246208/2,
	} {
		c, err := FindConvention(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.FLOPs(gpt2); err != nil || got != want {
			t.Errorf("%s: %.0f, %v; want %.0f", name, got, err, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  func() error
		want string
	}{
		{"an MFU of another GPU", func() error { _, err := Utilisation(57914449920, 30329, 312e12); return err }, "an MFU of 563 %"},
		{"no rate", func() error { _, err := Utilisation(57914449920, 0, 312e12); return err }, "want more than 0"},
		{"a GPU that is not known", func() error { _, err := PeakOf("NVIDIA GeForce RTX 4090", "bf16"); return err }, `no peak is known of "NVIDIA GeForce RTX 4090"`},
		{"another chip with a like name", func() error { _, err := PeakOf("NVIDIA GH200 480GB", "bf16"); return err }, "no peak is known"},
		{"another variant", func() error { _, err := PeakOf("NVIDIA H200 NVL", "bf16"); return err }, "no peak is known"},
		{"a part of a GPU", func() error { _, err := PeakOf("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "bf16"); return err }, "no peak is known"},
		{"another dtype", func() error { _, err := PeakOf("NVIDIA A100-SXM4-80GB", "fp8"); return err }, "no peak is known"},
		{"with sparsity", func() error { return CheckPeak("NVIDIA H100 80GB HBM3", "bf16", 1979e12) }, "with sparsity, which training does not use; without, it is 989"},
		{"experts in nanoGPT", func() error {
			c, _ := FindConvention("nanogpt")
			a := llama3
			a.Experts, a.Active = 8, 2
			_, err := c.FLOPs(a)
			return err
		}, "counts no experts"},
		{"a size that is missing", func() error { c, _ := FindConvention("palm"); _, err := c.FLOPs(Architecture{Layers: 2}); return err }, "hidden = 0"},
		{"more experts than there are", func() error { a := llama3; a.Experts, a.Active = 8, 9; return a.Check() }, "active_experts = 9 of experts = 8"},
		{"heads that do not divide", func() error { a := llama3; a.Heads = 33; a.KVHeads = 0; return a.Check() }, "no multiple of heads = 33"},
		{"a convention that is not there", func() error { _, err := FindConvention("mine"); return err }, "valid: palm, torchtitan, megatron, nanogpt, hf"},
	} {
		if err := tt.err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	for device, want := range map[string]float64{"NVIDIA H100 PCIe": 756e12, "NVIDIA H100 NVL": 835e12, "NVIDIA A100-PCIE-40GB": 312e12, "NVIDIA GB200": 2500e12, "AMD Instinct MI300X": 1300e12} {
		if p, err := PeakOf(device, "BF16"); err != nil || p.FLOPS != want {
			t.Errorf("%s: %g, %v; want %g", device, p.FLOPS, err, want)
		}
	}
	if err := CheckPeak("NVIDIA H100 80GB HBM3", "bf16", 989.4e12); err != nil {
		t.Error(err)
	}
}
