package telemetry

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// network returns the bytes of each network interface of the node, for all programs. They cannot be added up: a
// bond and its members carry the same bytes.
func (n *node) network() []Reading {
	text, err := n.text("proc/net/dev")
	if err != nil {
		n.lack(metrics.TelemetryReceived, err)
		return nil
	}
	var list []Reading
	for line := range strings.Lines(text) {
		// "  eth0: 1 2 …": received bytes are the first field, sent ones the ninth
		name, rest, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		f := strings.Fields(rest)
		if !ok || name == "lo" || len(f) < 9 || len(list) >= 2*mostDevices {
			continue
		}
		received, err1 := number(f[0])
		sent, err2 := number(f[8])
		if err1 == nil && err2 == nil && received+sent > 0 { // interfaces in use
			const source = "/proc/net/dev, of the node"
			list = append(list, Counter(metrics.TelemetryReceived, name, source, "B", 1, received), Counter(metrics.TelemetrySent, name, source, "B", 1, sent))
		}
	}
	return list
}

// pressure returns how long tasks were stalled because a resource was short: in the run, or in the whole node
// if the run's cgroup does not report it.
func (n *node) pressure() []Reading {
	var list []Reading
	for _, of := range []string{"cpu", "memory", "io"} {
		source, text, err := "/proc/pressure, of the node", "", error(nil)
		if g := n.groups.unified; g.own {
			source = unit2
			text, err = n.text(g.dir, of+".pressure")
		}
		if text == "" {
			source = "/proc/pressure, of the node"
			text, err = n.text("proc/pressure", of)
		}
		if err != nil {
			n.lack(metrics.TelemetryPressure, err)
			continue
		}
		for line := range strings.Lines(text) {
			// some avg10=0.00 avg60=0.00 avg300=0.00 total=123
			f := strings.Fields(line)
			if len(f) != 5 || f[0] != "some" {
				continue
			}
			if total, ok := strings.CutPrefix(f[4], "total="); ok {
				if v, err := number(total); err == nil {
					list = append(list, Counter(metrics.TelemetryPressure, of, source, "s", 1e-3, v/1000))
				}
			}
		}
	}
	return list
}

// mostClocks bounds the number of CPUs whose clock is read: with some drivers each read interrupts another
// core.
const mostClocks = 8

// clock returns the mean clock of the run's CPUs, or of the first mostClocks of them.
func (n *node) clock(mine usage) []Reading {
	cpus := slices.Sorted(maps.Keys(mine.cpus))
	cpus = cpus[:min(len(cpus), mostClocks)]
	if len(cpus) == 0 {
		return nil
	}
	var sum, read int64
	for _, cpu := range cpus {
		if v, err := n.integer("sys/devices/system/cpu/cpu"+strconv.Itoa(cpu), "cpufreq/scaling_cur_freq"); err == nil && v < 1e9 {
			sum, read = sum+v, read+1
		}
	}
	if read > 0 {
		return []Reading{Gauge(metrics.TelemetryClock, "", "cpufreq, mean of the run's first CPUs", "Hz", 1e6, sum/read/1000)}
	}
	text, err := n.text("proc/cpuinfo")
	if err != nil {
		n.lack(metrics.TelemetryClock, err)
		return nil
	}
	var mhz float64
	on := -1
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "processor":
			on, _ = strconv.Atoi(strings.TrimSpace(value))
		case "cpu MHz":
			if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && v > 0 && v < 1e6 && slices.Contains(cpus, on) {
				mhz, read = mhz+v, read+1
			}
		}
	}
	if read == 0 {
		return nil
	}
	return []Reading{Gauge(metrics.TelemetryClock, "", "/proc/cpuinfo, mean of the run's first CPUs", "Hz", 1e6, int64(math.Round(mhz/float64(read))))}
}

// A throttle is a counter of the time in which a package was slowed down because of heat (Intel, since Linux
// 5.7).
type throttle struct{ file, name string }

// findThrottles finds one counter per package: all CPUs of a package show the same.
func (n *node) findThrottles() []throttle {
	const cpus = "sys/devices/system/cpu"
	seen := map[int64]bool{}
	var list []throttle
	for _, name := range n.names(cpus) {
		if _, err := strconv.Atoi(strings.TrimPrefix(name, "cpu")); err != nil || len(list) >= mostDevices {
			continue
		}
		id, err := n.integer(cpus, name, "topology/physical_package_id")
		if err != nil || seen[id] {
			continue
		}
		file := path.Join(cpus, name, "thermal_throttle/package_throttle_total_time_ms")
		if _, err := n.integer(file); err == nil {
			seen[id] = true
			list = append(list, throttle{file, fmt.Sprintf("package-%d: heat", id)})
		}
	}
	return list
}

// hot returns how long each package was too hot.
func (n *node) hot() []Reading {
	var list []Reading
	for _, t := range n.throttles {
		if v, err := n.integer(t.file); err == nil {
			list = append(list, Counter(metrics.TelemetryHeld, t.name, "/"+t.file, "s", 1e-3, v))
		}
	}
	return list
}
