package measure

import (
	"fmt"
	"strings"
)

// This file counts the FLOPs that training a transformer takes for a token, and
// what share of a device's peak that is: model FLOP/s utilisation.
//
// Programs count differently: with or without the token embedding, attention over
// the whole square or its causal half, or not at all. The same run is 26.7 % by one
// and 36.2 % by another. So there is no MFU here without the name of a convention,
// each as the program of that name implements it; MFUs by one convention can be
// compared, whoever printed them. All count FLOPs that the model needs; what is
// computed again for activation checkpointing is in the hardware's utilisation alone,
// the HFU by the same convention (Chowdhery et al., PaLM, 2022, appendix B).

// Architecture is a decoder transformer and what it is trained on.
type Architecture struct {
	Layers     int `toml:"layers" json:"layers,omitzero"`
	Hidden     int `toml:"hidden" json:"hidden,omitzero"`
	Heads      int `toml:"heads" json:"heads,omitzero"`
	KVHeads    int `toml:"kv_heads" json:"kv_heads,omitzero"`     // 0: as many as heads
	HeadSize   int `toml:"head_size" json:"head_size,omitzero"`   // 0: hidden / heads
	FFN        int `toml:"ffn" json:"ffn,omitzero"`               // of an expert, if there are experts
	Vocabulary int `toml:"vocabulary" json:"vocabulary,omitzero"` // as embedded, with padding
	Sequence   int `toml:"sequence" json:"sequence,omitzero"`     // tokens of a sample
	// Gated feed-forward has three matrices, not two: SwiGLU, GeGLU.
	Gated bool `toml:"gated" json:"gated,omitzero"`
	// Tied: the token embedding is the output matrix too.
	Tied bool `toml:"tied" json:"tied,omitzero"`
	// Biases: matrices and norms have them, as in GPT-2.
	Biases bool `toml:"biases" json:"biases,omitzero"`
	// Positions is how many learned position embeddings there are; 0 for none.
	Positions int `toml:"positions" json:"positions,omitzero"`
	// Experts in each layer, of which a token visits Active; 0: dense. SharedFFN is
	// the size of what all tokens visit beside them.
	Experts   int `toml:"experts" json:"experts,omitzero"`
	Active    int `toml:"active_experts" json:"active_experts,omitzero"`
	SharedFFN int `toml:"shared_ffn" json:"shared_ffn,omitzero"`
	// Window is how many tokens a token looks at, itself included; 0: all before it.
	// Every GlobalEvery-th layer looks at all nevertheless; 0: none does.
	Window      int `toml:"window" json:"window,omitzero"`
	GlobalEvery int `toml:"global_every" json:"global_every,omitzero"`
}

// largest is more than any size of a transformer but its sequence: another number is
// a slip.
const largest = 1 << 21

// Check says which of the sizes cannot be.
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

// queries and keys are the sizes of the projections of all heads.
func (a Architecture) queries() float64 { return float64(a.Heads) * a.headSize() }

func (a Architecture) keys() float64 {
	if a.KVHeads == 0 {
		return a.queries()
	}
	return float64(a.KVHeads) * a.headSize()
}

// matrices of a feed-forward block.
func (a Architecture) matrices() float64 {
	if a.Gated {
		return 3
	}
	return 2
}

// attention is the scalars of a layer's four projections.
func (a Architecture) attention() float64 {
	return 2*float64(a.Hidden)*a.queries() + 2*float64(a.Hidden)*a.keys()
}

// feedForward is the scalars of a layer's matrices that a token visits, or of all.
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

// biases are those of a layer, its two norms among them.
func (a Architecture) biases() float64 {
	if !a.Biases {
		return 0
	}
	h := float64(a.Hidden)
	up := a.matrices() - 1
	return a.queries() + 2*a.keys() + h + up*float64(a.FFN) + h + 2*h
}

// embedding is the scalars of the token embedding, and of the output matrix.
func (a Architecture) embedding() float64 { return float64(a.Vocabulary) * float64(a.Hidden) }

// layers are the scalars in all layers: all of them, or those that a token visits.
func (a Architecture) layers(all bool) float64 {
	h := float64(a.Hidden)
	return float64(a.Layers) * (a.attention() + a.feedForward(all) + 2*h + a.biases() + h*float64(a.Experts)) // the router
}

