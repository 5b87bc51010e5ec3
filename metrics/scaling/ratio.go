package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A Ratio says how many times better one point is than another in a measure. It is a speedup, for
// rates and times alike. Every table, sentence and plot that shows such a ratio uses it.
//
// It is the ratio of the medians over runs. If the machine drifted, the values are corrected for
// the drift first. If both values come from the same runs, it is the median of the ratios within
// runs. Swapping the points gives the inverse ratio and interval.
type Ratio struct {
	// Estimate is the ratio and its interval; nil if the ratio has no value. If the value or the
	// interval is missing, Refusal and Why give the reason.
	Estimate *Estimate
	// Refusal is the reason for a missing value or interval; "" if neither is missing. Why is the
	// reason as a sentence.
	Refusal Refusal
	Why     string
	// Order says when this point's runs were made relative to those of the other point.
	Order Order
	// Drift lists what the runs of the curve depend on other than the point.
	Drift []Drift
}

// A Refusal is a reason for a missing value or interval of a Ratio.
type Refusal string

// The values of Refusal. With the first four, the ratio has no value either.
const (
	NoRuns    Refusal = "no-runs"    // a point has no run with the measure
	HalfMiss  Refusal = "half-miss"  // half of a point's runs or more miss the target
	Lacks     Refusal = "lacking"    // too many runs of a point lack the value for a reason that depends on it
	NoGain    Refusal = "no-gain"    // the measure has no better direction, or the ratio is out of range
	AtItself  Refusal = "base"       // a point relative to itself: 1 by definition
	PlanOrder Refusal = "order"      // the points were measured at different times: drift would look like a difference
	Drifting  Refusal = "drift"      // the machine drifts, and the runs were not interleaved
	TwoGroups Refusal = "two-groups" // a median is in the gap between fast and slow runs
	Missing   Refusal = "misses"     // too many runs miss the target: the interval has no upper end
	Equal     Refusal = "equal"      // the runs of a point have exactly the same value
	FewRuns   Refusal = "few-runs"   // too few runs for an interval, counting those that share a node as one
)

// An Order says when the runs of two points were made relative to each other.
type Order string

// The values of Order.
const (
	OrderUnknown Order = "unknown" // the start time of some run is unknown, so drift cannot be excluded
	Interleaved  Order = "interleaved"
	OnePerRun    Order = "runs" // both values come from the same runs
	MadeApart    Order = "apart"
)

const (
	madeApart  = "most of its runs were made before or after those of the base, and a drift of the machine would look like a difference"
	notInTurns = "the machine changes over time, and its runs and those of the base were not made in turns"
	zeroValue  = "a value is 0"
	// farApart says why a ratio has no interval although both medians have one.
	farApart = "the values lie too far apart for an interval"
)

// Ratio returns the ratio of this summary's point to the point of other; never nil.
func (s *Summary) Ratio(other *Summary) *Ratio {
	r := &Ratio{Order: order(s.made, other.made), Drift: s.found}
	refuse := func(why Refusal, text string) *Ratio {
		r.Refusal, r.Why = why, text
		return r
	}
	switch {
	case s.Runs == 0 || other.Runs == 0:
		return refuse(NoRuns, "no run has it")
	case s.Better == measure.Neither:
		return refuse(NoGain, "it is neither better nor worse")
	case s.Median == nil && s.lacking > 0:
		return refuse(Lacks, s.Why)
	case other.Median == nil && other.lacking > 0:
		return refuse(Lacks, other.Why)
	case s.Median == nil || other.Median == nil:
		return refuse(HalfMiss, halfMiss)
	case s == other:
		r.Estimate = &Estimate{Value: 1, Runs: s.Median.Runs, Why: AtBase}
		return refuse(AtItself, AtBase)
	}
	a, b := s, other
	if s.Better == measure.Lower {
		a, b = other, s
	}
	r.Estimate, r.Refusal = divide(a.sample(), b.sample(), s.an.confidence)
	if r.Estimate == nil {
		return refuse(NoGain, fmt.Sprintf("the ratio of %g to %g is out of range", s.Median.Value, other.Median.Value))
	}
	if r.Refusal == FewRuns && s.an.few && separated(r.Estimate, a.sample(), b.sample()) {
		r.Refusal = ""
	}
	r.Why = r.Estimate.Why
	return r
}

