package scaling

import (
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling/drift"
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

	made       []made   // the runs that have the measure
	base       *Summary // of the base point; nil without one
	multiple   float64  // resources over the base's; 0 along an axis that multiplies none, and for what does not scale
	an         *analysis
	rate       bool // of samples, which is never 0
	byNode     bool // as of its curve
	divided    bool // gain was worked out
	gain       *Estimate
	efficiency *Estimate
	found      []drift.Finding // in its series
	started    *Summary        // see Point.FromStart; nil: not worked out yet
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
	s.made, s.Runs = values, len(values)
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
	e := medianOf(ranked, an.confidence)
	if s.byNode {
		e.byNode(s.made, an.confidence)
	} else if lacking > 0 {
		e.Interval, e.Why = medianLacking(ranked, lacking, an.confidence)
	}
	s.Reach = reached(e, s.Runs-len(s.Values))
	return s
}

// Gain is how many times better the point is than the base, by the medians
// (Hoefler & Belli, SC'15: never an average of ratios) and in the direction in
// which the measure is better: a speedup, for rates and times alike. Its
// interval is made of those of the two medians; see ratioInterval. Where runs
// were made in blocks, and blocks are enough for an interval, both are those of
// the median of the ratios within blocks. Where a point's runs were made at other
// times than the base's, there is no interval. Exactly 1, without an interval, at the base; nil where the
// point or the base has no median.
func (s *Summary) Gain() *Estimate {
	if !s.divided {
		s.divided = true
		s.divide()
	}
	return s.gain
}

// Over is the ratio of this median to another's: of runs that have both it is the
// median of the ratios within them, with its own interval, since what a run shares
// (machine, hour, seed) cancels out; of others it is that of two samples. nil where
// either has no median.
func (s *Summary) Over(other *Summary) *Estimate {
	if s.Median == nil || other.Median == nil || !isRate(other.Median.Value) {
		return nil
	}
	if within := withinRuns(s.made, other.made); within != nil {
		ratios := make([]float64, len(within))
		for i, m := range within {
			ratios[i] = m.value
		}
		e := medianOf(slices.Sorted(slices.Values(ratios)), s.an.confidence)
		if s.byNode {
			e.byNode(within, s.an.confidence)
		}
		return e
	}
	e := Quotient(s.Median, other.Median)
	if e != nil && apart(s.made, other.made) {
		e.Interval, e.Why = nil, madeApart
	}
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
	if s.Median == nil || s.base == nil || s.base.Median == nil || s.Better == measure.Neither {
		return
	}
	if s == s.base {
		s.gain = &Estimate{Value: 1, Runs: s.Median.Runs, Why: AtBase}
		if s.multiple != 0 {
			s.efficiency = &Estimate{Value: 1, Runs: s.Median.Runs, Why: AtBase}
		}
		return
	}
	g := s.Measure.Gain(s.Median.Value, s.base.Median.Value)
	if !isRate(g) {
		return
	}
	if s.gain = s.over(s.base); s.multiple == 0 {
		return
	}
	g = s.gain.Value
	s.efficiency = &Estimate{Value: g / s.multiple, Runs: s.gain.Runs, Blocks: s.gain.Blocks, Why: s.gain.Why}
	if in := s.gain.Interval; in != nil {
		s.efficiency.Interval = &Interval{Low: in.Low / s.multiple, High: in.High / s.multiple, Level: in.Level}
	}
}

const zeroValue = "a value is 0"

// over is how many times better the point is than another, neither without a
// median; nil where the ratio is out of range.
func (s *Summary) over(other *Summary) *Estimate {
	if s == other {
		return &Estimate{Value: 1, Runs: s.Median.Runs, Why: AtBase}
	}
	g := s.Measure.Gain(s.Median.Value, other.Median.Value)
	if !isRate(g) {
		return nil
	}
	e := &Estimate{Value: g, Runs: s.Median.Runs}
	a, b := s, other
	if s.Better == measure.Lower {
		a, b = other, s
	}
	if paired := blocks(a.made, b.made); !s.byNode {
		if in, _ := medianInterval(paired, s.an.confidence); in != nil {
			return &Estimate{Value: middle(paired), Runs: len(paired), Interval: in, Blocks: true}
		}
	}
	switch {
	case apart(s.made, other.made):
		e.Why = madeApart
	case s.Values[0] <= 0 || other.Values[0] <= 0:
		e.Why = zeroValue
	default:
		e.Interval, e.Why = ratioInterval(a.Median, b.Median)
	}
	return e
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
