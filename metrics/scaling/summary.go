package scaling

import (
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A Summary holds the values of one measure over the runs of a point, and their median.
type Summary struct {
	measure.Measure
	// Values are the runs' values, ascending, in the unit of the measure. Runs that missed a
	// target have none.
	Values []float64
	// Runs is the number of runs with the measure, including those that missed a target.
	Runs int
	// Reach is the median over the runs. It is empty if no run has the measure.
	Reach

	made     []made     // the runs that have the measure
	lacking  int        // number of runs without a value for a reason that depends on the value
	base     *Summary   // summary of the same measure at the base; nil without a base
	peers    []*Summary // summaries of all points of the curve, including this one
	found    []Drift    // drifts in the runs of its series
	multiple float64    // resources divided by the base's; 0 if the axis or the measure does not scale with resources
	an       *analysis
	rate     bool // it is a rate of samples, which is never 0
	byNode   bool // see Curve.ByNode

	settled           bool // still is set
	still             Sample
	divided           bool // gain and efficiency are set
	gain              *Estimate
	efficiency        *Estimate
	started, reaching *Summary // results of Point.FromStart and Reaching; nil: not computed yet
}

// Censored returns how many further runs of the point lack the measure for a reason that depends
// on its value. Median includes them, or is missing because of them.
func (s *Summary) Censored() int {
	if s == nil {
		return 0
	}
	return s.lacking
}

// Constant reports whether the median has no interval because the runs have the same value.
func (s *Summary) Constant() bool { return s.Median.Constant() }

// EqualRuns names the runs with the same value, for which there is no interval: "all runs", or "the middle runs" if
// at least one of the points has other values outside the interval.
func EqualRuns(points ...*Summary) string {
	for _, s := range points {
		if s.Constant() && slices.ContainsFunc(s.made, func(m made) bool { return m.value != s.made[0].value }) {
			return "the middle runs"
		}
	}
	return "all runs"
}

// Reached returns the number of runs that did not miss the target.
func (s *Summary) Reached() int { return len(s.Values) }

// summary returns the summary of a measure over the runs of a point. It ignores throughputs of 0
// or less.
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

// summarise sets the fields of a summary from the values of its runs; a missed target has the
// value +Inf. lacking further runs have no value for a reason that depends on it.
func (an *analysis) summarise(s *Summary, values []made, lacking int) *Summary {
	s.made, s.Runs, s.lacking = values, len(values), lacking
	for _, v := range values {
		if !math.IsInf(v.value, 1) {
			s.Values = append(s.Values, v.value)
		}
	}
	slices.Sort(s.Values)
	s.Reach = reachOf(values, lacking, s.Better, s.byNode, an.confidence)
	if s.Measure.IsTail() && !s.byNode && len(s.Values) == len(values) {
		s.AllowForSkew(s.Values, lacking, an.confidence)
	}
	return s
}

// Gain returns the value of the Ratio to the base; or nil.
func (s *Summary) Gain() *Estimate {
	if !s.divided {
		s.divided = true
		s.divide()
	}
	return s.gain
}

// Over returns this median divided by other's, regardless of which direction is better. It is
// computed like Ratio, and is nil if one has no median.
func (s *Summary) Over(other *Summary) *Estimate {
	if s.Median == nil || other.Median == nil {
		return nil
	}
	e, _ := divide(s.sample(), other.sample(), s.an.confidence)
	return e
}

// Base returns the summary by which Gain divides; nil without a base.
func (s *Summary) Base() *Summary { return s.base }

// Efficiency returns Gain divided by the ratio of resources to the base's. It is nil if the axis
// or the measure does not scale with resources.
//
// For a rate X, X(N)·base/(X(base)·N) is both the weak-scaling and the strong-scaling efficiency.
// With weak scaling, the work per worker is fixed, so that it equals T_step(base)/T_step(N). With
// strong scaling, the samples per step are fixed, so that X is inverse to the step time.
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
	if in := e.OneSided; in != nil {
		e.OneSided = &Interval{Low: in.Low / s.multiple, High: in.High / s.multiple, Level: in.Level}
	}
}

// KarpFlatt returns the experimentally determined serial fraction (Karp & Flatt 1990) for a fixed
// amount of work, and its interval: (1/S − 1/n)/(1 − 1/n), with the speedup S and n = N/base. A
// constant fraction over N indicates a serial part of the work, a rising one overhead, and a
// negative one superlinear speedup or a wrong base. It is nil if n is not above 1.
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
