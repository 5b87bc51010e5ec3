package summary

import (
	"math"

	"github.com/scalebench/scalebench/metrics"
)

// Thin returns the samples of a gauge reduced to at most the given number. Each returned sample
// is the largest of those that it replaces.
func (s *Series) Thin(most int) []NodeSample {
	each := max(1, (len(s.Samples)+most-1)/max(1, most))
	var list []NodeSample
	for i := 0; i < len(s.Samples); i += each {
		point := s.Samples[i]
		for _, x := range s.Samples[i:min(i+each, len(s.Samples))] {
			point.Value = max(point.Value, x.Value)
		}
		list = append(list, point)
	}
	return list
}

// Rates returns the rate of a counter per second, in at most the given number of samples. Each is
// the mean rate between two samples, at the middle of their times. Intervals in which the counter
// decreased are left out.
func (s *Series) Rates(most int) []NodeSample {
	each := max(1, (len(s.Samples)+most-1)/max(1, most))
	var list []NodeSample
	for i := each; i < len(s.Samples); i += each {
		a, b := s.Samples[i-each], s.Samples[i]
		if rise := b.Value - a.Value; rise >= 0 {
			list = append(list, NodeSample{(a.At + b.At) / 2, rise / (b.At - a.At)})
		}
	}
	return list
}

// Power returns the total power of the devices that Energy adds up, in at most the given number
// of samples. It is nil if the power of one of them is unknown.
func (n *SampledNode) Power(most int) []NodeSample {
	w, ok := n.Span()
	if !ok {
		return nil
	}
	e, err := n.Energy(w)
	if err != nil {
		return nil
	}
	var lines []Series
	for _, p := range e.Parts {
		if p.Inside {
			continue
		}
		name, sum := metrics.TelemetryPower, (*Series).Thin
		if p.Counter != nil {
			name, sum = metrics.TelemetryEnergy, (*Series).Rates
		}
		for _, s := range n.Named(name) {
			if s.Of == p.Of {
				lines = append(lines, Series{Samples: sum(s, most)})
			}
		}
	}
	var list []NodeSample
	if len(lines) == 0 {
		return nil
	}
	for _, at := range lines[0].Samples {
		total := NodeSample{At: at.At}
		for i := range lines {
			known := lines[i].Samples
			if len(known) == 0 {
				return nil
			}
			// The series begin and end up to half a sampling interval apart.
			t := math.Min(math.Max(at.At, known[0].At), known[len(known)-1].At)
			total.Value += lines[i].at(t)
		}
		list = append(list, total)
	}
	return list
}
