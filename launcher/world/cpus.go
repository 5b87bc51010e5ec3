package world

import (
	"os"
	"runtime"
)

// CPUs returns how many CPUs this process and its children may use, at least 1: the CPUs of its affinity, which
// Slurm and taskset set, limited by the quota of its cgroups, which containers set. Fractions are rounded down.
func CPUs() int {
	n := runtime.NumCPU()
	if quota, ok := grantedCPUs(os.DirFS("/")); ok {
		n = min(n, int(quota))
	}
	return max(n, 1)
}
