package framework

import (
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
)

//go:embed programs/scalebench.py programs/world.py programs/recipe.py programs/cifar10.py
//go:embed programs/pytorch_models.py programs/pytorch_replica.py programs/pytorch_ddp.py
var pytorchPrograms embed.FS

// programs are embedded files without the folder they stand in: the run folder
// holds them side by side, so that they can import each other.
func programs(files embed.FS) fs.FS {
	root, err := fs.Sub(files, "programs")
	if err != nil {
		panic(err) // of a path that is no path
	}
	return root
}

// defaultPython is the interpreter where the site file names none.
const defaultPython = "python3"

// python is the command line of a Python program in the run folder. It writes
// no compiled files there (-B) and its output as it comes (-u).
func python(s Start, program string) []string {
	return []string{s.interpreter(), "-B", "-u", filepath.Join(s.Run.Programs(), program)}
}

// pytorchDDP is PyTorch's DistributedDataParallel, one process a rank: gloo
// between CPUs, NCCL between GPUs.
var pytorchDDP = Framework{
	Name:     "pytorch-ddp",
	Import:   "torch",
	Programs: programs(pytorchPrograms),
	Check: func(p study.Point) map[string]string {
		wrong := map[string]string{}
		w := p.Workload
		if !slices.Contains(NativeModels, w.Model) {
			wrong["workload.model"] = fmt.Sprintf("%q is no model of pytorch-ddp; valid: %s", w.Model, strings.Join(NativeModels, ", "))
		}
		if w.Precision != "fp32" {
			wrong["workload.precision"] = fmt.Sprintf("pytorch-ddp computes in fp32 only, not %s", w.Precision)
		}
		if w.BatchNorm == "sync" && p.Resources.Device == "cpu" {
			wrong["workload.batch_norm"] = "PyTorch has synchronised batch norm on GPUs only; use \"local\", or device = \"gpu\""
		}
		switch {
		case p.Data.Kind != "cifar10":
			wrong["data.kind"] = fmt.Sprintf("pytorch-ddp reads files only, not %q; write them with \"scalebench data synth DIR\" and set kind = \"cifar10\" and path = DIR", p.Data.Kind)
		case p.Data.Path == "":
			wrong["data.path"] = "missing; name the folder of data_batch_1.bin … test_batch.bin (\"scalebench data synth DIR\" writes one)"
		}
		return wrong
	},
	Command: func(s Start) []string { return python(s, "pytorch_ddp.py") },
}
