package telemetry

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// groups holds the cgroups of this process, by controller.
type groups struct {
	unified group            // version 2; dir is "" if not mounted
	by      map[string]group // version 1
}

// A group is a cgroup's folder.
type group struct {
	dir   string // without the root; "" if the group does not exist
	own   bool   // it contains this run only
	leaf  string // cgroup of this process, at or below dir
	mount string
}

// own matches the part of a path that belongs to the run alone: a Slurm step ("…/job_12/step_0/task_3" in
// version 1, "…/slurmstepd.scope/job_12/step_0/user/task_0" in version 2), or a group that the local launcher
// created to limit memory. Since Slurm 26.05 the job's part contains its SLUID; the step's part does not. The
// batch step does not match: several runs may follow each other in it.
var own = regexp.MustCompile(`^(.*slurm.*/step_\d+|(?:.*/)?scalebench-\d+)(?:/.*)?$`)

// findGroups finds the cgroups of this process.
func (n *node) findGroups() groups {
	g := groups{by: map[string]group{}}
	for _, controller := range []string{"cpu", "cpuacct", "memory", "blkio"} {
		for _, at := range world.ControlGroups(os.DirFS(filepath.Join(n.root, "/")), controller) {
			mount := path.Join("/", at.Mount)
			found := group{leaf: path.Join(mount, at.Below), mount: mount}
			found.dir = found.leaf
			if m := own.FindStringSubmatch(at.Below); m != nil {
				found.dir, found.own = path.Join(mount, m[1]), true
			}
			if at.Unified {
				g.unified = found
			} else {
				g.by[controller] = found
			}
		}
	}
	return g
}

const (
	unit1 = "cgroup v1 of the run"
	unit2 = "cgroup of the run"
)

// cpu returns the CPU time of the run, the number of its CPUs, and how often a quota throttled it.
func (n *node) cpu(mine usage) []Reading {
	var list []Reading
	usage := func() {
		if g := n.groups.unified; g.own {
			if stat, err := n.pairs(g.dir, "cpu.stat"); err == nil {
				if v, has := stat["usage_usec"]; has {
					list = append(list, Counter(metrics.TelemetryCPU, "", unit2+", cpu.stat", "s", 1e-3, v/1000))
					return
				}
			}
		}
		if g := n.groups.by["cpuacct"]; g.own {
			if v, err := n.integer(g.dir, "cpuacct.usage"); err == nil {
				list = append(list, Counter(metrics.TelemetryCPU, "", unit1+", cpuacct.usage", "s", 1e-3, v/1e6))
				return
			}
		}
		if mine.n > 0 {
			list = append(list, Counter(metrics.TelemetryCPU, "", "the run's processes, /proc/PID/stat", "s", 1e-2, mine.cpu))
		} else if mine.err != nil {
			n.lack(metrics.TelemetryCPU, mine.err)
		}
	}
	usage()
	if len(mine.cpus) > 0 {
		list = append(list, Gauge(metrics.TelemetryCPUs, "", "affinity of the run's processes", "", 1e-2, n.allowed(len(mine.cpus))))
	}
	if text, err := n.text("sys/devices/system/cpu/online"); err == nil {
		if all := cpuList(text); len(all) > 0 {
			list = append(list, Gauge(metrics.TelemetryOnline, "", "/sys/devices/system/cpu/online", "", 1, int64(len(all))))
		}
	}
	return append(list, n.throttled()...)
}

// limit returns the CPU quota of a cgroup, in hundredths of a CPU.
func (n *node) limit(dir string, unified bool) (quota int64, ok bool) {
	var words []string
	if unified {
		text, _ := n.text(dir, "cpu.max") // "150000 100000" or "max 100000"
		words = strings.Fields(text)
	} else {
		a, _ := n.text(dir, "cpu.cfs_quota_us")
		b, _ := n.text(dir, "cpu.cfs_period_us")
		words = append(strings.Fields(a), strings.Fields(b)...)
	}
	if len(words) != 2 {
		return 0, false
	}
	time, err1 := number(words[0])
	period, err2 := number(words[1])
	if err1 != nil || err2 != nil || time < 1 || period < 1 || time > 1<<40 { // "max" or -1 means unlimited
		return 0, false
	}
	return time * 100 / period, true
}

// quotas calls each for every cgroup that limits this process, from the innermost outwards, with its quota if
// it has one.
func (n *node) quotas(each func(dir string, quota int64, limited bool)) {
	for _, of := range []group{n.groups.unified, n.groups.by["cpu"]} {
		for dir := of.leaf; dir != ""; dir = path.Dir(dir) {
			quota, limited := n.limit(dir, of == n.groups.unified)
			each(dir, quota, limited)
			if dir == of.mount || dir == "/" || dir == "." {
				break
			}
		}
	}
}

// allowed returns how many CPUs a run that may use cpus really has, given its quotas, in hundredths of a CPU.
func (n *node) allowed(cpus int) int64 {
	least := int64(cpus) * 100
	n.quotas(func(_ string, quota int64, limited bool) {
		if limited {
			least = min(least, quota)
		}
	})
	return least
}

