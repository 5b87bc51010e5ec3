package framework

import (
	"embed"
	"fmt"
	"os"

	"github.com/scalebench/scalebench/launcher/study"
)

//go:embed programs/scalebench.py programs/world.py programs/recipe.py programs/cifar10.py programs/own.py
//go:embed programs/samples.py programs/text.py programs/batches.py programs/rank.py programs/horovod_world.py
//go:embed programs/tensorflow_models.py programs/tensorflow_replica.py programs/tensorflow_horovod.py programs/keras_horovod.py
//go:embed programs/handshake.py programs/meeting.py programs/keras_loop.py programs/tensorflow_strategy.py programs/tensorflow_multiworker.py programs/keras_mirrored.py
var tensorflowPrograms embed.FS

// checkTensorFlow returns the check that the frameworks of the TensorFlow family share.
func checkTensorFlow(name string) func(study.Point) map[string]string {
	return func(p study.Point) map[string]string {
		wrong := sgdOnly(name, p, checkPython(name, NativeModels, layout{}, p))
		if p.Workload.Train.BatchNorm == "sync" {
			wrong["workload.batch_norm"] = name + " has no synchronised batch norm that computes what the native trainer's does; use \"local\""
		}
		return wrong
	}
}

// tensorflowLog keeps TensorFlow from logging the machine's properties at each start. TensorFlow
// reads the variable when it is imported.
func tensorflowLog(Rank) []string {
	if os.Getenv("TF_CPP_MIN_LOG_LEVEL") != "" {
		return nil
	}
	return []string{"TF_CPP_MIN_LOG_LEVEL=2"}
}

// tensorflowHorovod is a TensorFlow training loop with gradients averaged by Horovod, one process per rank.
var tensorflowHorovod = Framework{
	Name:        "tensorflow-horovod",
	Imports:     []string{"horovod.tensorflow"},
	Family:      "tensorflow",
	Programs:    programs(tensorflowPrograms),
	Check:       checkTensorFlow("tensorflow-horovod"),
	Command:     func(s Rank) []string { return pythonRank(s, "tensorflow_horovod.py") },
	Environment: tensorflowLog,
}

// kerasHorovod is Keras's own loop, fit, around Horovod's optimiser.
var kerasHorovod = Framework{
	Name:        "keras-horovod",
	Imports:     []string{"horovod.keras"},
	Family:      "tensorflow",
	Programs:    programs(tensorflowPrograms),
	Check:       checkTensorFlow("keras-horovod"),
	Command:     func(s Rank) []string { return pythonRank(s, "keras_horovod.py") },
	Environment: tensorflowLog,
}

// tensorflowMultiworker is TensorFlow's MultiWorkerMirroredStrategy, one process
// a rank; gRPC carries the gradients of CPUs.
var tensorflowMultiworker = Framework{
	Name:        "tensorflow-multiworker",
	Imports:     []string{"tensorflow"},
	Family:      "tensorflow",
	Programs:    programs(tensorflowPrograms),
	Check:       checkTensorFlow("tensorflow-multiworker"),
	Command:     func(s Rank) []string { return pythonRank(s, "tensorflow_multiworker.py") },
	Environment: tensorflowLog,
}

// kerasMirrored is Keras's fit under MirroredStrategy: one process drives the
// devices of one node, each of which is a rank.
var kerasMirrored = Framework{
	Name:     "keras-mirrored",
	Imports:  []string{"tensorflow"},
	Family:   "tensorflow",
	Programs: programs(tensorflowPrograms),
	PerNode:  func(study.Point) bool { return true },
	Check: func(p study.Point) map[string]string {
		wrong := checkTensorFlow("keras-mirrored")(p)
		if p.Nodes > 1 {
			wrong["resources.workers_per_node"] = fmt.Sprintf("keras-mirrored runs on one node; %d workers with %d on each node need %d nodes: use \"tensorflow-multiworker\" or \"keras-horovod\"", p.Workers, p.WorkersPerNode, p.Nodes)
		}
		return wrong
	},
	Command: func(s Rank) []string { return pythonRank(s, "keras_mirrored.py") },
	// A process that is started once per node gets no rank. This one trains for all ranks, and reports as rank 0.
	Environment: func(s Rank) []string {
		return append(tensorflowLog(s), fmt.Sprintf("RANK=%d", s.World.Rank), fmt.Sprintf("LOCAL_RANK=%d", s.World.LocalRank))
	},
}
