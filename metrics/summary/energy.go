package summary

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// Energy is the energy that a node used in a window.
type Energy struct {
	Joules float64
	Parts  []SampledPart
}

// SampledPart is the energy of a device. Counter is the increase of its energy counter and Area
// the integral of its power samples; each is nil if not available. Joules is the counter's value
// or, without a counter, the integral.
type SampledPart struct {
	Of, Source    string
	Joules        float64
	Counter, Area *float64
	// Inside is true if the device is part of another one, so that its energy is not added.
	Inside bool
}

// board names the counter of the whole node. platform names a counter that covers the packages
// and further parts, which depend on the vendor.
const board, platform = "node", "psys"

// Energy returns the energy of the node in a window: the increase of the whole node's counter, if
// it has one, or else the sum over CPU packages, their memory, and GPUs. A platform's counter is
// never added, because it overlaps the packages' by an unknown amount. The error says why the
// energy is unknown.
func (n *SampledNode) Energy(w Window) (e Energy, err error) {
	counters, powers := n.Named(metrics.TelemetryEnergy), n.Named(metrics.TelemetryPower)
	var names []string
	for _, s := range slices.Concat(counters, powers) {
		if !slices.Contains(names, s.Of) {
			names = append(names, s.Of)
		}
	}
	if len(names) == 0 {
		return e, errors.New("no energy counter or power sensor" + n.because(metrics.TelemetryEnergy))
	}
	whole := slices.Contains(names, board)
	if unread := n.unread(names); unread != "" && !whole {
		return e, fmt.Errorf("the energy of %s was not read%s", unread, n.because(metrics.TelemetryEnergy, metrics.TelemetryPower, metrics.TelemetryPresent))
	}
	for _, name := range names {
		p, failed := partOf(name, counters, powers, w)
		p.Inside = name == platform || whole && name != board
		if failed != nil {
			if p.Inside {
				continue
			}
			return Energy{}, fmt.Errorf("energy of %s: %w", name, failed)
		}
		e.Parts = append(e.Parts, p)
		if !p.Inside {
			e.Joules += p.Joules
		}
	}
	if !slices.ContainsFunc(e.Parts, func(p SampledPart) bool { return !p.Inside }) {
		return Energy{}, errors.New("only the platform has an energy counter, and its maker decides which parts it covers")
	}
	return e, nil
}

// partOf returns the energy of one device, from its counter or, without one, from its power.
func partOf(name string, counters, powers []*Series, w Window) (p SampledPart, failed error) {
	p.Of = name
	of := func(s *Series) bool { return s.Of == name }
	if i := slices.IndexFunc(powers, of); i >= 0 {
		v, err := powers[i].Area(w)
		if err == nil {
			p.Area, p.Joules = &v, v
		}
		p.Source, failed = powers[i].Source+", area under the power", err
	}
	if i := slices.IndexFunc(counters, of); i >= 0 {
		v, err := counters[i].Rise(w)
		if err == nil {
			p.Counter, p.Joules = &v, v
		}
		p.Source, failed = counters[i].Source, err
	}
	return p, failed
}

// unread returns the name of a GPU that is present but is not among names, which have a counter
// or a power; "": none.
func (n *SampledNode) unread(names []string) string {
	for _, s := range n.Named(metrics.TelemetryPresent) {
		if !slices.Contains(names, s.Of) {
			return s.Of
		}
	}
	return ""
}

// because returns the first reason that is recorded for one of the columns, as the end of a
// message.
func (n *SampledNode) because(columns ...string) string {
	for _, column := range columns {
		if why := n.Missing[column]; why != "" {
			return ": " + why
		}
	}
	return ""
}

// EnergyOf returns in words which devices Energy adds up: "package × 2, memory × 2, GPU × 4".
func (n *SampledNode) EnergyOf() string {
	count := map[string]int{}
	seen := map[string]bool{}
	for _, s := range slices.Concat(n.Named(metrics.TelemetryEnergy), n.Named(metrics.TelemetryPower)) {
		if s.Of == board {
			return "the whole node"
		}
		kind := "device"
		switch {
		case s.Of == platform:
			continue
		case strings.HasSuffix(s.Of, " dram"):
			kind = "memory"
		case strings.HasPrefix(s.Of, "package-"):
			kind = "package"
		case strings.HasPrefix(s.Of, "card"), strings.HasPrefix(s.Of, "GPU"):
			kind = "GPU"
		}
		if !seen[s.Of] {
			seen[s.Of] = true
			count[kind]++
		}
	}
	var parts []string
	for _, kind := range []string{"package", "memory", "GPU", "device"} {
		if n := count[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s × %d", kind, n))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
