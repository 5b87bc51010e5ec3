package world

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// CPUs is how many CPUs this process and its children may use, 1 or more: those
// of its affinity, which Slurm and taskset set, and no more than the quota of
// CPU time that its cgroups grant, which containers set. Part of a CPU does not
// count as one.
func CPUs() int {
	n := runtime.NumCPU()
	if quota, ok := cpuQuota(os.DirFS("/")); ok {
		n = min(n, int(quota))
	}
	return max(n, 1)
}

// cpuQuota is the least CPU time, in CPUs, that a cgroup above this process
// grants; ok is false where none limits it, or that cannot be found out.
// https://docs.kernel.org/admin-guide/cgroup-v2.html (cpu.max) and
// https://docs.kernel.org/scheduler/sched-bwc.html (cpu.cfs_quota_us).
func cpuQuota(root fs.FS) (cpus float64, ok bool) {
	for _, h := range hierarchies(root) {
		for dir := path.Join(h.mount, h.below); ; dir = path.Dir(dir) {
			if limit, limited := h.limit(root, dir); limited && (!ok || limit < cpus) {
				cpus, ok = limit, true
			}
			if dir == h.mount || dir == "." {
				break
			}
		}
	}
	return cpus, ok
}

// A hierarchy is a mounted tree of cgroups that can limit CPU time.
type hierarchy struct {
	unified bool   // version 2
	mount   string // where its top is seen, without the leading slash
	below   string // this process's cgroup, from there
}

func hierarchies(root fs.FS) (list []hierarchy) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := fs.ReadFile(root, "proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(mounts)) {
		// 36 35 98:0 /root /mount/point rw,… optional - type source options
		place, kind, ok := strings.Cut(strings.TrimSpace(line), " - ")
		at, of := strings.Fields(place), strings.Fields(kind)
		if !ok || len(at) < 5 || len(of) < 3 {
			continue
		}
		unified := of[0] == "cgroup2"
		if !unified && (of[0] != "cgroup" || !slices.Contains(strings.Split(of[2], ","), "cpu")) {
			continue
		}
		for line := range strings.Lines(string(own)) {
			// 0::/path or 4:cpu,cpuacct:/path
			part := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(part) < 3 || unified != (part[1] == "") || !unified && !slices.Contains(strings.Split(part[1], ","), "cpu") {
				continue
			}
			h := hierarchy{unified: unified, mount: strings.TrimPrefix(at[4], "/")}
			// What lies outside of what is mounted cannot be seen.
			if below, inside := strings.CutPrefix(part[2], strings.TrimSuffix(at[3], "/")); inside && !strings.Contains(below, "..") {
				h.below = below
			}
			list = append(list, h)
		}
	}
	return list
}

// limit is the CPU time that one cgroup grants, in CPUs.
func (h hierarchy) limit(root fs.FS, dir string) (cpus float64, ok bool) {
	var words []string
	if h.unified {
		words = read(root, path.Join(dir, "cpu.max")) // "150000 100000" or "max 100000"
	} else {
		words = append(read(root, path.Join(dir, "cpu.cfs_quota_us")), read(root, path.Join(dir, "cpu.cfs_period_us"))...)
	}
	if len(words) != 2 {
		return 0, false
	}
	quota, err := strconv.ParseFloat(words[0], 64)
	period, err2 := strconv.ParseFloat(words[1], 64)
	if err != nil || err2 != nil || !(quota > 0) || !(period > 0) { // "max" or -1: no limit
		return 0, false
	}
	return quota / period, true
}

func read(root fs.FS, name string) []string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}
