package world

import (
	"io/fs"
	"iter"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// This file finds the control groups of this process and their limits, and creates groups that limit memory if
// the user may.
//
// https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
// and https://docs.kernel.org/scheduler/sched-bwc.html. With version 2 the new group is a sibling of this
// process's group, since a group with processes cannot have children; with version 1 it is a child.

// A ControlGroup is the group of this process in one mounted hierarchy.
type ControlGroup struct {
	Unified bool   // version 2
	Mount   string // path where the tree is mounted, without the leading slash
	Below   string // the group, from there
}

// ControlGroups returns this process's groups in the hierarchies that can limit a controller of version 1:
// "cpu", "memory". root is "/".
func ControlGroups(root fs.FS, controller string) (list []ControlGroup) {
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
		if !unified && (of[0] != "cgroup" || !slices.Contains(strings.Split(of[2], ","), controller)) {
			continue
		}
		for line := range strings.Lines(string(own)) {
			// 0::/path or 4:cpu,cpuacct:/path
			part := strings.SplitN(strings.TrimSpace(line), ":", 3)
			if len(part) < 3 || unified != (part[1] == "") || !unified && !slices.Contains(strings.Split(part[1], ","), controller) {
				continue
			}
			g := ControlGroup{Unified: unified, Mount: strings.TrimPrefix(at[4], "/")}
			// Groups above the mount point are not visible.
			if below, inside := strings.CutPrefix(part[2], strings.TrimSuffix(at[3], "/")); inside && !strings.Contains(below, "..") {
				g.Below = below
			}
			list = append(list, g)
		}
	}
	return list
}

// Up returns the folders of the group and of its visible parents.
func (g ControlGroup) Up() iter.Seq[string] {
	return func(yield func(string) bool) {
		for dir := path.Join(g.Mount, g.Below); yield(dir) && dir != g.Mount && dir != "."; {
			dir = path.Dir(dir)
		}
	}
}

// least returns the smallest limit in the groups above a process; ok is false if no group has a known limit.
func least(root fs.FS, controller string, of func(g ControlGroup, dir string) (float64, bool)) (value float64, ok bool) {
	for _, g := range ControlGroups(root, controller) {
		for dir := range g.Up() {
			if limit, limited := of(g, dir); limited && (!ok || limit < value) {
				value, ok = limit, true
			}
		}
	}
	return value, ok
}

// grantedCPUs returns the smallest CPU quota, in CPUs, of this process's groups.
func grantedCPUs(root fs.FS) (cpus float64, ok bool) {
	return least(root, "cpu", func(g ControlGroup, dir string) (float64, bool) {
		var words []string
		if g.Unified {
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
	})
}

// GrantedMemory returns the smallest memory limit, in bytes, of this process's groups. It includes the page
// cache.
func GrantedMemory(root fs.FS) (bytes int64, ok bool) {
	least, ok := least(root, "memory", func(g ControlGroup, dir string) (float64, bool) {
		name := "memory.limit_in_bytes"
		if g.Unified {
			name = "memory.max"
		}
		words := read(root, path.Join(dir, name))
		if len(words) != 1 {
			return 0, false
		}
		limit, err := strconv.ParseInt(words[0], 10, 64)
		// Without a limit version 1 has the largest number of whole pages, version 2 "max".
		return float64(limit), err == nil && limit >= 0 && limit < math.MaxInt64>>1
	})
	return int64(least), ok
}

func read(root fs.FS, name string) []string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}
