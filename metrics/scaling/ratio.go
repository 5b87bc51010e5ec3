package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A Ratio says how many times better one point is than another in a measure: a speedup, for
// rates and times alike. Every table, sentence, figure and view with such a ratio uses it.
//
// It is the ratio of the medians over runs. If the machine drifted, the medians are of
// drift-corrected values. If both values come from the same runs, it is the median of the
// ratios within runs. Swapping the points gives the inverse, with its interval.
type Ratio struct {
	// Estimate is the value and its interval; nil without a value. If either is missing,
	// Refusal and Why give the reason.
	Estimate *Estimate
	// Refusal is the reason for a missing value or interval; "" with both. Why is the
	// reason as a sentence.
	Refusal Refusal
	Why     string
	// Order says when this point's runs were made, relative to the other's.
	Order Order
	// Drift lists what the runs of the curve depend on apart from chance.
	Drift []Drift
	// Of describes the point's runs, Over those of the point that it is divided by.
	Of, Over Side
}

// A Side is the runs of one of the two points of a Ratio.
type Side struct {
	Runs   int // with the measure, including those that missed the target
	Missed int // that missed the target
}

// A Refusal is a reason for a missing value or interval of a Ratio.
type Refusal string

// The refusals. With the first four, the value is missing too.
const (
	NoRuns    Refusal = "no-runs"    // a point has no run with the measure
	HalfMiss  Refusal = "half-miss"  // half of a point's runs or more miss the target
	Lacks     Refusal = "lacking"    // too many runs of a point lack it for a reason that depends on its value
	NoGain    Refusal = "no-gain"    // the measure has no better direction, or the ratio is out of range
	AtItself  Refusal = "base"       // a point relative to itself: 1 by definition
	PlanOrder Refusal = "order"      // the points were measured at different times: drift would look like a difference
	Drifting  Refusal = "drift"      // the machine drifts, and the runs were not interleaved
	TwoGroups Refusal = "two-groups" // a median is in the gap between fast and slow runs
	Missing   Refusal = "misses"     // too many runs miss the target: the interval has no upper end
	FewRuns   Refusal = "few-runs"   // too few runs for an interval, counting those that share a node as one
)

// An Order says when the runs of two points were made.
type Order string

// The orders.
const (
	OrderUnknown Order = "unknown" // the start time of some run is unknown: drift cannot be excluded
	Interleaved  Order = "interleaved"
	OnePerRun    Order = "runs" // both values come from the same runs
	MadeApart    Order = "apart"
)

const (
	madeApart  = "most of its runs were made before or after those of the base, and a drift of the machine would look like a difference"
	notInTurns = "the machine changes over time, and its runs and those of the base were not made in turns"
	zeroValue  = "a value is 0"
	// farApart explains a missing interval of two samples that have one each.
	farApart = "the values lie too far apart for an interval"
)

