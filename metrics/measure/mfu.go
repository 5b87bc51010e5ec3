package measure

import (
	"fmt"
	"strings"
)

// This file counts the FLOPs of training a transformer on one token, and converts them
// to a share of a device's peak: model FLOP/s utilisation (MFU).
//
// Programs count differently: with or without the token embedding; attention over the
// full square, over its causal half, or not at all. The same run has an MFU of 26.7 %
// by one count and 36.2 % by another. Every MFU here therefore names its convention,
// implemented as in the program of that name, so that MFUs of one convention are
// comparable. All conventions count the FLOPs that the model needs. Recomputation for
// activation checkpointing counts only in hardware utilisation (HFU) (Chowdhery et
// al., PaLM, 2022, appendix B).

// An Architecture describes a decoder transformer and its training input.
type Architecture struct {
	Layers     int `toml:"layers" json:"layers,omitzero"`
	Hidden     int `toml:"hidden" json:"hidden,omitzero"`
	Heads      int `toml:"heads" json:"heads,omitzero"`
	KVHeads    int `toml:"kv_heads" json:"kv_heads,omitzero"`     // 0: same as heads
	HeadSize   int `toml:"head_size" json:"head_size,omitzero"`   // 0: hidden / heads
	FFN        int `toml:"ffn" json:"ffn,omitzero"`               // size of one expert's network, if the model has experts
	Vocabulary int `toml:"vocabulary" json:"vocabulary,omitzero"` // including padding
	Sequence   int `toml:"sequence" json:"sequence,omitzero"`     // tokens per sample
	// Gated is set if the feed-forward block has three matrices instead of two:
	// SwiGLU, GeGLU.
	Gated bool `toml:"gated" json:"gated,omitzero"`
	// Tied is set if the output matrix is the token embedding.
	Tied bool `toml:"tied" json:"tied,omitzero"`
	// Biases is set if matrices and norms have biases, as in GPT-2.
	Biases bool `toml:"biases" json:"biases,omitzero"`
	// Positions is the number of learned position embeddings; 0 if none.
	Positions int `toml:"positions" json:"positions,omitzero"`
	// Experts is the number of experts per layer and Active the number that a token
	// visits; 0 for a dense model. SharedFFN is the size of the feed-forward block
	// that all tokens visit in addition.
	Experts   int `toml:"experts" json:"experts,omitzero"`
	Active    int `toml:"active_experts" json:"active_experts,omitzero"`
	SharedFFN int `toml:"shared_ffn" json:"shared_ffn,omitzero"`
	// Window is the number of tokens that a token attends to, including itself; 0
	// means all previous ones. Every GlobalEvery-th layer attends to all tokens; 0
	// means no such layers.
	Window      int `toml:"window" json:"window,omitzero"`
	GlobalEvery int `toml:"global_every" json:"global_every,omitzero"`
}

// largest exceeds every plausible size except the sequence; larger values are typing
// errors.
const largest = 1 << 21

// Check returns an error if a size is impossible.
func (a Architecture) Check() error {
	for _, size := range []struct {
		name  string
		value int
		least int
	}{{"layers", a.Layers, 1}, {"hidden", a.Hidden, 1}, {"heads", a.Heads, 1}, {"kv_heads", a.KVHeads, 0}, {"head_size", a.HeadSize, 0}, {"ffn", a.FFN, 1},
		{"vocabulary", a.Vocabulary, 1}, {"positions", a.Positions, 0}, {"experts", a.Experts, 0}, {"active_experts", a.Active, 0}, {"shared_ffn", a.SharedFFN, 0}} {
		if size.value < size.least || size.value > largest {
			return fmt.Errorf("%s = %d; want a whole number from %d to %d", size.name, size.value, size.least, largest)
		}
	}
	switch {
	case a.Sequence < 1 || a.Sequence > 1<<27:
		return fmt.Errorf("sequence = %d; want the tokens of a sample, 1 or more", a.Sequence)
	case a.HeadSize == 0 && a.Hidden%a.Heads != 0:
		return fmt.Errorf("hidden = %d is no multiple of heads = %d; set head_size", a.Hidden, a.Heads)
	case a.KVHeads > a.Heads:
		return fmt.Errorf("kv_heads = %d is more than heads = %d", a.KVHeads, a.Heads)
	case a.Window < 0 || a.Window > 1<<27:
		return fmt.Errorf("window = %d; want the tokens that a token looks at, 1 or more", a.Window)
	case a.GlobalEvery < 0 || a.GlobalEvery > a.Layers:
		return fmt.Errorf("global_every = %d of layers = %d; want after how many layers one has no window", a.GlobalEvery, a.Layers)
	case a.GlobalEvery > 0 && a.Window == 0:
		return fmt.Errorf("global_every is of a model with windows; set window")
	case a.Experts > 0 && (a.Active < 1 || a.Active > a.Experts):
		return fmt.Errorf("active_experts = %d of experts = %d; want how many a token visits", a.Active, a.Experts)
	case a.Experts > 0 && a.Biases:
		return fmt.Errorf("biases of experts are not counted; leave biases out: they are less than a thousandth of the parameters")
	case a.Experts == 0 && (a.Active > 0 || a.SharedFFN > 0):
		return fmt.Errorf("active_experts and shared_ffn are of a model with experts; set experts")
	}
	return nil
}

