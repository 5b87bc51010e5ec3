package study

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// decoders are the built-in language models (decoder-only transformers). Models that are
// named after a published model have its sizes. The small models have the sizes given
// below, use bytes as vocabulary, and are small enough for a CPU.
var decoders = []struct {
	name string
	measure.Architecture
}{
	{"gpt-100k", gpt(2, 64, 4, 128, 256)},
	{"gpt-1m", gpt(5, 128, 4, 256, 256)},
	{"gpt-10m", gpt(6, 384, 6, 256, 256)},
	{"gpt2", gpt(12, 768, 12, 1024, 50257)},
	{"gpt2-xl", gpt(48, 1600, 25, 1024, 50257)},
	{"llama-100k", llama(2, 64, 4, 2, 128, 128, 256)},
	{"llama-1m", llama(4, 128, 4, 2, 512, 256, 256)},
	{"llama-10m", llama(6, 384, 6, 2, 1024, 256, 256)},
	{"llama3.2-1b", tied(llama(16, 2048, 32, 8, 8192, 8192, 128256))},
	{"llama3-8b", llama(32, 4096, 32, 8, 14336, 8192, 128256)},
	{"llama3-70b", llama(80, 8192, 64, 8, 28672, 8192, 128256)},
}

// gpt returns the architecture of GPT-2: learned positions, biases, GELU, tied embeddings.
func gpt(layers, hidden, heads, sequence, vocabulary int) measure.Architecture {
	return measure.Architecture{Layers: layers, Hidden: hidden, Heads: heads, KVHeads: heads, FFN: 4 * hidden, Vocabulary: vocabulary, Sequence: sequence,
		Tied: true, Biases: true, Positions: sequence}
}

// llama returns the architecture of Llama 3: rotary positions, RMSNorm, SwiGLU, grouped
// queries.
func llama(layers, hidden, heads, kvHeads, ffn, sequence, vocabulary int) measure.Architecture {
	return measure.Architecture{Layers: layers, Hidden: hidden, Heads: heads, KVHeads: kvHeads, FFN: ffn, Vocabulary: vocabulary, Sequence: sequence, Gated: true}
}

func tied(a measure.Architecture) measure.Architecture {
	a.Tied = true
	return a
}

// DecoderNames returns the names of the language models, small ones first.
func DecoderNames() []string {
	var names []string
	for _, d := range decoders {
		names = append(names, d.name)
	}
	return names
}

// Decoder returns the language model that workload.model names: "llama-1m" or "llama-1m
// layers=8 vocabulary=512". ok is false if it names none; wrong sizes are an error.
func Decoder(model string) (a measure.Architecture, ok bool, err error) {
	words := strings.Fields(model)
	if len(words) == 0 {
		return a, false, nil
	}
	i := slices.IndexFunc(DecoderNames(), func(name string) bool { return name == words[0] })
	if i < 0 {
		return a, false, nil
	}
	a = decoders[i].Architecture
	sizes := map[string]*int{"layers": &a.Layers, "hidden": &a.Hidden, "heads": &a.Heads, "kv_heads": &a.KVHeads, "ffn": &a.FFN, "vocabulary": &a.Vocabulary,
		"head_size": &a.HeadSize, "window": &a.Window, "global_every": &a.GlobalEvery, "experts": &a.Experts, "active_experts": &a.Active, "shared_ffn": &a.SharedFFN}
	if a.Positions > 0 {
		sizes["positions"] = &a.Positions
		delete(sizes, "kv_heads") // as many key-value heads as heads
	}
	said := map[string]bool{}
	for _, word := range words[1:] {
		name, text, _ := strings.Cut(word, "=")
		n, wrong := strconv.Atoi(text)
		valid := sizeNames(sizes)
		switch {
		case sizes[name] == nil:
			near := ""
			if list := NearWords(name, valid); len(list) > 0 {
				near = "did you mean " + list[0] + "? "
			}
			return a, true, fmt.Errorf("%q is no size of %s; %svalid: %s", word, words[0], near, strings.Join(valid, ", "))
		case wrong != nil:
			return a, true, fmt.Errorf("%q: want a whole number, like %s=%d", word, name, *sizes[name])
		case said[name]:
			return a, true, fmt.Errorf("%s is given twice", name)
		}
		said[name] = true
		*sizes[name] = n
	}
	if a.Positions > 0 {
		a.KVHeads = a.Heads
		a.Sequence = a.Positions
	}
	head := a.HeadSize
	if head == 0 && a.Heads > 0 {
		head = a.Hidden / a.Heads
	}
	switch {
	case a.Check() != nil:
		return a, true, a.Check()
	case a.KVHeads < 1 || a.Heads%a.KVHeads != 0:
		return a, true, fmt.Errorf("heads=%d is no multiple of kv_heads=%d", a.Heads, a.KVHeads)
	case a.Positions == 0 && head%2 != 0:
		return a, true, fmt.Errorf("hidden=%d and heads=%d make heads of %d numbers; rotary positions turn pairs, so that it has to be even", a.Hidden, a.Heads, head)
	case a.Vocabulary < 256:
		return a, true, fmt.Errorf("vocabulary=%d; tokens are bytes, so that it takes at least 256", a.Vocabulary)
	}
	return a, true, nil
}

func sizeNames(sizes map[string]*int) []string {
	var names []string
	for _, name := range []string{"layers", "hidden", "heads", "kv_heads", "ffn", "vocabulary", "positions", "head_size", "window", "global_every", "experts", "active_experts", "shared_ffn"} {
		if sizes[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// expandDecoder fills in the architecture of a language model. It adds problems about
// inconsistent keys to wrong, by TOML path.
func expandDecoder(p *Point, wrong map[string]string) {
	w := &p.Workload.Train
	a, ok, err := Decoder(w.Model)
	switch {
	case err != nil:
		wrong["workload.model"] = err.Error()
	case ok && p.Command.Folder == "" && (a.HeadSize > 0 || a.Window > 0 || a.Experts > 0):
		wrong["workload.model"] = fmt.Sprintf("%q: our own trainers have no head_size, window or experts; leave them out, or train it with framework = [\"command\"]", w.Model)
	case ok && w.Sequence > 0 && a.Positions > 0 && w.Sequence > a.Positions:
		wrong["workload.sequence"] = fmt.Sprintf("%q has positions for %d tokens, and the sequence is of %d; use at most %[2]d, or model = \"%[1]s positions=%[3]d\"", w.Model, a.Positions, w.Sequence)
	case ok:
		if w.Sequence > 0 {
			a.Sequence = w.Sequence
		}
		p.Architecture = a
	case p.Data.Sequences() && w.Sequence == 0:
		wrong["workload.sequence"] = "missing; a sample of a text is so many tokens, like 256 (a language model of ours has its own)"
	}
	if w.MicroBatch > 0 && w.Accumulate == 0 && p.WorkerBatch%w.MicroBatch != 0 {
		wrong["workload.micro_batch"] = fmt.Sprintf("a worker's batch of %d is no multiple of %d", p.WorkerBatch, w.MicroBatch)
	}
	if w.Shard > 0 && p.Workers%w.Shard != 0 {
		wrong["workload.shard"] = fmt.Sprintf("%s cannot be divided into groups of %d; leave such points out with [[exclude]]", number.Count(p.Workers, "worker"), w.Shard)
	}
}