// throttled returns the number of periods of the innermost quota, and of the periods in which it was used up.
// Without a quota both are 0.
func (n *node) throttled() []Reading {
	var nearest, first string
	n.quotas(func(dir string, _ int64, limited bool) {
		if limited && nearest == "" {
			nearest = dir
		}
		if first == "" {
			if stat, err := n.pairs(dir, "cpu.stat"); err == nil {
				if _, has := stat["nr_periods"]; has {
					first = dir
				}
			}
		}
	})
	if nearest == "" {
		nearest = first
	}
	if nearest == "" {
		n.lack(metrics.TelemetryThrottled, fmt.Errorf("no cgroup above the run shows a cpu.stat with nr_throttled"))
		return nil
	}
	stat, err := n.pairs(nearest, "cpu.stat")
	if err != nil {
		n.lack(metrics.TelemetryThrottled, err)
		return nil
	}
	periods, has := stat["nr_periods"]
	held, also := stat["nr_throttled"]
	if !has || !also {
		n.lack(metrics.TelemetryThrottled, fmt.Errorf("%s/cpu.stat has no nr_throttled", nearest))
		return nil
	}
	source := path.Join(nearest, "cpu.stat")
	return []Reading{Counter(metrics.TelemetryPeriods, "", source, "", 1, periods), Counter(metrics.TelemetryThrottled, "", source, "", 1, held)}
}

// memory returns the memory of the run. A cgroup counts the page cache separately. In the sum over processes,
// shared pages count once per process.
func (n *node) memory(mine usage) []Reading {
	const b = "B"
	v1, v2 := n.groups.by["memory"], n.groups.unified
	var list []Reading
	of := func(dir, source, peak, anonymous, cache, shared string) bool {
		stat, err := n.pairs(dir, "memory.stat")
		if err != nil {
			return false
		}
		anon, has := stat[anonymous]
		files, also := stat[cache]
		shmem := stat[shared] // counted as cache, but not file contents
		if !has || !also || shmem > files {
			return false
		}
		list = append(list, Gauge(metrics.TelemetryMemory, "", source+", memory.stat", b, 1, anon+shmem),
			Gauge(metrics.TelemetryPageCache, "", source+", memory.stat", b, 1, files-shmem))
		if v, err := n.integer(dir, peak); err == nil {
			list = append(list, Gauge(metrics.TelemetryCharged, "", source+", "+peak, b, 1, v))
		}
		return true
	}
	switch {
	case v2.own && of(v2.dir, unit2, "memory.peak", "anon", "file", "shmem"):
	case v1.own && of(v1.dir, unit1, "memory.max_usage_in_bytes", "total_rss", "total_cache", "total_shmem"):
	case mine.resident > 0:
		list = append(list, Gauge(metrics.TelemetryMemory, "", "the run's processes, VmRSS (shared pages once each)", b, 1, mine.resident))
	case mine.err != nil:
		n.lack(metrics.TelemetryMemory, mine.err)
	}
	if mine.peak > 0 {
		list = append(list, Gauge(metrics.TelemetryMemoryPeak, "", "the run's processes, VmHWM (shared pages once each)", b, 1, mine.peak))
	}
	return list
}

// mostDevices bounds the number of block devices, and of network interfaces.
const mostDevices = 32

// bytes returns the bytes that the run reads and writes: over all of its processes, and per block device if its
// cgroup counts them.
func (n *node) bytes(mine usage) []Reading {
	const source = "the run's processes, /proc/PID/io"
	var list []Reading
	if mine.counted {
		list = append(list, Counter(metrics.TelemetryRead, "", source+" read_bytes", "B", 1, mine.read),
			Counter(metrics.TelemetryReadCalls, "", source+" rchar", "B", 1, mine.calls),
			Counter(metrics.TelemetryWritten, "", source+" write_bytes", "B", 1, mine.written))
	} else if mine.err != nil {
		n.lack(metrics.TelemetryRead, mine.err)
	}
	var devices []traffic
	if g := n.groups.unified; g.own {
		text, _ := n.text(g.dir, "io.stat")
		devices = unifiedTraffic(text)
	} else if g := n.groups.by["blkio"]; g.own {
		text, _ := n.text(g.dir, blkioFile)
		devices = blkioTraffic(text)
	}
	for _, d := range devices[:min(len(devices), mostDevices)] {
		if d.read >= 0 && d.written >= 0 {
			list = append(list, Counter(metrics.TelemetryDeviceRead, d.device, d.source, "B", 1, d.read), Counter(metrics.TelemetryDeviceWritten, d.device, d.source, "B", 1, d.written))
		}
	}
	return list
}

// traffic is the number of bytes read and written on a block device; -1: unknown.
type traffic struct {
	device, source string
	read, written  int64
}

// unifiedTraffic reads lines such as "8:0 rbytes=1 wbytes=2 rios=…".
func unifiedTraffic(text string) (list []traffic) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		d := traffic{f[0], unit2 + ", io.stat", -1, -1}
		for _, word := range f {
			switch key, v, _ := strings.Cut(word, "="); key {
			case "rbytes":
				d.read = orNegative(v)
			case "wbytes":
				d.written = orNegative(v)
			}
		}
		list = append(list, d)
	}
	return list
}

const blkioFile = "blkio.throttle.io_service_bytes_recursive"

// blkioTraffic reads lines such as "8:0 Read 1", each followed by "8:0 Write 2".
func blkioTraffic(text string) (list []traffic) {
	read := map[string]int64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		switch v, has := read[f[0]]; {
		case f[1] == "Read":
			read[f[0]] = orNegative(f[2])
		case f[1] == "Write" && has:
			list = append(list, traffic{f[0], unit1 + ", " + blkioFile, v, orNegative(f[2])})
		}
	}
	return list
}

func orNegative(text string) int64 {
	v, err := number(text)
	if err != nil {
		return -1
	}
	return v
}
