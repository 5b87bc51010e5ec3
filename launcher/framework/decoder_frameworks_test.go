//go:build python && frameworks

package framework

import (
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// TestFrameworksDecoderSteps is TestDecoderSteps for the frameworks of other
// environments, in each layout that they have.
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

// TestFrameworksDecoderRun is TestDecoderRun for them.
func TestFrameworksDecoderRun(t *testing.T) {
	for _, name := range []string{pytorchFSDPName} {
		t.Run(name, func(t *testing.T) {
			p := decoderPoint(t, "llama-100k", 2)
			p.Framework = name
			decoderRun(t, p, 106_816)
		})
	}
}
