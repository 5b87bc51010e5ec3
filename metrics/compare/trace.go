package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// A Sample is one run's value.
type Sample struct {
	Run   int64   // run number, chosen by the caller
	Unix  float64 // when the run was recorded, seconds since 1970
	Value float64
	Print int // index of its fingerprint in the caller's list
}

// The reasons for a new segment.
const (
	Start  = "start"       // the first run of the point
	Ground = "fingerprint" // first run with another fingerprint
	Change = "change"      // the first run after a change point
)

// A Segment is a sequence of runs of one point with the same fingerprint and no change
// point between them.
type Segment struct {
	Kind    string
	Samples []Sample // ordered by time
	// Median, Low and High are the median and the quartiles of the values. They are
	// equal for a single run.
	Median, Low, High float64
	// Before is the last run of the previous segment; nil at the start. Ratio is the median divided
	// by that segment's median; nil unless positive. P is the p-value of Welch's t-test between the
	// two segments; nil with too few runs.
	Before   *Sample
	Ratio, P *float64
	// Changed lists the fingerprint fields that changed since Before.
	Changed []fingerprint.Difference
}

// Trace divides the runs of one point into segments, ordered by their first run. Runs with
// different fingerprints never share a segment, even if they alternate in time. A run with unknown
// fields joins the latest runs whose known fields are equal.
func Trace(samples []Sample, prints []fingerprint.Print) []Segment {
	if len(samples) == 0 {
		return nil
	}
	samples = slices.Clone(samples)
	slices.SortFunc(samples, func(a, b Sample) int { return cmp.Or(cmp.Compare(a.Unix, b.Unix), cmp.Compare(a.Run, b.Run)) })
	grounds := divideByGround(samples, prints)
	var list []Segment
	in := map[int64]int{} // index of each run's segment
	for i, g := range grounds {
		values := make([]float64, len(g.samples))
		for j, s := range g.samples {
			values[j] = s.Value
		}
		from := 0
		for _, to := range append(changePoints(values), len(values)) {
			kind := Change
			switch {
			case from == 0 && i == 0:
				kind = Start
			case from == 0:
				kind = Ground
			}
			for _, s := range g.samples[from:to] {
				in[s.Run] = len(list)
			}
			segment := Segment{Kind: kind, Samples: g.samples[from:to]}
			segment.Low, segment.Median, segment.High = quartiles(values[from:to])
			list = append(list, segment)
			from = to
		}
	}
	before := map[int64]*Sample{} // previous run of each run
	for i := range samples[1:] {
		before[samples[i+1].Run] = &samples[i]
	}
	of := slices.Clone(list)
	for i := range list {
		s := &list[i]
		if s.Kind == Start {
			continue
		}
		s.Before = before[s.Samples[0].Run]
		if s.Kind == Change {
			// The previous run may have a different fingerprint.
			s.Before = &of[i-1].Samples[len(of[i-1].Samples)-1]
		}
		s.compare(&of[in[s.Before.Run]])
		if s.Kind == Ground {
			s.Changed = fingerprint.Differ(prints[s.Before.Print], prints[s.Samples[0].Print])
		}
	}
	slices.SortStableFunc(list, func(a, b Segment) int {
		return cmp.Or(cmp.Compare(a.Samples[0].Unix, b.Samples[0].Unix), cmp.Compare(a.Samples[0].Run, b.Samples[0].Run))
	})
	return list
}

// A ground is a group of runs with the same fingerprint.
type ground struct {
	print   fingerprint.Print // all fields that are known for any of the runs
	samples []Sample
	used    int // time of the last run that joined
}

func divideByGround(samples []Sample, prints []fingerprint.Print) []*ground {
	var list []*ground
	of := map[int]*ground{} // by print
	for i, s := range samples {
		g := of[s.Print]
		if g == nil {
			for _, other := range list {
				if fingerprint.Agree(other.print, prints[s.Print]) && (g == nil || other.used > g.used) {
					g = other
				}
			}
			if g == nil {
				g = &ground{print: fingerprint.Print{}}
				list = append(list, g)
			}
			for field, v := range prints[s.Print] {
				if v != "" {
					g.print[field] = v
				}
			}
			of[s.Print] = g
		}
		g.samples, g.used = append(g.samples, s), i
	}
	return list
}

func (s *Segment) compare(before *Segment) {
	if before.Median > 0 {
		s.Ratio = new(s.Median / before.Median)
	}
	values := func(s *Segment) []float64 {
		xs := make([]float64, len(s.Samples))
		for i, sample := range s.Samples {
			xs[i] = sample.Value
		}
		return xs
	}
	if len(s.Samples) >= shortest && len(before.Samples) >= shortest {
		s.P = new(pValue(values(before), values(s)))
	}
}

// quartiles returns nearest-rank quartiles; the median is the mean of the middle two.
func quartiles(values []float64) (low, median, high float64) {
	xs := slices.Sorted(slices.Values(values))
	n := len(xs)
	at := func(q float64) float64 { return xs[max(0, int(math.Ceil(q*float64(n)))-1)] }
	return at(0.25), xs[(n-1)/2] + (xs[n/2]-xs[(n-1)/2])/2, at(0.75)
}