// Parameters are the trainable scalars: all of them, or those that a token visits,
// which are fewer where there are experts. Both count all embeddings.
func (a Architecture) Parameters(all bool) float64 {
	h := float64(a.Hidden)
	n := a.layers(all) + h + a.embedding() + float64(a.Positions)*h
	if a.Biases {
		n += h // of the last norm
	}
	if !a.Tied {
		n += a.embedding()
	}
	return n
}

// scores are the FLOPs of attention's scores and values: 2 for each multiplication of
// either, forward and twice that backward, 12·heads·size in each layer for each token
// looked at: of all layers 12·layers·heads·size·sequence, where there is no window.
func (a Architecture) scores(whole, windowed float64) float64 {
	global := a.Layers
	if a.Window > 0 && a.Window < a.Sequence {
		if global = 0; a.GlobalEvery > 0 {
			global = a.Layers / a.GlobalEvery
		}
	}
	return 12 * a.queries() * (float64(global)*whole + float64(a.Layers-global)*windowed)
}

// square is that of every token looking at the whole sequence, or its whole window.
func (a Architecture) square() float64 {
	return a.scores(float64(a.Sequence), float64(a.Window))
}

// causal is that of tokens looking only at those before them: on average half of the
// sequence, or a window less those that the first tokens lack, window²/2 of a sequence.
func (a Architecture) causal() float64 {
	t, w := float64(a.Sequence), float64(a.Window)
	return a.scores(t/2, w-w*w/(2*t))
}

// count is the FLOPs of a token of training by what takes them.
type count struct {
	layers    float64 // all that is in layers, but attention's scores and values
	attention float64 // scores and values
	rest      float64 // embeddings and the output matrix, the last norm
}

// of is the count of so many scalars, those in layers among them: 6 FLOPs each are a
// multiplication and an addition, forward and twice that backward.
func of(scalars, layers, attention float64) count {
	return count{layers: 6 * layers, attention: attention, rest: 6 * (scalars - layers)}
}

// Convention is a way to count.
type Convention struct {
	Name  string
	Says  string // what it counts, in a line
	count func(Architecture) (count, error)
}

// Conventions are all, in the order in which they are shown.
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

// FindConvention is the convention of that name.
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

// FLOPs are those of a token of training.
func (c Convention) FLOPs(a Architecture) (float64, error) {
	if err := a.Check(); err != nil {
		return 0, err
	}
	n, err := c.count(a)
	return n.layers + n.attention + n.rest, err
}

// Recomputations are what programs compute again in the backward pass rather than
// keep: nothing, the scores and values of attention, or all layers.
const (
	None      = "none"
	Selective = "selective"
	Full      = "full"
)

// Recomputations are all of these words.
func Recomputations() []string { return []string{None, Selective, Full} }

// HardwareFLOPs are those of a token of training and of what is computed again for it:
// one more forward pass, a third of the training's, of the part that is not kept.
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

// Utilisation is the share of a device's peak that is used at so many tokens/s of a device. A
// share above 1 is an error: the device, its peak or the model is another.
func Utilisation(flops, tokensPerSecond, peak float64) (float64, error) {
	return share("MFU", flops, tokensPerSecond, peak)
}

// HardwareUtilisation is the same of HardwareFLOPs.
func HardwareUtilisation(flops, tokensPerSecond, peak float64) (float64, error) {
	return share("HFU", flops, tokensPerSecond, peak)
}

func share(name string, flops, tokensPerSecond, peak float64) (float64, error) {
	if !(flops > 0 && tokensPerSecond > 0 && peak > 0) {
		return 0, fmt.Errorf("%g FLOPs a token, %g tokens/s and a peak of %g FLOP/s; want more than 0", flops, tokensPerSecond, peak)
	}
	x := flops * tokensPerSecond / peak
	if !(x <= 1) {
		return 0, fmt.Errorf("an %s of %.4g %%: %.4g FLOPs a token at %.4g tokens/s are more than the %.4g TFLOP/s that the device can do. Are the architecture, the device and the dtype those of the run, and the rate that of one device?",
			name, 100*x, flops, tokensPerSecond, peak/1e12)
	}
	return x, nil
}
