package framework

import (
	"embed"

	"github.com/scalebench/scalebench/launcher/study"
)

//go:embed programs/scalebench.py programs/world.py programs/recipe.py programs/cifar10.py programs/own.py programs/rank.py programs/gemm.py
//go:embed programs/samples.py programs/batches.py programs/text.py programs/decoder.py programs/jax_decoder.py programs/jax_trainer.py
var jaxPrograms embed.FS

const jaxName = "jax"

// jax is one computation over all ranks, divided by XLA; one process a rank.
var jax = Framework{
	Name:     jaxName,
	Imports:  []string{"jax"},
	Family:   "jax",
	Programs: programs(jaxPrograms),
	Check: func(p study.Point) map[string]string {
		wrong := checkPython(jaxName, nil, layout{decoders: true, microBatch: true, zero: []int{1, 3}, shard: true, checkpointing: true}, p)
		if _, own := study.ParseFunction(p.Workload.Train.Model); own {
			wrong["workload.model"] = "jax trains language models only; a model of your own runs under the other Python frameworks, or as a command"
		}
		if w := p.Workload.Train; w.Shard > 0 && w.Zero == 0 {
			wrong["workload.shard"] = "jax shards nothing by default; set zero = 1 or 3, or leave shard out"
		}
		return wrong
	},
	Command: func(s Rank) []string { return pythonRank(s, "jax_trainer.py") },
}
