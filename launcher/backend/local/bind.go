package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	linux "golang.org/x/sys/unix"
)

// Ranks on this machine are bound to CPUs of their own, as Slurm binds tasks.
// Left to itself the kernel often keeps processes that wake each other on one
// CPU, beside another that idles, and two ranks are then as fast as one.

// cpuSet is CPUs that a process may use.
type cpuSet = linux.CPUSet

// bindings are the CPUs of each of so many ranks: so many for each, none twice,
// of those that this process may use, and the hardware threads of a core apart
// for as long as there are cores. nil: there are too few.
func bindings(ranks, each int) []*cpuSet {
	allowed := cpusByCore("/sys/devices/system/cpu")
	if ranks*each > len(allowed) {
		return nil
	}
	list := make([]*cpuSet, ranks)
	for r := range list {
		list[r] = new(cpuSet)
		for _, cpu := range allowed[r*each : (r+1)*each] {
			list[r].Set(cpu)
		}
	}
	return list
}

// cpusByCore are the CPUs that this process may use: a first one of every core,
// then a second one. topology is where the kernel describes them; what is not
// described is a core of its own.
func cpusByCore(topology string) []int {
	var set cpuSet
	if linux.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var cpus []int
	for cpu := range 8 * 8 * len(set) {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return spread(cpus, topology)
}

func spread(cpus []int, topology string) []int {
	type core struct{ socket, id string }
	seen, place := map[core]int{}, map[int]int{}
	for _, cpu := range cpus {
		read := func(name string) string {
			text, _ := os.ReadFile(filepath.Join(topology, "cpu"+strconv.Itoa(cpu), "topology", name))
			return strings.TrimSpace(string(text))
		}
		c := core{read("physical_package_id"), read("core_id")}
		if c.id == "" {
			continue
		}
		place[cpu] = seen[c]
		seen[c]++
	}
	slices.SortStableFunc(cpus, func(a, b int) int { return place[a] - place[b] })
	return cpus
}

// startOn starts a program on those CPUs, nil for any. The calling goroutine is
// locked to its thread, whose affinity the program inherits.
func startOn(cpus *cpuSet, cmd *exec.Cmd) error {
	var own cpuSet
	if cpus == nil || linux.SchedGetaffinity(0, &own) != nil || linux.SchedSetaffinity(0, cpus) != nil {
		return cmd.Start() // not bound, which its own record shows
	}
	defer func() { _ = linux.SchedSetaffinity(0, &own) }()
	return cmd.Start()
}
