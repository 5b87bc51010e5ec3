package framework

import (
	"embed"
	"fmt"

	"github.com/scalebench/scalebench/launcher/study"
)

//go:embed programs/scalebench.py programs/world.py programs/recipe.py programs/cifar10.py programs/own.py
//go:embed programs/samples.py programs/text.py programs/batches.py programs/rank.py programs/horovod_world.py
//go:embed programs/mxnet_models.py programs/mxnet_horovod.py
var mxnetPrograms embed.FS

// mxnet is a Gluon training loop with gradients averaged by Horovod, one process per rank.
var mxnet = Framework{
	Name:     "mxnet",
	Imports:  []string{"horovod.mxnet"},
	Family:   "mxnet",
	Programs: programs(mxnetPrograms),
	Check: func(p study.Point) map[string]string {
		wrong := sgdOnly("mxnet", p, checkPython("mxnet", NativeModels, layout{}, p))
		if p.Workload.Train.BatchNorm == "sync" {
			wrong["workload.batch_norm"] = "mxnet has no synchronised batch norm here; use \"local\""
		}
		if d := p.Resources.Device; d != "cpu" {
			wrong["resources.device"] = fmt.Sprintf("mxnet trains only on CPUs here, not on device %q; use \"cpu\"", d)
		}
		return wrong
	},
	Command: func(s Rank) []string { return pythonRank(s, "mxnet_horovod.py") },
	// MXNet reads it during import, before the program could set it.
	Environment: func(s Rank) []string {
		return []string{fmt.Sprintf("OMP_NUM_THREADS=%d", max(s.Point.Resources.CPUsPerWorker, 1))}
	},
}
