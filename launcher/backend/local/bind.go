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

// Ranks on this machine are bound to separate CPUs, as Slurm binds tasks. Without binding the kernel often
// keeps processes that wake each other on one CPU while another idles, and two ranks are then as fast as one.

// A cpuSet holds the CPUs that a process may use.
type cpuSet = linux.CPUSet

// bindings returns the CPUs of each rank: each CPUs per rank, none used twice, out of those that this process
// may use. Hardware threads of one core are only used once every core is. It returns nil if there are too few
// CPUs.
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

// cpusByCore returns the CPUs that this process may use: the first thread of every core, then the second
// threads. topology is the folder in which the kernel describes them; a CPU without a description counts as a
// core.
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

// startOn starts a program on the given CPUs, or on any for nil. The calling goroutine is locked to its thread,
// whose affinity the program inherits.
func startOn(cpus *cpuSet, cmd *exec.Cmd) error {
	var own cpuSet
	if cpus == nil || linux.SchedGetaffinity(0, &own) != nil || linux.SchedSetaffinity(0, cpus) != nil {
		return cmd.Start() // start without binding; the program's record shows its CPUs
	}
	defer func() { _ = linux.SchedSetaffinity(0, &own) }()
	return cmd.Start()
}
