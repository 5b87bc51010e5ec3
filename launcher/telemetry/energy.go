package telemetry

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// A zone is a RAPL counter of the powercap tree. It counts microjoules up to its range and then wraps to 0, on
// common servers after 4 to 15 minutes.
type zone struct {
	dir, name string
	most      int64 // value at which it wraps
	last      int64 // last count; -1 before the first
	total     int64 // microjoules since the first count
}

const powercap = "sys/class/powercap"

// zoneName matches zones of packages and their subzones. intel-rapl-mmio lists a package a second time and is
// ignored.
var zoneName = regexp.MustCompile(`^intel-rapl:\d+(:\d+)?$`)

// findZones finds the RAPL counters to read: packages, memory and platforms. Cores and uncore are part of their
// package.
func (n *node) findZones() []zone {
	var list []zone
	packages := map[string]string{}
	for _, entry := range n.names(powercap) { // packages come before their subzones
		if !zoneName.MatchString(entry) || len(list) >= mostDevices {
			continue
		}
		name, err := n.text(powercap, entry, "name")
		if err != nil {
			continue
		}
		name = strings.TrimSpace(name)
		parent := strings.Join(strings.Split(entry, ":")[:2], ":")
		switch {
		case strings.HasPrefix(name, "package-"):
			packages[entry] = name
		case name == "dram" && packages[parent] != "":
			name = packages[parent] + " dram"
		case name == "psys":
		default:
			continue
		}
		most, err := n.integer(powercap, entry, "max_energy_range_uj")
		if err != nil {
			continue
		}
		list = append(list, zone{dir: path.Join(powercap, entry), name: name, most: most, last: -1})
	}
	return list
}

// energy returns the energy counters of the CPUs and of the whole node. Callers decide which ones to add up:
// psys includes the packages.
func (n *node) energy() []Reading {
	var list []Reading
	if n.zones == nil {
		n.lack(metrics.TelemetryEnergy, errors.New("the node has no /sys/class/powercap of RAPL"))
	}
	for i := range n.zones {
		z := &n.zones[i]
		v, err := n.integer(z.dir, "energy_uj")
		if err != nil {
			n.lack(metrics.TelemetryEnergy, err)
			continue
		}
		switch {
		case z.last < 0:
		case v >= z.last:
			z.total += v - z.last
		case z.most >= z.last:
			z.total += z.most - z.last + v
		}
		z.last = v
		list = append(list, Counter(metrics.TelemetryEnergy, z.name, "RAPL, /"+path.Join(z.dir, "energy_uj")+", of the node", "J", 1e-3, z.total/1000))
	}
	return append(list, n.cray()...)
}

const pmCounters = "sys/cray/pm_counters"

// cray returns the counters of a Cray node's board, updated 10 times a second. "energy" covers the whole node.
func (n *node) cray() []Reading {
	var list []Reading
	for _, file := range []struct{ name, column, unit string }{{"energy", metrics.TelemetryEnergy, "J"}, {"power", metrics.TelemetryPower, "W"}} {
		text, err := n.text(pmCounters, file.name)
		if err != nil {
			continue // the node has no such counter
		}
		// 12345678 J 1755000000000000 us
		f := strings.Fields(text)
		if len(f) < 2 || f[1] != file.unit {
			n.lack(file.column, fmt.Errorf("/%s/%s has an unknown format", pmCounters, file.name))
			continue
		}
		v, err := number(f[0], pmCounters, file.name)
		if err != nil {
			n.lack(file.column, err)
			continue
		}
		r := Gauge(file.column, "node", "Cray pm_counters, of the node", file.unit, 1, v)
		r.Counter = file.column == metrics.TelemetryEnergy
		list = append(list, r)
	}
	return list
}
