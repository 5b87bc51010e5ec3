package framework

import "github.com/scalebench/scalebench/launcher/study"

const pytorchFSDPName = "pytorch-fsdp"

// pytorchFSDP is PyTorch's fully_shard (FSDP2), one process a rank: parameters,
// gradients and the optimizer's state are shared out over the ranks. Debian's
// PyTorch, 1.13, does not have it.
var pytorchFSDP = Framework{
	Name:      pytorchFSDPName,
	Imports:   []string{"torch.distributed.fsdp"},
	Family:    "pytorch2",
	Programs:  programs(pytorchPrograms),
	Launchers: []string{"torchrun"},
	PerNode:   byTorchrun,
	Check: func(p study.Point) map[string]string {
		return checkPython(pytorchFSDPName, nil, layout{decoders: true, microBatch: true, zero: []int{2, 3}, shard: true, checkpointing: true}, p)
	},
	Command: func(s Rank) []string {
		if byTorchrun(s.Point) {
			return torchrun(s, "pytorch_fsdp.py")
		}
		return pythonRank(s, "pytorch_fsdp.py")
	},
}