// MeasuredApart reports whether the ratios of a measure between neighbouring points would include a drift
// of the machine, because their runs were made at different times.
func (c *Curve) MeasuredApart(name string) bool {
	var before *Summary
	for i := range c.Points {
		s := c.Points[i].Of(name)
		if s.Runs == 0 {
			continue
		}
		if before != nil {
			if r := s.Ratio(before).Refusal; r == PlanOrder || r == Drifting {
				return true
			}
		}
		before = s
	}
	return false
}

// A Sample holds the values of a point's runs, in the form from which ratios are computed.
type Sample struct {
	Median *Estimate // drift-corrected median
	runs   []made
	// changing is true if the machine drifted.
	changing bool
	// detrended is true if Median is corrected for the drift.
	detrended bool
	constant  bool // the values, before any correction, have no interval because they are equal
	byNode    bool
	apart     bool // the two samples may come from different times
	// lacking is true if further runs lack a value for a reason that depends on it. Median
	// includes them; runs does not.
	lacking bool
}

// sample returns the values of the summary's runs, corrected for drift if the machine drifted.
func (s *Summary) sample() Sample {
	if !s.settled {
		s.settled = true
		s.still = Sample{Median: s.Median, constant: s.Constant(), runs: s.made, byNode: s.byNode, lacking: s.lacking > 0, changing: changing(s.found)}
		if s.still.changing {
			s.settle()
		}
	}
	return s.still
}

// settle sets the drift-corrected samples of the measure at all points of the curve.
func (s *Summary) settle() {
	points := make([][]made, len(s.peers))
	for i, p := range s.peers {
		points[i] = p.made
	}
	for i, runs := range detrend(points) {
		p := s.peers[i]
		p.settled = true
		p.still = Sample{Median: p.Median, constant: p.Constant(), runs: p.made, byNode: p.byNode, lacking: p.lacking > 0, changing: true}
		if p.Median != nil && len(runs) > 0 && !slices.EqualFunc(runs, p.made, func(a, b made) bool { return a.value == b.value }) {
			still := p.an.summarise(&Summary{Measure: p.Measure, an: p.an, byNode: p.byNode}, runs, p.lacking)
			p.still.Median, p.still.runs, p.still.detrended = still.Median, runs, true
		}
	}
}

// divide returns the ratio of two medians, or the median ratio within runs if both samples have
// the same runs. The ratio has an interval, or the refusal says why not. The ratio is nil
// if it is out of range.
func divide(a, b Sample, confidence float64) (*Estimate, Refusal) {
	e, why := divideVarying(a, b, confidence)
	if e != nil && why == "" && (a.constant || b.constant) {
		e.Interval, e.Why = nil, AllEqual
	}
	if e.Constant() {
		why = Equal
	}
	return e, why
}

