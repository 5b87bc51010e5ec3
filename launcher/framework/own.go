package framework

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/spelling"
	"github.com/scalebench/scalebench/launcher/study"
)

// checkPython is what every Python framework asks of a point's model and data:
// one of the models that it has, and CIFAR-10's files, or functions of the
// user's own (programs/own.py).
func checkPython(name string, models []string, p study.Point) map[string]string {
	wrong := map[string]string{}
	w := p.Workload.Train
	if _, own := study.ParseFunction(w.Model); !own && !slices.Contains(models, w.Model) {
		wrong["workload.model"] = noModel(w.Model, name, models) + ", or a function of your own, like \"my_model.py:build\""
	}
	if w.Precision != "fp32" {
		wrong["workload.precision"] = fmt.Sprintf("%s computes in fp32 only, not %s", name, w.Precision)
	}
	_, ownData := study.ParseFunction(p.Data.Kind)
	switch {
	case ownData:
	case p.Data.Kind != "cifar10":
		wrong["data.kind"] = fmt.Sprintf("%s reads files only, not %q; write them with \"scalebench data synth DIR\" and set kind = \"cifar10\" and path = DIR, or name a function of your own, like \"my_data.py:load\"", name, p.Data.Kind)
	case p.Data.Path == "":
		wrong["data.path"] = "missing; name the folder of data_batch_1.bin … test_batch.bin (\"scalebench data synth DIR\" writes one)"
	}
	return wrong
}

// sgdOnly refuses optimizers that a framework's program does not have.
func sgdOnly(name string, p study.Point, wrong map[string]string) map[string]string {
	if o := p.Workload.Train.Optimizer; o != "" && o != "sgd" {
		wrong["workload.optimizer"] = fmt.Sprintf("%s trains with \"sgd\" only; native, pytorch-ddp and pytorch-horovod have %q", name, o)
	}
	return wrong
}

// noModel is the message for a model that a trainer does not have.
func noModel(model, trainer string, models []string) string {
	meant := "; valid: "
	_, own := study.ParseFunction(model)
	if near := spelling.Near(model, models); len(near) > 0 && !own {
		meant = "; did you mean " + near[0] + "? Valid: "
	}
	return fmt.Sprintf("%q is not a model of %s%s%s", model, trainer, meant, strings.Join(models, ", "))
}
