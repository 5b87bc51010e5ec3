package framework

import (
	"fmt"

	"github.com/scalebench/scalebench/launcher/study"
)

// onnxruntime computes an ONNX file in the load generator's process with the C library onnxruntime: the work of
// a model server without the server.
var onnxruntime = Framework{
	Name:   "onnxruntime",
	Server: true,
	Check: func(p study.Point) map[string]string {
		wrong := map[string]string{}
		if w := p.Workload.Serve; w.Target != study.Process {
			wrong["workload.target"] = fmt.Sprintf("framework = \"onnxruntime\" computes in the load generator's process and is no server; set target = \"process\", not %q", w.Target)
		} else if !isONNX(w.Model) {
			wrong["workload.model"] = fmt.Sprintf("%q is no model for onnxruntime; name an ONNX file, like \"model.onnx\"", w.Model)
		}
		if d := p.Resources.Device; d != "cpu" {
			wrong["resources.device"] = fmt.Sprintf("onnxruntime computes only on CPUs here, not on device %q; use \"cpu\"", d)
		}
		return wrong
	},
	Command: native.Command,
}
