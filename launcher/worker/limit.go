package worker

import (
	"fmt"
	"io/fs"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
)

// limited returns why a point's CPU or memory limit, which differs from other points', is not
// enforced; nil if it is. cpus is the number of CPUs that this process, and so its program, may use: the CPUs of
// one rank, or of all ranks of the node. The memory is the amount that the script requests from Slurm for all
// ranks of the node.
func limited(p study.Point, perNode bool, cpus int, root fs.FS) error {
	_, ranks := p.Shape()
	if want := p.Resources.CPUsPerWorker; p.Enforces(study.CPUsKey) {
		who := "a rank"
		if perNode {
			want, who = want*ranks, "the ranks of a node"
		}
		if cpus > want {
			return fmt.Errorf("%s may use %d CPUs instead of %d, so all values of %s would run the same; set resources.cpu_bind = \"cores\" (and, if cores have two threads, hint = \"nomultithread\" in the site file)", who, cpus, want, study.CPUsKey)
		}
	}
	if !p.Enforces(study.MemoryKey) || p.Resources.Memory == 0 {
		return nil
	}
	want := int64(p.Resources.Memory) * int64(ranks)
	have, ok := world.GrantedMemory(root)
	const remedy = "so other values of resources.memory would run the same; on a cluster, cgroup.conf needs ConstrainRAMSpace=yes"
	switch {
	case !ok:
		return fmt.Errorf("nothing limits the run's memory to %v, %s", study.Bytes(want), remedy)
	case have > want+want/20 || have < want-want/20: // sites grant a little more or less (AllowedRAMSpace)
		return fmt.Errorf("the run's memory is limited to %v, not to %v, %s", study.Bytes(have), study.Bytes(want), remedy)
	}
	return nil
}
