package summary

import (
	"math"

	"github.com/scalebench/scalebench/metrics"
)

// Thin is a gauge by at most so many points, each the largest of the samples it
// stands for.
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

// Rates are how fast a counter rose, per second, by at most so many points: each is
// the mean between two samples, in the middle of them. Where it went back, nothing is
// known.
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

// Power is what the parts that Energy adds up draw together, by at most so many
// points; nil where it is not known of each.
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
			// At the ends the lines begin and end half a sample apart.
			t := math.Min(math.Max(at.At, known[0].At), known[len(known)-1].At)
			total.Value += lines[i].at(t)
		}
		list = append(list, total)
	}
	return list
}
