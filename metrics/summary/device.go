package summary

import (
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// Held is the share of a window in which a device's clock was throttled, as a lower
// bound: reasons overlap, so the largest share counts. By is that reason.
type Held struct {
	Of, By string // "GPU 0", "heat"
	Share  float64
}

// Held lists the devices that report how long their clocks were throttled.
func (n *SampledNode) Held(w Window) ([]Held, error) {
	var list []Held
	for _, s := range n.Named(metrics.TelemetryHeld) {
		of, by, _ := strings.Cut(s.Of, ": ")
		seconds, err := s.Rise(w)
		if err != nil {
			return nil, err
		}
		h := Held{of, by, min(1, seconds/w.Seconds())}
		i := slices.IndexFunc(list, func(h Held) bool { return h.Of == of })
		if i < 0 {
			list = append(list, h)
		} else if h.Share > list[i].Share {
			list[i] = h
		}
	}
	return list, nil
}

// GPUs lists the node's GPUs by name, in the order in which they were read.
func (n *SampledNode) GPUs() []string {
	var list []string
	for _, s := range n.Named(metrics.TelemetryPresent) {
		if !slices.Contains(list, s.Of) {
			list = append(list, s.Of)
		}
	}
	return list
}

// idle is the mean busy share up to which a GPU counts as unused.
const idle = 0.02

// Used reports whether a GPU computed in a window. A GPU that does not report its load
// counts as used.
func (n *SampledNode) Used(gpu string, w Window) bool {
	s := n.of(metrics.TelemetryBusy, gpu)
	if s == nil {
		return true
	}
	busy, err := s.Mean(w)
	return err != nil || busy > idle
}

// MeanOf returns the mean of a device's gauge.
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