// divideVarying is like divide for runs that differ.
func divideVarying(a, b Sample, confidence float64) (*Estimate, Refusal) {
	if e, why, ok := divideRuns(a, b, confidence); ok {
		return e, why
	}
	e := quotient(a.Median, b.Median)
	if e == nil || !isRate(e.Value) {
		return nil, NoGain
	}
	e.Adjusted = a.detrended || b.detrended
	refuse := func(why Refusal, text string) (*Estimate, Refusal) {
		e.Interval, e.OneSided, e.Why = nil, nil, text
		return e, why
	}
	if why, text := unbalanced(a, b); why != "" && !a.apart {
		x, y := common(a.runs, b.runs)
		a.runs, b.runs = x, y
		if again, _ := unbalanced(a, b); again != "" || a.lacking || b.lacking || len(x) < LeastRuns(confidence) {
			return refuse(why, text)
		}
		a.Median = reachOf(x, 0, measure.Lower, a.byNode, confidence).Median
		b.Median = reachOf(y, 0, measure.Lower, b.byNode, confidence).Median
		if e = quotient(a.Median, b.Median); e == nil || !isRate(e.Value) {
			return nil, NoGain
		}
		e.Adjusted = true
	}
	if slices.ContainsFunc(slices.Concat(a.runs, b.runs), func(m made) bool { return m.value <= 0 }) {
		return refuse(NoGain, zeroValue)
	}
	for _, s := range []Sample{a, b} {
		if low, high, split := twoGroups(s.runs); split && !s.byNode {
			return refuse(TwoGroups, fmt.Sprintf("half of a point's runs are at %.3g and half at %.3g, so that its median may be either", low, high))
		}
	}
	if e.Interval == nil {
		if e.Why == noUpperEnd {
			return e, Missing
		}
		return e, FewRuns
	}
	return e, ""
}

// divideRuns returns the median of the ratios of a to b: within each run if every run has both values,
// otherwise within blocks. ok is false if neither is possible. It is also false if a run lacks a value
// because of what that value would have been (too slow, for example): the ratios of the other runs
// would be biased.
func divideRuns(a, b Sample, confidence float64) (e *Estimate, why Refusal, ok bool) {
	if a.lacking || b.lacking {
		return nil, "", false
	}
	if within := withinRuns(a.runs, b.runs); within != nil {
		for i := range within {
			within[i].value = math.Log(within[i].value)
		}
		e, why = ofLogs(within, a.byNode || b.byNode, confidence)
		return e, why, true
	}
	logs := paired(a.runs, b.runs)
	if len(logs) < LeastRuns(confidence) || a.byNode || b.byNode {
		return nil, "", false
	}
	if e, why = ofLogs(logs, false, confidence); e != nil {
		e.Adjusted = true
	}
	return e, why, true
}

// unbalanced returns the reason why the ratio of two samples would include drift; "" if it would
// not.
func unbalanced(a, b Sample) (Refusal, string) {
	switch p := balance(a.runs, b.runs); {
	case p <= apartAt:
		return PlanOrder, madeApart
	case (a.changing || b.changing) && p <= unbalancedAt:
		return Drifting, notInTurns
	}
	return "", ""
}

// common returns the runs of repeats that both samples have. If one sample has more repeats,
// these were made later; the common ones come from the same time. It returns nil if repeats are
// unknown.
func common(a, b []made) (x, y []made) {
	of := func(runs []made) map[block]bool {
		keys := map[block]bool{}
		for _, m := range runs {
			keys[m.block()] = true
		}
		return keys
	}
	inA, inB := of(a), of(b)
	if len(inA) < len(a) || len(inB) < len(b) {
		return nil, nil
	}
	other := func(runs []made, keys map[block]bool) []made {
		return slices.DeleteFunc(slices.Clone(runs), func(m made) bool { return !keys[m.block()] })
	}
	return other(a, inB), other(b, inA)
}

// ofLogs returns the median of ratios that are given by their logarithms, with its exact
// interval.
func ofLogs(logs []made, byNode bool, confidence float64) (*Estimate, Refusal) {
	values := make([]float64, len(logs))
	for i, m := range logs {
		values[i] = m.value
	}
	slices.Sort(values)
	e := &Estimate{Value: middle(values), Runs: len(values)} // equal ratios do not mean equal runs
	e.Interval, e.Why = medianInterval(values, confidence)
	if byNode {
		e.byNode(logs, confidence)
	}
	if e.Value = math.Exp(e.Value); !isRate(e.Value) {
		return nil, NoGain
	}
	if e.Interval == nil {
		return e, FewRuns
	}
	for _, in := range []*Interval{e.Interval, e.OneSided} {
		if in != nil {
			in.Low, in.High = math.Exp(in.Low), math.Exp(in.High)
		}
	}
	return e, ""
}

