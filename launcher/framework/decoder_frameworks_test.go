//go:build python && frameworks

package framework

import (
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// TestFrameworksDecoderSteps is TestDecoderSteps for the frameworks with separate environments, in each layout
// that they support.
func TestFrameworksDecoderSteps(t *testing.T) {
	for name, c := range map[string]struct {
		framework, module, model string
		workers                  int
		change                   func(*study.Train)
	}{
		"pytorch-fsdp": {pytorchFSDPName, "pytorch_fsdp", "llama-100k", 2, func(*study.Train) {}},
		"pytorch-fsdp, zero 2": {pytorchFSDPName, "pytorch_fsdp", "gpt-100k", 2, func(w *study.Train) {
			w.Zero, w.MicroBatch, w.Checkpointing = 2, 2, true
		}},
		"pytorch-fsdp, hybrid": {pytorchFSDPName, "pytorch_fsdp", "llama-100k", 4, func(w *study.Train) {
			w.Shard, w.MicroBatch = 2, 1
		}},
		"deepspeed":         {deepspeedName, "deepspeed_zero", "llama-100k", 2, func(w *study.Train) { w.MicroBatch = 2 }},
		"deepspeed, zero 1": {deepspeedName, "deepspeed_zero", "llama-100k", 2, func(w *study.Train) { w.Zero = 1 }},
		"deepspeed, zero 2": {deepspeedName, "deepspeed_zero", "gpt-100k", 2, func(w *study.Train) {
			w.Zero, w.MicroBatch, w.Checkpointing = 2, 2, true
		}},
		// DeepSpeed keeps parameters of less than 100,000 numbers whole.
		"deepspeed, zero 3": {deepspeedName, "deepspeed_zero", "gpt-100k hidden=512", 2, func(w *study.Train) {
			w.Zero, w.MicroBatch, w.Checkpointing = 3, 2, true
		}},
		"deepspeed, zero 3, adamw": {deepspeedName, "deepspeed_zero", "llama-100k hidden=512", 2, func(w *study.Train) { adam(w, "adamw"); w.Zero = 3 }},
		"deepspeed, zero 1, adam":  {deepspeedName, "deepspeed_zero", "llama-100k", 2, func(w *study.Train) { adam(w, "adam"); w.Zero = 1 }},
		"jax":                      {jaxName, "jax_trainer", "llama-100k", 2, func(*study.Train) {}},
		"jax, zero 3":              {jaxName, "jax_trainer", "gpt-100k", 2, func(w *study.Train) { w.Zero, w.MicroBatch, w.Checkpointing = 3, 2, true }},
		"jax, hybrid":              {jaxName, "jax_trainer", "llama-100k", 4, func(w *study.Train) { w.Zero, w.Shard = 3, 2 }},
		// Adam moves a weight by the learning rate even if its gradient is tiny: see TestStepsAsPyTorch, which
		// has the same ε.
		"jax, adam":  {jaxName, "jax_trainer", "llama-100k", 2, func(w *study.Train) { adam(w, "adam"); w.Zero = 1 }},
		"jax, adamw": {jaxName, "jax_trainer", "llama-100k", 2, func(w *study.Train) { adam(w, "adamw"); w.Zero = 3 }},

		"pytorch-fsdp, accumulate":      {pytorchFSDPName, "pytorch_fsdp", "llama-100k", 2, inFour},
		"deepspeed, accumulate":         {deepspeedName, "deepspeed_zero", "llama-100k", 2, inFour},
		"deepspeed, zero 2, accumulate": {deepspeedName, "deepspeed_zero", "llama-100k", 2, func(w *study.Train) { inFour(w); w.Zero = 2 }},
		"jax, accumulate":               {jaxName, "jax_trainer", "llama-100k", 2, inFour},
	} {
		t.Run(name, func(t *testing.T) {
			p := decoderPoint(t, c.model, c.workers)
			p.Framework = c.framework
			c.change(&p.Workload.Train)
			f, err := Find(c.framework)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := f.Check(p); len(wrong) > 0 {
				t.Errorf("check refuses it: %v", wrong)
			}
			decoderSteps(t, c.module, p, interpreterOf(t, c.framework), interpreterOf(t, pytorchFSDPName))
		})
	}
}

// inFour configures a batch of 4 in four parts, given by the other keys.
func inFour(w *study.Train) { w.Batch, w.MicroBatch, w.Accumulate = 128, 1, 4 }

func adam(w *study.Train, name string) {
	w.Optimizer, w.Momentum, w.Beta1, w.Beta2, w.Epsilon, w.WeightDecay = name, 0, 0.8, 0.99, 0.2, 0.1
}

// TestFrameworksDecoderRun is TestDecoderRun for these frameworks.
func TestFrameworksDecoderRun(t *testing.T) {
	for _, name := range []string{pytorchFSDPName, deepspeedName, jaxName} {
		t.Run(name, func(t *testing.T) {
			p := decoderPoint(t, "llama-100k", 2)
			p.Framework = name
			decoderRun(t, p, 106_816)
		})
	}
}
