package scaling

import (
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Summary is what the runs of one point say of one measure.
type Summary struct {
	measure.Measure
	// Values are the runs' values, ascending, in the measure's unit; those that
	// missed a target are not in it.
	Values []float64
	// Runs is how many have the measure, those that missed it included.
	Runs int
	// Reach has the median over the runs; all of it is empty when no run has the
	// measure.
	Reach

	made     []made     // the runs that have the measure
	lacking  int        // runs without a value because of what it would be
	base     *Summary   // of the base point; nil without one
	peers    []*Summary // of all points of the curve, this one included
	found    []Drift    // in the runs of its series
	multiple float64    // resources over the base's; 0 along an axis that multiplies none, and for what does not scale
	an       *analysis
	rate     bool // of samples, which is never 0
	byNode   bool // as of its curve

	settled           bool // still was worked out
	still             Sample
	divided           bool // gain was worked out
	gain              *Estimate
	efficiency        *Estimate
	started, reaching *Summary // see Point.FromStart and Reaching; nil: not worked out yet
}

// Lacking returns how many more runs the point has that lack the measure because of
// what it would be: Median then counts them, or there is none.
func (s *Summary) Lacking() int {
	if s == nil {
		return 0
	}
	return s.lacking
}

// Reached is how many runs did not miss it.
func (s *Summary) Reached() int { return len(s.Values) }

// summary makes a point's summary of one measure. A throughput of 0 or less is
// none.
func (an *analysis) summary(m measure.Measure, runs []*Observation) *Summary {
	s := &Summary{Measure: m.Counting(sampleOf(runs)), an: an, rate: m.RatesSamples(), byNode: an.byNode, found: an.found}
	var values []made
	for _, o := range runs {
		v, ok := o.Value(m.Name)
		if !ok || s.rate && !isRate(v) || math.IsInf(v, 0) && !(math.IsInf(v, 1) && m.Missable) {
			continue
		}
		values = append(values, made{v, o})
	}
	lacking := 0
	if m.Refusable() {
		lacking = len(runs) - len(values)
	}
	return an.summarise(s, values, lacking)
}

// summarise gives a summary its runs, of which +Inf missed it, and what these say.
// Lacking runs have no value because of what it would be.
func (an *analysis) summarise(s *Summary, values []made, lacking int) *Summary {
	s.made, s.Runs, s.lacking = values, len(values), lacking
	for _, v := range values {
		if !math.IsInf(v.value, 1) {
			s.Values = append(s.Values, v.value)
		}
	}
	slices.Sort(s.Values)
	if s.Runs == 0 {
		return s
	}
	ranked := slices.Clone(s.Values)
	for len(ranked) < s.Runs {
		ranked = append(ranked, math.Inf(1))
	}
	if lacking > 0 {
		s.Reach = lackingReach(ranked, lacking, s.Better, s.byNode, an.confidence)
		return s
	}
	e := medianOf(ranked, an.confidence)
	if s.byNode {
		e.byNode(s.made, an.confidence)
	}
	s.Reach = reached(e, s.Runs-len(s.Values))
	return s
}

// Gain is the Ratio to the base. nil where there is no value.
func (s *Summary) Gain() *Estimate {
	if !s.divided {
		s.divided = true
		s.divide()
	}
	return s.gain
}

// Over is this median over another's, whichever way the measure is better: what Ratio
// makes of it. nil where either has no median.
func (s *Summary) Over(other *Summary) *Estimate {
	if s.Median == nil || other.Median == nil {
		return nil
	}
	e, _ := divide(s.sample(), other.sample(), s.an.confidence)
	return e
}

// Base is what Gain divides by; nil for nothing.
func (s *Summary) Base() *Summary { return s.base }

// Efficiency is Gain over how many times the base's resources these are, a
// fraction; nil along an axis that multiplies none, and for what does not scale. For
// a rate it is one formula: X(N)·base/(X(base)·N) is weak-scaling efficiency (work
// per worker fixed, so equal to T_step(base)/T_step(N)) and strong-scaling efficiency
// alike (samples per step fixed, so X is inverse to the step time).
func (s *Summary) Efficiency() *Estimate {
	s.Gain()
	return s.efficiency
}

func (s *Summary) divide() {
	if s.base == nil || s.Runs == 0 {
		return
	}
	if s.gain = s.Ratio(s.base).Estimate; s.gain == nil || s.multiple == 0 {
		return
	}
	e := *s.gain
	if s.efficiency = &e; s == s.base {
		return
	}
	e.Value /= s.multiple
	if in := e.Interval; in != nil {
		e.Interval = &Interval{Low: in.Low / s.multiple, High: in.High / s.multiple, Level: in.Level}
	}
}

// KarpFlatt is the serial fraction found by experiment (Karp & Flatt 1990),
// over a fixed amount of work: (1/S − 1/n)/(1 − 1/n), with n = N/base. Flat over
// N it is a serial part, rising it is overhead, negative means superlinear or a
// wrong base. The interval is the gain's, through that formula. nil where n is
// not above 1.
func (s *Summary) KarpFlatt() (*float64, *Interval) {
	g, n := s.Gain(), s.multiple
	if g == nil || s == s.base || !(n > 1) {
		return nil, nil
	}
	serial := func(s float64) float64 { return (1/s - 1/n) / (1 - 1/n) }
	e := serial(g.Value)
	if in := g.Interval; in != nil {
		return &e, &Interval{Low: serial(in.High), High: serial(in.Low), Level: in.Level}
	}
	return &e, nil
}