// Ratio compares the points of two summaries. Never nil.
func (s *Summary) Ratio(other *Summary) *Ratio {
	r := &Ratio{Of: s.side(), Over: other.side(), Order: order(s.made, other.made), Drift: s.found}
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

func (s *Summary) side() Side { return Side{Runs: s.Runs, Missed: s.Runs - len(s.Values)} }

// A Sample holds the values of a point's runs in the form that ratios need.
type Sample struct {
	Median *Estimate // drift-corrected median
	runs   []made
	// changing says that the machine drifted.
	changing bool
	// detrended says that Median is drift-corrected.
	detrended bool
	byNode    bool
	apart     bool // the samples may come from different times
	// lacking says that further runs lack a value for a reason that depends on it; Median
	// counts them, runs does not.
	lacking bool
}

// sample returns the summary's values, drift-corrected if needed.
func (s *Summary) sample() Sample {
	if !s.settled {
		s.settled = true
		s.still = Sample{Median: s.Median, runs: s.made, byNode: s.byNode, lacking: s.lacking > 0, changing: changing(s.found)}
		if s.still.changing {
			s.settle()
		}
	}
	return s.still
}

// settle sets the samples of all points with the same curve and measure.
func (s *Summary) settle() {
	points := make([][]made, len(s.peers))
	for i, p := range s.peers {
		points[i] = p.made
	}
	for i, runs := range detrend(points) {
		p := s.peers[i]
		p.settled = true
		p.still = Sample{Median: p.Median, runs: p.made, byNode: p.byNode, lacking: p.lacking > 0, changing: true}
		if p.Median != nil && len(runs) > 0 && !slices.EqualFunc(runs, p.made, func(a, b made) bool { return a.value == b.value }) {
			still := p.an.summarise(&Summary{Measure: p.Measure, an: p.an, byNode: p.byNode}, runs, p.lacking)
			p.still.Median, p.still.runs, p.still.detrended = still.Median, runs, true
		}
	}
}

// divide returns the ratio of two medians, or of the values within runs if the runs are the
// same, with its interval or the reason why it is missing; nil if it is out of range.
func divide(a, b Sample, confidence float64) (*Estimate, Refusal) {
	if e, why, ok := divideRuns(a, b, confidence); ok {
		return e, why
	}
	e := quotient(a.Median, b.Median)
	if e == nil || !isRate(e.Value) {
		return nil, NoGain
	}
	e.Adjusted = a.detrended || b.detrended
	refuse := func(why Refusal, text string) (*Estimate, Refusal) {
		e.Interval, e.Why = nil, text
		return e, why
	}
	if why, text := unbalanced(a, b); why != "" && !a.apart {
		x, y := common(a.runs, b.runs)
		a.runs, b.runs = x, y
		if again, _ := unbalanced(a, b); again != "" || a.lacking || b.lacking || len(x) < leastRuns(confidence) {
			return refuse(why, text)
		}
		a.Median, b.Median = medianOfRuns(x, a.byNode, confidence), medianOfRuns(y, b.byNode, confidence)
		if e = quotient(a.Median, b.Median); e == nil || !isRate(e.Value) {
			return nil, NoGain
		}
		e.Adjusted = true
	}
	switch {
	case slices.ContainsFunc(slices.Concat(a.runs, b.runs), func(m made) bool { return m.value <= 0 }):
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

// divideRuns returns the ratio within common runs or blocks; ok is false if there are none.
// If runs lack a value for a reason that depends on it, the other runs' ratios would be
// biased, so it returns false.
func divideRuns(a, b Sample, confidence float64) (e *Estimate, why Refusal, ok bool) {
	if a.lacking || b.lacking {
		return nil, "", false
	}
	if within := withinRuns(a.runs, b.runs); within != nil {
		e, why = ofRuns(within, a.byNode || b.byNode, confidence)
		return e, why, true
	}
	logs := paired(a.runs, b.runs)
	if len(logs) < leastRuns(confidence) || a.byNode || b.byNode {
		return nil, "", false
	}
	if e, why = ofLogs(logs, false, confidence); e != nil {
		e.Adjusted = true
	}
	return e, why, true
}

// unbalanced explains why a ratio of two samples would include drift.
func unbalanced(a, b Sample) (Refusal, string) {
	switch p := balance(a.runs, b.runs); {
	case p <= apartAt:
		return PlanOrder, madeApart
	case (a.changing || b.changing) && p <= unbalancedAt:
		return Drifting, notInTurns
	}
	return "", ""
}

// common returns the runs of repeats that both samples have: if one has more, made later,
// the common ones come from the same time. It returns nil if repeats are unknown.
func common(a, b []made) (x, y []made) {
	type key struct {
		study  string
		repeat int
	}
	of := func(runs []made) map[key]bool {
		keys := map[key]bool{}
		for _, m := range runs {
			keys[key{m.Study, m.Repeat}] = true
		}
		return keys
	}
	inA, inB := of(a), of(b)
	if len(inA) < len(a) || len(inB) < len(b) {
		return nil, nil
	}
	other := func(runs []made, keys map[key]bool) (list []made) {
		for _, m := range runs {
			if keys[key{m.Study, m.Repeat}] {
				list = append(list, m)
			}
		}
		return list
	}
	return other(a, inB), other(b, inA)
}

// medianOfRuns returns the median over runs, with +Inf for misses; nil if half miss.
func medianOfRuns(runs []made, byNode bool, confidence float64) *Estimate {
	misses := 0
	values := make([]float64, len(runs))
	for i, m := range runs {
		if values[i] = m.value; math.IsInf(m.value, 1) {
			misses++
		}
	}
	slices.Sort(values)
	e := medianOf(values, confidence)
	if byNode {
		e.byNode(runs, confidence)
	}
	return reached(e, misses).Median
}

// ofRuns returns the median of the ratios within runs, and its exact interval.
func ofRuns(within []made, byNode bool, confidence float64) (*Estimate, Refusal) {
	logs := slices.Clone(within)
	for i := range logs {
		logs[i].value = math.Log(logs[i].value)
	}
	return ofLogs(logs, byNode, confidence)
}

// ofLogs returns the median of ratios given by their logarithms, and its exact interval.
func ofLogs(logs []made, byNode bool, confidence float64) (*Estimate, Refusal) {
	values := make([]float64, len(logs))
	for i, m := range logs {
		values[i] = m.value
	}
	slices.Sort(values)
	e := medianOf(values, confidence)
	if byNode {
		e.byNode(logs, confidence)
	}
	if e.Value = math.Exp(e.Value); !isRate(e.Value) {
		return nil, NoGain
	}
	if e.Interval == nil {
		return e, FewRuns
	}
	e.Interval.Low, e.Interval.High = math.Exp(e.Interval.Low), math.Exp(e.Interval.High)
	return e, ""
}

// twoGroups reports whether about half of at least six runs are fast and the others slow,
// with the median in a wide gap between them.
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

// gapped reports whether the gap after the first k of at least three ascending logarithms
// is wide.
func gapped(logs []float64, k int) bool {
	spread := math.Sqrt((scatter(logs[:k]) + scatter(logs[k:])) / float64(len(logs)-2))
	gap := logs[k] - logs[k-1]
	return gap > clearGap*spread && gap > 0.02
}

// clearGap is a gap, in standard deviations within the groups, that rarely occurs by chance
// within one group.
const clearGap = 5

// scatter returns the sum of the squared distances from the mean.
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

// FromStart returns the time to a target from the start of the processes, including
// initialisation: the sum of both within each run. Runs without a recorded initialisation
// use the median of the point's others. Its measure is measure.FromStart of the time's. It
// is empty if no run of the point recorded its initialisation, and for the program's own
// target, whose clock follows the program's rules.
func (p *Point) FromStart(name string) *Summary {
	t := p.Of(name)
	t.derive(&t.started, (*Summary).fromStart, func(s *Summary) **Summary { return &s.started })
	return t.started
}

// Reaching returns the summary of only those runs that reached the target.
func (s *Summary) Reaching() *Summary {
	s.derive(&s.reaching, (*Summary).onlyReached, func(s *Summary) **Summary { return &s.reaching })
	return s.reaching
}

// derive builds summaries of all points of a curve from those of a measure.
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
