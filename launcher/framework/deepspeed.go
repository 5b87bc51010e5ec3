package framework

import "github.com/scalebench/scalebench/launcher/study"

const deepspeedName = "deepspeed"

// deepspeed is DeepSpeed's engine with ZeRO, one process a rank: without
// workload.zero each rank holds everything, and from stage 1 to 3 the ranks share
// out the optimizer's state, gradients and parameters. Its own launcher has no
// part in it.
var deepspeed = Framework{
	Name:      deepspeedName,
	Imports:   []string{"torch", "deepspeed"},
	Family:    "deepspeed",
	Programs:  programs(pytorchPrograms),
	Launchers: []string{"torchrun"},
	PerNode:   byTorchrun,
	Check: func(p study.Point) map[string]string {
		wrong := checkPython(deepspeedName, nil, layout{decoders: true, microBatch: true, zero: []int{1, 2, 3}, checkpointing: true}, p)
		if w := p.Workload.Train; w.Precision == "bf16" && w.Zero == 0 {
			wrong["workload.precision"] = "without ZeRO, DeepSpeed cannot accumulate gradients in fp32 with weights in bf16; set zero = 1, 2 or 3, or precision = \"fp32\""
		}
		return wrong
	},
	Command: func(s Rank) []string {
		if byTorchrun(s.Point) {
			return torchrun(s, "deepspeed_zero.py")
		}
		return pythonRank(s, "deepspeed_zero.py")
	},
}