func (a Architecture) headSize() float64 {
	if a.HeadSize > 0 {
		return float64(a.HeadSize)
	}
	return float64(a.Hidden / a.Heads)
}

// queries and keys return the total projection sizes over all heads.
func (a Architecture) queries() float64 { return float64(a.Heads) * a.headSize() }

func (a Architecture) keys() float64 {
	if a.KVHeads == 0 {
		return a.queries()
	}
	return float64(a.KVHeads) * a.headSize()
}

// matrices returns the number of matrices in a feed-forward block.
func (a Architecture) matrices() float64 {
	if a.Gated {
		return 3
	}
	return 2
}

// attention returns the scalars of a layer's four projections.
func (a Architecture) attention() float64 {
	return 2*float64(a.Hidden)*a.queries() + 2*float64(a.Hidden)*a.keys()
}

// feedForward returns the scalars of a layer's feed-forward matrices: all of them, or
// only those that a token visits.
func (a Architecture) feedForward(all bool) float64 {
	width := float64(a.FFN)
	if a.Experts > 0 {
		n := a.Active
		if all {
			n = a.Experts
		}
		width = float64(n)*width + float64(a.SharedFFN)
	}
	return a.matrices() * float64(a.Hidden) * width
}

// biases returns the biases of a layer, including its two norms.
func (a Architecture) biases() float64 {
	if !a.Biases {
		return 0
	}
	h := float64(a.Hidden)
	up := a.matrices() - 1
	return a.queries() + 2*a.keys() + h + up*float64(a.FFN) + h + 2*h
}

// embedding returns the scalars of the token embedding, which is also the size of the
// output matrix.
func (a Architecture) embedding() float64 { return float64(a.Vocabulary) * float64(a.Hidden) }

// layers returns the scalars in all layers: all of them, or those that a token visits.
func (a Architecture) layers(all bool) float64 {
	h := float64(a.Hidden)
	return float64(a.Layers) * (a.attention() + a.feedForward(all) + 2*h + a.biases() + h*float64(a.Experts)) // the router
}

// Parameters returns the number of trainable scalars: all of them, or those that a
// token visits (fewer if there are experts). Both include all embeddings.
func (a Architecture) Parameters(all bool) float64 {
	h := float64(a.Hidden)
	n := a.layers(all) + h + a.embedding() + float64(a.Positions)*h
	if a.Biases {
		n += h // biases of the last norm
	}
	if !a.Tied {
		n += a.embedding()
	}
	return n
}

// scores returns the FLOPs per token of attention's scores and values. Each takes 2
// per multiply-add, forward and twice that backward: 12·heads·size per layer and
// attended token. Without a window the total is 12·layers·heads·size·sequence.
func (a Architecture) scores(whole, windowed float64) float64 {
	global := a.Layers
	if a.Window > 0 && a.Window < a.Sequence {
		if global = 0; a.GlobalEvery > 0 {
			global = a.Layers / a.GlobalEvery
		}
	}
	return 12 * a.queries() * (float64(global)*whole + float64(a.Layers-global)*windowed)
}

// square returns scores if every token attends to the whole sequence, or its whole
// window.
func (a Architecture) square() float64 {
	return a.scores(float64(a.Sequence), float64(a.Window))
}

// causal returns scores if tokens attend only to earlier tokens: half the sequence on
// average. With a window, the first tokens lack window²/2 per sequence.
func (a Architecture) causal() float64 {
	t, w := float64(a.Sequence), float64(a.Window)
	return a.scores(t/2, w-w*w/(2*t))
}

// A count is the training FLOPs per token, split by where they occur.
type count struct {
	layers    float64 // all layers, without attention's scores and values
	attention float64 // scores and values
	rest      float64 // embeddings, output matrix, last norm
}

// of counts the FLOPs of so many scalars, of which layers are in layers. Each scalar
// takes 6 FLOPs: one multiply-add forward and two backward.
func of(scalars, layers, attention float64) count {
	return count{layers: 6 * layers, attention: attention, rest: 6 * (scalars - layers)}
}

