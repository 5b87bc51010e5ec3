package framework

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
)

// NativeModels are the models of the native trainer. The list is repeated here because scalebench
// checks a study without linking the trainer; a test of the worker compares the two lists.
var NativeModels = []string{"resnet20", "resnet32", "resnet44", "resnet56", "cnn", "mlp"}

var native = Framework{
	Name: "native",
	Check: func(p study.Point) map[string]string {
		wrong := map[string]string{}
		if s := p.Workload.Serve; p.Workload.UnderLoad() && s.Target != study.URL {
			if s.Target == study.GRPC {
				wrong["workload.target"] = "\"grpc\" needs a server that speaks gRPC, and scalebench's own speaks HTTP; triton, mlserver and kserve speak it, or set framework = [\"command\"] and start one with [command]"
			}
			if isONNX(s.Model) {
				wrong["workload.model"] = fmt.Sprintf("%q is an ONNX model, and the native server computes only those of the native trainer; %s, %s and %s serve it", s.Model, triton.Name, mlserver.Name, kserve.Name)
			} else if untrained, ok := strings.CutPrefix(s.Model, study.RandomModel); s.Model == "" || ok && !slices.Contains(NativeModels, untrained) {
				wrong["workload.model"] = fmt.Sprintf("%q is unknown to the native server; valid: a file that a training saved (workload.save_model), or %s%s", s.Model, study.RandomModel, strings.Join(NativeModels, ", "+study.RandomModel))
			}
		}
		if !p.Workload.Trains() {
			return wrong // other kinds have checked their own keys
		}
		w := p.Workload.Train
		if !slices.Contains(NativeModels, w.Model) {
			wrong["workload.model"] = noModel(w.Model, "the native trainer", NativeModels)
		}
		switch {
		case w.Precision == "fp32":
		case w.Precision != "tf32" && w.Precision != "bf16":
			wrong["workload.precision"] = fmt.Sprintf("the native trainer computes in fp32, and on GPUs in tf32 and bf16, not in %s", w.Precision)
		case p.Resources.Device != "gpu":
			wrong["workload.precision"] = fmt.Sprintf("the native trainer computes in %s on GPUs only; set resources.device = \"gpu\", or precision = \"fp32\"", w.Precision)
		}
		if _, own := study.ParseFunction(p.Data.Kind); own {
			wrong["data.kind"] = fmt.Sprintf("%q is Python, which the native trainer does not run; valid: \"cifar10\", \"synthetic\"", p.Data.Kind)
		}
		if p.Data.Sequences() {
			wrong["data.kind"] = fmt.Sprintf("the native trainer reads no text; %s do", strings.Join(withDecoders(), ", "))
		}
		if p.Data.Kind == "cifar10" && p.Data.Path == "" {
			wrong["data.path"] = "missing; name the folder of data_batch_1.bin … test_batch.bin, or set data.kind = \"synthetic\""
		}
		return wrong
	},
	// A kind of workload is a command of the worker.
	Command: func(s Rank) []string { return []string{s.Worker, s.Point.Workload.Kind} },
}
