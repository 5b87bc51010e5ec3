package worker

import (
	"fmt"
	"io/fs"

	"github.com/scalebench/scalebench/launcher/cgroup"
	"github.com/scalebench/scalebench/launcher/study"
)

// limited says why a point whose memory is what is measured is not held to it; nil
// where it is. Slurm asks for what the ranks of a node have together.
func limited(p study.Point, root fs.FS) error {
	if !p.LimitMemory || p.Resources.Memory == 0 {
		return nil
	}
	_, ranks := p.Shape()
	want := int64(p.Resources.Memory) * int64(ranks)
	have, ok := cgroup.Memory(root)
	const remedy = "so every value of resources.memory would run the same; on a cluster, cgroup.conf needs ConstrainRAMSpace=yes"
	switch {
	case !ok:
		return fmt.Errorf("nothing limits the run's memory to %v, %s", study.Bytes(want), remedy)
	case have > want+want/20 || have < want-want/20: // sites grant a little more or less (AllowedRAMSpace)
		return fmt.Errorf("the run's memory is limited to %v, not to %v, %s", study.Bytes(have), study.Bytes(want), remedy)
	}
	return nil
}