// A Convention is a way to count FLOPs.
type Convention struct {
	Name  string
	Says  string // one line: what it counts
	count func(Architecture) (count, error)
}

// Conventions lists all conventions in display order.
var Conventions = []Convention{
	{"palm", "6 × all parameters that a token visits, and attention over the whole sequence or window", func(a Architecture) (count, error) {
		return of(a.Parameters(false), a.layers(false), a.square()), nil
	}},
	{"torchtitan", "as palm, without the token embedding if it is not tied", func(a Architecture) (count, error) {
		n := a.Parameters(false)
		if !a.Tied {
			n -= a.embedding()
		}
		return of(n, a.layers(false), a.square()), nil
	}},
	{"megatron", "matrix multiplications alone, and attention as the causal mask leaves it, half of a sequence", func(a Architecture) (count, error) {
		layers := float64(a.Layers) * (a.attention() + a.feedForward(false))
		return of(layers+a.embedding(), layers, a.causal()), nil
	}},
	{"nanogpt", "as palm, without position embeddings", func(a Architecture) (count, error) {
		if a.Experts > 0 {
			return count{}, fmt.Errorf("nanogpt counts no experts; choose palm, torchtitan or megatron")
		}
		if a.Window > 0 {
			return count{}, fmt.Errorf("nanogpt counts no windows; choose palm, torchtitan or megatron")
		}
		return of(a.Parameters(true)-float64(a.Positions)*float64(a.Hidden), a.layers(true), a.square()), nil
	}},
	{"hf", "6 × all parameters but the embeddings, experts that a token does not visit included, and no attention", func(a Architecture) (count, error) {
		return of(a.Parameters(true)-a.embedding()-float64(a.Positions)*float64(a.Hidden), a.layers(true), 0), nil
	}},
}

// FindConvention returns the convention with the given name.
func FindConvention(name string) (Convention, error) {
	var names []string
	for _, c := range Conventions {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Convention{}, fmt.Errorf("unknown convention %q; valid: %s", name, strings.Join(names, ", "))
}

// FLOPs returns the training FLOPs per token.
func (c Convention) FLOPs(a Architecture) (float64, error) {
	if err := a.Check(); err != nil {
		return 0, err
	}
	n, err := c.count(a)
	return n.layers + n.attention + n.rest, err
}

// The values of recompute: what a program recomputes in the backward pass instead of
// storing. Nothing, attention's scores and values, or all layers.
const (
	None      = "none"
	Selective = "selective"
	Full      = "full"
)

// Recomputations returns the valid values of recompute.
func Recomputations() []string { return []string{None, Selective, Full} }

// HardwareFLOPs returns the training FLOPs per token, including recomputation: one
// more forward pass, a third of the training FLOPs, of the recomputed part.
func (c Convention) HardwareFLOPs(a Architecture, again string) (float64, error) {
	flops, err := c.FLOPs(a)
	if err != nil {
		return 0, err
	}
	n, err := c.count(a)
	switch {
	case err != nil:
		return 0, err
	case again == None:
		return flops, nil
	case again == Selective && n.attention == 0:
		return 0, fmt.Errorf("%s counts no attention, which selective recomputation is of; choose another convention", c.Name)
	case again == Selective:
		return flops + n.attention/3, nil
	case again == Full:
		return flops + (n.layers+n.attention)/3, nil
	}
	return 0, fmt.Errorf("recompute = %q; valid: %s", again, strings.Join(Recomputations(), ", "))
}

// Utilisation returns the share of a device's peak used at the given tokens/s per
// device. A share above 1 is an error: the device, its peak or the model is wrong.
func Utilisation(flops, tokensPerSecond, peak float64) (float64, error) {
	return share("MFU", flops, tokensPerSecond, peak)
}

// HardwareUtilisation is Utilisation for HardwareFLOPs.
func HardwareUtilisation(flops, tokensPerSecond, peak float64) (float64, error) {
	return share("HFU", flops, tokensPerSecond, peak)
}

func share(name string, flops, tokensPerSecond, peak float64) (float64, error) {
	if !(flops > 0 && tokensPerSecond > 0 && peak > 0) {
		return 0, fmt.Errorf("%g FLOPs a token, %g tokens/s and a peak of %g FLOP/s; want more than 0", flops, tokensPerSecond, peak)
	}
	x := flops * tokensPerSecond / peak
	if !(x <= 1) {
		return 0, fmt.Errorf("an %s of %.4g %% is impossible: %.4g FLOPs per token at %.4g tokens/s exceed the device's %.4g TFLOP/s; check architecture, device, dtype, and that the rate is one device's",
			name, 100*x, flops, tokensPerSecond, peak/1e12)
	}
	return x, nil
}
