package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics"
)

// This file holds the telemetry samples of a run's nodes, and reduces them over a window of time:
// the increase of a counter, the integral of power, the mean and maximum of a gauge.
//
//
// Values are interpolated linearly between samples and never extrapolated. A total is unknown if
// samples cover less than four fifths of the window, a rate if they cover less than half.

// A NodeSample is a value at a time, in seconds since 1970.
type NodeSample struct{ At, Value float64 }

// A Series is one quantity of a node (or of a device of it) over time.
type Series struct {
	Name, Of, Source, Unit string // as in metrics.TelemetryColumn
	Counter                bool
	Samples                []NodeSample // ascending by At
}

// A SampledNode holds the telemetry samples of one node.
type SampledNode struct {
	Rank    int // first rank on the node
	Host    string
	Series  []Series
	Missing map[string]string // reason for a missing series, by name
}

// Add adds a batch of samples from a writer whose clock started at started.
func (n *SampledNode) Add(started float64, t *metrics.Telemetry) {
	for name, why := range t.Missing {
		if n.Missing == nil {
			n.Missing = map[string]string{}
		}
		if n.Missing[name] == "" {
			n.Missing[name] = why
		}
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		s := n.series(c)
		for j, at := range t.At {
			v := c.Value(j)
			when := started + float64(at)*t.Tick
			if k := len(s.Samples); math.IsNaN(v) || k > 0 && when <= s.Samples[k-1].At {
				continue
			}
			s.Samples = append(s.Samples, NodeSample{when, v})
		}
	}
}

func (n *SampledNode) series(c *metrics.TelemetryColumn) *Series {
	same := func(s Series) bool {
		return s.Name == c.Name && s.Of == c.Of && s.Source == c.Source && s.Unit == c.Unit && s.Counter == c.Counter
	}
	i := slices.IndexFunc(n.Series, same)
	if i < 0 {
		i = len(n.Series)
		n.Series = append(n.Series, Series{Name: c.Name, Of: c.Of, Source: c.Source, Unit: c.Unit, Counter: c.Counter})
	}
	return &n.Series[i]
}

// Named returns the series of a quantity.
func (n *SampledNode) Named(name string) []*Series {
	var list []*Series
	for i := range n.Series {
		if s := &n.Series[i]; s.Name == name && len(s.Samples) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// A Window is a time range, in seconds since 1970.
type Window struct{ From, To float64 }

// Seconds returns the length of the window.
func (w Window) Seconds() float64 { return w.To - w.From }

// Span returns the time range from the node's first sample to its last; ok is false if it has no
// length.
func (n *SampledNode) Span() (w Window, ok bool) {
	for _, s := range n.Series {
		if k := len(s.Samples); k > 0 {
			from, to := s.Samples[0].At, s.Samples[k-1].At
			if !ok {
				w = Window{from, to}
			}
			w, ok = Window{min(w.From, from), max(w.To, to)}, true
		}
	}
	return w, ok && w.To > w.From
}

const (
	covered = 0.8 // share of a window that samples must cover for a total
	half    = 0.5 // largest gap for a rate
	gap     = 0.2 // longest gap between two power samples, as a share of the window
)

// within returns the part of a window that samples cover, or an error if that is less than the
// share least.
func (s *Series) within(w Window, least float64) (Window, error) {
	if len(s.Samples) < 2 {
		return Window{}, fmt.Errorf("%s was sampled %d times", s.Name, len(s.Samples))
	}
	in := Window{max(w.From, s.Samples[0].At), min(w.To, s.Samples[len(s.Samples)-1].At)}
	if !(w.Seconds() > 0) || in.Seconds() < least*w.Seconds() {
		return in, fmt.Errorf("the samples of %s cover %.1f s of %.1f s", s.Name, max(0, in.Seconds()), w.Seconds())
	}
	return in, nil
}

// at returns the interpolated value at a time between the first and the last sample.
func (s *Series) at(t float64) float64 {
	i, found := slices.BinarySearchFunc(s.Samples, t, func(a NodeSample, t float64) int { return cmp.Compare(a.At, t) })
	if found {
		return s.Samples[i].Value
	}
	a, b := s.Samples[i-1], s.Samples[i]
	return a.Value + (b.Value-a.Value)*(t-a.At)/(b.At-a.At)
}

// Rise returns the increase of a counter in a window. If the samples begin later or end earlier
// than the window, the mean rate is assumed for the rest.
func (s *Series) Rise(w Window) (float64, error) {
	rate, err := s.rate(w, covered)
	return rate * w.Seconds(), err
}

// Rate returns a counter's mean rate per second over the covered part of a window.
func (s *Series) Rate(w Window) (float64, error) { return s.rate(w, half) }

func (s *Series) rate(w Window, least float64) (float64, error) {
	in, err := s.within(w, least)
	if err != nil {
		return 0, err
	}
	for i, a := range s.Samples[1:] {
		if a.Value < s.Samples[i].Value {
			return 0, fmt.Errorf("the counter %s went back from %g to %g", s.Name, s.Samples[i].Value, a.Value)
		}
	}
	return (s.at(in.To) - s.at(in.From)) / in.Seconds(), nil
}

// Area returns the integral of a gauge over a window (trapezoidal rule): for a power in W, the
// energy in J.
func (s *Series) Area(w Window) (float64, error) {
	in, err := s.within(w, covered)
	if err != nil {
		return 0, err
	}
	sum, last := 0.0, NodeSample{in.From, s.at(in.From)}
	add := func(next NodeSample) error {
		if next.At-last.At > max(gap*w.Seconds(), longestSampling) {
			return fmt.Errorf("%s was not read for %.1f s", s.Name, next.At-last.At)
		}
		sum += (next.At - last.At) * (next.Value + last.Value) / 2
		last = next
		return nil
	}
	for _, x := range s.Samples {
		if x.At > in.From && x.At < in.To {
			if err := add(x); err != nil {
				return 0, err
			}
		}
	}
	if err := add(NodeSample{in.To, s.at(in.To)}); err != nil {
		return 0, err
	}
	return sum * w.Seconds() / in.Seconds(), nil
}

// longestSampling is the longest interval between samples, in seconds, that is accepted in every
// window, even in a short one.
const longestSampling = 2

// Mean returns the mean of a gauge over a window.
func (s *Series) Mean(w Window) (float64, error) {
	area, err := s.Area(w)
	return area / w.Seconds(), err
}

// Max returns the largest sample.
func (s *Series) Max() float64 {
	most := math.Inf(-1)
	for _, x := range s.Samples {
		most = max(most, x.Value)
	}
	return most
}
