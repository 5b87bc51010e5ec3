package framework

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
)

//go:embed programs/onnx_model.py programs/serve_triton.py programs/serve_mlserver.py programs/serve_kserve.py
var serverPrograms embed.FS

// ServedModel is the model's name in requests to scalebench's own servers.
const ServedModel = "model"

// The model servers serve one ONNX file, which onnxruntime computes in each of them, so
// that the server is the only difference.
var (
	// triton is NVIDIA's Triton with its Python backend, as PyTriton brings it.
	triton = server("triton", "pytriton", "nvidia-pytriton")
	// mlserver is Seldon's MLServer with a runtime that scalebench provides.
	mlserver = server("mlserver", "mlserver", "mlserver")
	// kserve is the model server of KServe's Python SDK.
	kserve = server("kserve", "kserve", "kserve")
)

// server returns the framework of a model server. name is also the name of its lock file and its
// program; module is its Python module, distribution the package in the registry.
func server(name, module, distribution string) Framework {
	return Framework{
		Name:     name,
		Server:   true,
		Imports:  []string{module, "onnxruntime"},
		Family:   name,
		versions: []string{distribution, "onnxruntime"},
		Programs: programs(serverPrograms),
		Check:    func(p study.Point) map[string]string { return checkServer(name, p) },
		Command: func(s Rank) []string {
			w, grpc := s.Point.Workload.Serve, 0 // 0 means no gRPC port
			if w.Target == study.GRPC {
				grpc = s.Ports.GRPC
			}
			return append(pythonRank(s, "serve_"+name+".py"), "--model", w.Model, "--name", ServedModel,
				"--listen", net.JoinHostPort(s.Listen, strconv.Itoa(s.Ports.HTTP)), "--grpc-port", strconv.Itoa(grpc),
				"--threads", strconv.Itoa(s.Point.Resources.CPUsPerWorker), "--batch", strconv.Itoa(slices.Max(w.Batch)))
		},
	}
}

func isONNX(model string) bool { return strings.EqualFold(filepath.Ext(model), ".onnx") }

func checkServer(name string, p study.Point) map[string]string {
	wrong := map[string]string{}
	if w := p.Workload.Serve; !w.Starts() {
		wrong["workload.target"] = fmt.Sprintf("%q starts no server, and framework = %q is one; leave one of the two out", w.Target, name)
	} else if !isONNX(w.Model) {
		wrong["workload.model"] = fmt.Sprintf("%q is not a model that %s serves here; name an ONNX file, like \"model.onnx\"", w.Model, name)
	}
	if d := p.Resources.Device; d != "cpu" {
		wrong["resources.device"] = fmt.Sprintf("%s computes its model only on CPUs here, not on device %q; use \"cpu\"", name, d)
	}
	return wrong
}

//go:embed programs/versions.py
var versions string

// ServerVersions returns the versions of a model server's distributions by name; nil if they are unknown. It
// imports none of them, which would take seconds.
func (f Framework) ServerVersions(ctx context.Context, interpreter string) map[string]string {
	if f.versions == nil {
		return nil
	}
	text, err := trust.AskPython(ctx, interpreter, trust.PythonQuestion{Program: versions, Arguments: f.versions, Imports: true, Limit: importTime})
	found := map[string]string{}
	if err != nil || json.Unmarshal(text, &found) != nil {
		return nil // the server's program will report what is missing
	}
	return found
}
