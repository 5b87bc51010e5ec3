package world

import (
	"os"
	"runtime"
)

// CPUs is how many CPUs this process and its children may use, 1 or more: those
// of its affinity, which Slurm and taskset set, and no more than the quota of
// CPU time that its cgroups grant, which containers set. Part of a CPU does not
// count as one.
func CPUs() int {
	n := runtime.NumCPU()
	if quota, ok := grantedCPUs(os.DirFS("/")); ok {
		n = min(n, int(quota))
	}
	return max(n, 1)
}
