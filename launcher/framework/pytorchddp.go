package framework

import (
	"embed"
	"io/fs"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/study"
)

//go:embed programs/scalebench.py programs/world.py programs/recipe.py programs/cifar10.py programs/own.py programs/rank.py programs/gemm.py
//go:embed programs/pytorch_models.py programs/samples.py programs/pytorch_data.py programs/pytorch_trainer.py
//go:embed programs/text.py programs/decoder.py programs/pytorch_decoder.py
//go:embed programs/pytorch_fsdp.py programs/deepspeed_zero.py programs/pytorch_ddp.py programs/torchrun.py programs/pytorch_horovod.py programs/horovod_world.py
var pytorchPrograms embed.FS

// programs returns embedded files without their folder: in the run folder they are next to each other, so that
// they can import each other.
func programs(files embed.FS) fs.FS {
	root, err := fs.Sub(files, "programs")
	if err != nil {
		panic(err) // cannot happen: the path is valid
	}
	return root
}

// pythonRank returns the command line of a Python program in the run folder. It writes no compiled files there
// (-B) and does not buffer its output (-u).
func pythonRank(s Rank, program string) []string {
	return []string{s.interpreter(), "-B", "-u", filepath.Join(s.Run.Programs(), program)}
}

const pytorchDDPName = "pytorch-ddp"

// pytorchDDP is PyTorch's DistributedDataParallel, one process a rank: gloo
// between CPUs, NCCL between GPUs.
var pytorchDDP = Framework{
	Name:      pytorchDDPName,
	Imports:   []string{"torch"},
	Programs:  programs(pytorchPrograms),
	Launchers: []string{"torchrun"},
	PerNode:   byTorchrun,
	Check: func(p study.Point) map[string]string {
		wrong := checkPython(pytorchDDPName, NativeModels, layout{decoders: true, microBatch: true, checkpointing: true}, p)
		if p.Workload.Train.BatchNorm == "sync" && p.Resources.Device == "cpu" {
			wrong["workload.batch_norm"] = "PyTorch has synchronised batch norm on GPUs only; use \"local\", or device = \"gpu\""
		}
		return wrong
	},
	Command: func(s Rank) []string {
		if byTorchrun(s.Point) {
			return torchrun(s, "pytorch_ddp.py")
		}
		return pythonRank(s, "pytorch_ddp.py")
	},
}
