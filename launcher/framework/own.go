package framework

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
)

// A layout describes how a framework can compute a language model's step.
type layout struct {
	decoders      bool  // the framework has these models itself, and precision = "bf16" for them
	microBatch    bool  // a batch may be computed in parts
	zero          []int // stages of sharing out; nil: each rank holds everything
	shard         bool  // groups of ranks may each share a copy
	checkpointing bool
}

// checkPython returns what a Python framework refuses in a point's model and data. It accepts the
// models that it has, and the user's own files or functions (programs/own.py).
func checkPython(name string, models []string, has layout, p study.Point) map[string]string {
	wrong := map[string]string{}
	w := p.Workload.Train
	_, own := study.ParseFunction(w.Model)
	decoder := p.Architecture.Layers > 0
	if has.decoders {
		models = slices.Concat(models, study.DecoderNames())
	}
	if !own && !slices.Contains(models, w.Model) && !(decoder && has.decoders) {
		wrong["workload.model"] = noModel(w.Model, name, models) + ", or a function of your own, like \"my_model.py:build\""
		if decoder {
			wrong["workload.model"] = fmt.Sprintf("%s has no language models; %s have", name, strings.Join(withDecoders(), ", "))
		}
	}
	switch {
	case w.Precision == "fp32" || w.Precision == "bf16" && decoder && has.decoders:
	case has.decoders && w.Precision == "bf16":
		wrong["workload.precision"] = fmt.Sprintf("%s computes language models only in bf16, and others in fp32", name)
	default:
		wrong["workload.precision"] = fmt.Sprintf("%s computes in fp32 only, not %s", name, w.Precision)
		if has.decoders {
			wrong["workload.precision"] = fmt.Sprintf("%s computes in fp32, and language models in bf16, too, but not in %s", name, w.Precision)
		}
	}
	_, ownData := study.ParseFunction(p.Data.Kind)
	switch text := p.Data.Sequences(); {
	case ownData:
	case text && !has.decoders:
		wrong["data.kind"] = fmt.Sprintf("%s reads no text; %s do", name, strings.Join(withDecoders(), ", "))
	case text && !decoder && !own:
		wrong["data.kind"] = fmt.Sprintf("%q is for language models, and %q is one of images; set kind = \"cifar10\", or model = \"llama-1m\"", p.Data.Kind, w.Model)
	case text && p.Data.Path == "":
		wrong["data.path"] = "missing; name the folder of " + strings.Join(p.Data.Files(), " and ")
	case decoder && !text:
		wrong["data.kind"] = fmt.Sprintf("%q is a language model and cannot be trained on %q; set kind = \"text\" and path = a folder with train.txt and test.txt, or kind = \"tokens\" (\"scalebench data tokens\" makes them)", w.Model, p.Data.Kind)
	case text:
	case p.Data.Kind != "cifar10":
		wrong["data.kind"] = fmt.Sprintf("%s reads files only, not %q; write them with \"scalebench data synth DIR\" and set kind = \"cifar10\" and path = DIR, or name a function of your own, like \"my_data.py:load\"", name, p.Data.Kind)
	case p.Data.Path == "":
		wrong["data.path"] = "missing; name the folder of data_batch_1.bin … test_batch.bin (\"scalebench data synth DIR\" writes one)"
	}
	has.check(name, p, wrong)
	return wrong
}

// check refuses what of a step's layout the framework does not have.
func (l layout) check(name string, p study.Point, wrong map[string]string) {
	w := p.Workload.Train
	if w.MicroBatch > 0 && !l.microBatch {
		wrong["workload.micro_batch"] = name + " computes a worker's batch as a whole; leave micro_batch out"
	}
	if w.Accumulate > 0 && !l.microBatch {
		wrong["workload.accumulate"] = name + " computes a worker's batch as a whole; leave accumulate out"
	}
	if w.Checkpointing && !l.checkpointing {
		wrong["workload.checkpointing"] = name + " keeps all activations; leave checkpointing out"
	}
	if _, own := study.ParseFunction(w.Model); own && w.Checkpointing {
		wrong["workload.checkpointing"] = "your own model decides which activations it keeps; call torch.utils.checkpoint in it, and leave checkpointing out"
	}
	if w.Zero > 0 && !slices.Contains(l.zero, w.Zero) {
		switch len(l.zero) {
		case 0:
			wrong["workload.zero"] = name + " does not shard: each rank has all parameters, gradients and optimizer state; leave zero out"
		default:
			wrong["workload.zero"] = fmt.Sprintf("%s has no stage %d; valid: %s", name, w.Zero, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(l.zero)), ", "), "[]"))
		}
	}
	if w.Shard > 0 && !l.shard {
		wrong["workload.shard"] = name + " has no groups of ranks that share a copy; leave shard out"
	}
}

// withDecoders returns the frameworks that train language models.
func withDecoders() []string {
	return []string{pytorchDDPName, pytorchFSDPName, deepspeedName, jaxName}
}

// sgdOnly refuses optimizers that a framework's program does not have.
func sgdOnly(name string, p study.Point, wrong map[string]string) map[string]string {
	if o := p.Workload.Train.Optimizer; o != "" && o != "sgd" {
		wrong["workload.optimizer"] = fmt.Sprintf("%s trains with \"sgd\" only; %q is for native, pytorch-ddp, pytorch-fsdp, pytorch-horovod, deepspeed and jax", name, o)
	}
	return wrong
}

// noModel returns the message about a model that a trainer does not have.
func noModel(model, trainer string, models []string) string {
	meant := "; valid: "
	_, own := study.ParseFunction(model)
	if near := study.NearWords(model, models); len(near) > 0 && !own {
		meant = "; did you mean " + near[0] + "? Valid: "
	}
	return fmt.Sprintf("%q is not a model of %s%s%s", model, trainer, meant, strings.Join(models, ", "))
}
