package measure

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// By hand, of Llama 3 8B: the layers' matrices and norms are 32·(41943040 + 176160768 +
// 2·4096) = 6979584000 scalars, without norms 6979321856. Attention over the whole
// sequence is 12·32·4096·8192 = 12884901888 FLOPs, its causal half 6442450944. Computed
// again is a third of them:
//
//	torchtitan, full       57914449920 + (6·6979584000 + 12884901888)/3 = 76168585216
//	torchtitan, selective  57914449920 + 12884901888/3                  = 62209417216
//	megatron, full         51470401536 + (6·6979321856 + 6442450944)/3  = 67576528896
//	hf, full               45029548032 + 6·6979584000/3                 = 58988716032
//
// At 5,856 tokens/s of an H100's 989 TFLOP/s, torchtitan's are 45.100 and 36.835 %.
func TestHardwareFLOPs(t *testing.T) {
	for _, tt := range []struct {
		convention, again string
		want              float64
	}{
		{"torchtitan", None, 57914449920},
		{"torchtitan", Full, 76168585216},
		{"torchtitan", Selective, 62209417216},
		{"megatron", Full, 67576528896},
		{"hf", Full, 58988716032},
	} {
		c, err := FindConvention(tt.convention)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.HardwareFLOPs(llama3, tt.again); err != nil || got != tt.want {
			t.Errorf("%s, %s: %.0f, %v; want %.0f", tt.convention, tt.again, got, err, tt.want)
		}
	}
	for flops, want := range map[float64]string{76168585216: "45.10", 62209417216: "36.84"} {
		if x, err := HardwareUtilisation(flops, 5856, 989e12); err != nil || fmt.Sprintf("%.2f", 100*x) != want {
			t.Errorf("%.0f: %v, %v; want %s %%", flops, x, err, want)
		}
	}
	hf, _ := FindConvention("hf")
	palm, _ := FindConvention("palm")
	for want, err := range map[string]error{
		"hf counts no attention, which selective recomputation is of": second(hf.HardwareFLOPs(llama3, Selective)),
		`recompute = "half"; valid: none, selective, full`:            second(palm.HardwareFLOPs(llama3, "half")),
		"layers = 0": second(palm.HardwareFLOPs(Architecture{}, Full)),
		"an HFU of 451 % is impossible: 7.617e+10 FLOPs per token": second(HardwareUtilisation(76168585216, 58560, 989e12)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// gpt is a GPT of Megatron's papers: 4h in the feed-forward, a vocabulary of 51200, 2048 tokens.
func gpt(layers, hidden, heads int) Architecture {
	return Architecture{Layers: layers, Hidden: hidden, Heads: heads, FFN: 4 * hidden, Vocabulary: 51200, Sequence: 2048, Tied: true, Biases: true}
}

// Narayanan et al. (2021), equation 3, have 96·B·s·l·h²·(1 + s/6h + V/16lh) FLOPs an
// iteration with everything in the layers computed again: of GPT-3, a token takes
// 96·96·12288² + 16·96·2048·12288 + 6·51200·12288 = 1433998983168. Norms and biases,
// which they leave out, are less than a ten-thousandth.
func TestHardwareFLOPsOfMegatronsPaper(t *testing.T) {
	palm, err := FindConvention("palm")
	if err != nil {
		t.Fatal(err)
	}
	got, err := palm.HardwareFLOPs(gpt(96, 12288, 96), Full)
	if err != nil || math.Abs(got/1433998983168-1) > 1e-4 {
		t.Errorf("%.0f, %v; want about 1433998983168", got, err)
	}
}

// Korthikanti et al. (2022), table 5: seconds an iteration of 4, 64 and 512 samples on
// 8, 64 and 512 A100s, and the MFU. The first is known to 1.10 s ± 0.005 only.
//
// Their HFU of the same runs, 43.7, 52.8 and 57.0 %, takes attention twice (their
// 72BLsh²(1 + s/3h + v/12hL)); the one forward pass that selective recomputation adds is
// a third of attention's FLOPs, which makes 42.4, 51.9 and 56.5 %:
// of 175B, (1 + 2s/9h + v/12hL)/(1 + s/6h + v/12hL) · 51.4 = 51.9.
func TestUtilisationOfMegatronsPaper(t *testing.T) {
	palm, err := FindConvention("palm")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name             string
		a                Architecture
		samples, gpus    float64
		seconds          float64
		mfu, hfu, within float64 // %
	}{
		{"22B", gpt(48, 6144, 64), 4, 8, 1.10, 41.5, 42.4, 0.2},
		{"175B", gpt(96, 12288, 96), 64, 64, 13.75, 51.4, 51.9, 0.05},
		{"1T", gpt(128, 25600, 160), 512, 512, 71.49, 56.3, 56.5, 0.05},
	} {
		tokens := tt.samples * 2048 / tt.seconds / tt.gpus
		flops, err := palm.FLOPs(tt.a)
		if err != nil {
			t.Fatal(err)
		}
		again, err := palm.HardwareFLOPs(tt.a, Selective)
		if err != nil {
			t.Fatal(err)
		}
		mfu, err1 := Utilisation(flops, tokens, 312e12)
		hfu, err2 := HardwareUtilisation(again, tokens, 312e12)
		if err1 != nil || err2 != nil || math.Abs(100*mfu-tt.mfu) > tt.within || math.Abs(100*hfu-tt.hfu) > tt.within {
			t.Errorf("%s: MFU %.2f %%, HFU %.2f %%, %v, %v; want %g and %g", tt.name, 100*mfu, 100*hfu, err1, err2, tt.mfu, tt.hfu)
		}
	}
}
