package framework

import "github.com/scalebench/scalebench/launcher/study"

// pytorchHorovod is a PyTorch training loop with gradients averaged by Horovod, one process per rank.
var pytorchHorovod = Framework{
	Name:     "pytorch-horovod",
	Imports:  []string{"horovod.torch"},
	Family:   "pytorch",
	Programs: programs(pytorchPrograms),
	Check: func(p study.Point) map[string]string {
		wrong := checkPython("pytorch-horovod", NativeModels, layout{}, p)
		if p.Workload.Train.BatchNorm == "sync" {
			wrong["workload.batch_norm"] = "pytorch-horovod has no synchronised batch norm here; use \"local\""
		}
		return wrong
	},
	Command: func(s Rank) []string { return pythonRank(s, "pytorch_horovod.py") },
}
