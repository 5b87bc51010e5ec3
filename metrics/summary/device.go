package summary

import (
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// Throttling is the share of a window during which a device's clock was throttled. By is the reason that
// was active for most of that time. The share is a lower bound, because reasons overlap and only
// the time of By is counted.
type Throttling struct {
	Of, By string // "GPU 0", "heat"
	Share  float64
}

// Throttling returns the devices that report how long their clocks were throttled, with their shares.
func (n *SampledNode) Throttling(w Window) ([]Throttling, error) {
	var list []Throttling
	for _, s := range n.Named(metrics.TelemetryHeld) {
		of, by, _ := strings.Cut(s.Of, ": ")
		seconds, err := s.Rise(w)
		if err != nil {
			return nil, err
		}
		h := Throttling{of, by, min(1, seconds/w.Seconds())}
		i := slices.IndexFunc(list, func(h Throttling) bool { return h.Of == of })
		if i < 0 {
			list = append(list, h)
		} else if h.Share > list[i].Share {
			list[i] = h
		}
	}
	return list, nil
}

// GPUs returns the names of the node's GPUs, in the order in which they were read.
func (n *SampledNode) GPUs() []string {
	var list []string
	for _, s := range n.Named(metrics.TelemetryPresent) {
		if !slices.Contains(list, s.Of) {
			list = append(list, s.Of)
		}
	}
	return list
}

// idle is the mean share of busy time up to which a GPU counts as unused.
const idle = 0.02

// Used reports whether a GPU computed during a window. A GPU that does not report its load counts
// as used.
func (n *SampledNode) Used(gpu string, w Window) bool {
	s := n.of(metrics.TelemetryBusy, gpu)
	if s == nil {
		return true
	}
	busy, err := s.Mean(w)
	return err != nil || busy > idle
}

// MeanOf returns the mean of a quantity of a device over a window; false if it is unknown.
func (n *SampledNode) MeanOf(name, device string, w Window) (float64, bool) {
	s := n.of(name, device)
	if s == nil {
		return 0, false
	}
	v, err := s.Mean(w)
	return v, err == nil
}

func (n *SampledNode) of(name, device string) *Series {
	for _, s := range n.Named(name) {
		if s.Of == device {
			return s
		}
	}
	return nil
}