// twoGroups reports whether about half of at least six runs are fast and the others slow, with a
// wide gap in between that contains the median. low and high are the values at the ends of the
// gap.
func twoGroups(runs []made) (low, high float64, split bool) {
	n := len(runs)
	if n < 6 {
		return 0, 0, false
	}
	logs := make([]float64, n)
	for i, m := range runs {
		logs[i] = math.Log(m.value)
	}
	slices.Sort(logs)
	if math.IsInf(logs[n-1], 1) {
		return 0, 0, false
	}
	for k := n / 2; k <= (n+1)/2; k++ {
		if gapped(logs, k) {
			return math.Exp(middle(logs[:k])), math.Exp(middle(logs[k:])), true
		}
	}
	return 0, 0, false
}

// gapped reports whether the gap after the first k of at least three sorted logarithms is wide.
func gapped(logs []float64, k int) bool {
	spread := math.Sqrt((scatter(logs[:k]) + scatter(logs[k:])) / float64(len(logs)-2))
	gap := logs[k] - logs[k-1]
	return gap > clearGap*spread && gap > 0.02
}

// clearGap is the width of a gap, in standard deviations within the groups on its sides, that
// rarely occurs by chance in a single group.
const clearGap = 5

// scatter returns the sum of the squared differences from the mean.
func scatter(xs []float64) (sum float64) {
	mean := 0.0
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	return sum
}

// FromStart returns the summary of the time to a target counted from the start of the processes.
// It adds the initialisation time of each run; a run that did not record it gets the median of
// the point's other runs. Its measure is measure.FromStart of the time's measure. It is empty if
// no run of the point recorded its initialisation. It is also empty for the program's own target,
// whose times follow the rules of the program.
func (p *Point) FromStart(name string) *Summary {
	t := p.Of(name)
	t.derive(&t.started, (*Summary).fromStart, func(s *Summary) **Summary { return &s.started })
	return t.started
}

// Reaching returns the summary over the runs that reached the target.
func (s *Summary) Reaching() *Summary {
	s.derive(&s.reaching, (*Summary).onlyReached, func(s *Summary) **Summary { return &s.reaching })
	return s.reaching
}

// derive sets, for all points of the curve, the summary in a field to what of computes from the
// summary of a measure.
func (s *Summary) derive(known **Summary, of func(*Summary) *Summary, field func(*Summary) **Summary) {
	if *known != nil {
		return
	}
	peers := s.peers
	if peers == nil {
		peers = []*Summary{s}
	}
	var derived []*Summary
	for _, p := range peers {
		*field(p) = of(p)
		derived = append(derived, *field(p))
	}
	for i, p := range peers {
		d := derived[i]
		d.an, d.byNode, d.found, d.multiple, d.peers = p.an, p.byNode, p.found, p.multiple, derived
		if p.base != nil {
			p.base.derive(field(p.base), of, field)
			d.base = *field(p.base)
		}
	}
}

func (s *Summary) fromStart() *Summary {
	d := &Summary{Measure: measure.FromStart(s.Measure)}
	var inits []float64
	for _, o := range s.made {
		if x := o.Known(measure.InitSeconds); x != nil {
			inits = append(inits, *x)
		}
	}
	if len(inits) == 0 || s.Name == measure.ToTarget {
		return d
	}
	typical := Middle(inits)
	values := make([]made, len(s.made))
	for i, o := range s.made {
		init := typical
		if x := o.Known(measure.InitSeconds); x != nil {
			init = *x
		}
		values[i] = made{o.value + init, o.Observation}
	}
	d.byNode = s.byNode
	return s.an.summarise(d, values, 0)
}

func (s *Summary) onlyReached() *Summary {
	d := &Summary{Measure: s.Measure, rate: s.rate, byNode: s.byNode}
	var values []made
	for _, m := range s.made {
		if !math.IsInf(m.value, 1) {
			values = append(values, m)
		}
	}
	if len(values) == 0 {
		return d
	}
	return s.an.summarise(d, values, 0)
}
