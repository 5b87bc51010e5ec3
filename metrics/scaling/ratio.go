package scaling

import (
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A Ratio tells how many times better one point is than another in one measure: a
// speedup, for rates and times alike. Every table, sentence, figure, and view that
// shows such a ratio shows this one.
//
// It is the ratio of the medians over the runs. Where the machine was found to change
// over time, the medians are of values from which the change is taken out; where both
// values are of the same runs, it is the median of the ratios within the runs. The
// other way round it is the inverse, with its interval.
type Ratio struct {
	// Estimate has the value and its interval; nil without a value. Without an interval,
	// Refusal and Why give the reason.
	Estimate *Estimate
	// Refusal is the reason why the value or the interval is missing; "" with both. Why is
	// the same as a sentence.
	Refusal Refusal
	Why     string
	// Order is when the runs of the one point were made, seen from the other's.
	Order Order
	// Drift lists what the runs of the curve depend on besides chance.
	Drift []Drift
	// Of has the point's runs, Over the runs of the point that it is divided by.
	Of, Over Side
}

// A Side is the runs of one of the two points that a Ratio compares.
type Side struct {
	Runs   int // with the measure, those that missed the target included
	Missed int // that missed the target
}

// A Refusal is a reason why a Ratio has no value or no interval.
type Refusal string

// The refusals. The first four leave no value either.
const (
	NoRuns    Refusal = "no-runs"    // a point has no run with the measure
	HalfMiss  Refusal = "half-miss"  // half of a point's runs or more miss the target
	Lacks     Refusal = "lacking"    // runs of a point lack it because of what it would be, too many to leave out
	NoGain    Refusal = "no-gain"    // the measure is not better either way, or the ratio is out of range
	AtItself  Refusal = "base"       // a point over itself is 1 by definition
	PlanOrder Refusal = "order"      // the runs of the points were made at different times: a drift would look like a difference
	Drifting  Refusal = "drift"      // the machine changes over time, and the runs were not made in turns
	TwoGroups Refusal = "two-groups" // a median falls into the gap between fast and slow runs
	Missing   Refusal = "misses"     // so many runs miss the target that the interval has no end
	FewRuns   Refusal = "few-runs"   // too few runs for an interval, after those that share a node count as one
)

// Order is when the runs of two points were made.
type Order string

// The orders.
const (
	OrderUnknown Order = "unknown" // some run does not say when it began: drift cannot be excluded
	Interleaved  Order = "interleaved"
	OnePerRun    Order = "runs" // both values are of the same runs
	MadeApart    Order = "apart"
)

const (
	madeApart  = "most of its runs were made before or after those of the base, and a drift of the machine would look like a difference"
	notInTurns = "the machine changes over time, and its runs and those of the base were not made in turns"
	zeroValue  = "a value is 0"
	// farApart is why two samples have no interval although each has.
	farApart = "the values lie too far apart for an interval"
)

// Ratio compares the point that s is of with the point that other is of. Never nil.
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

// A Sample has the values of a point's runs as a ratio needs them.
type Sample struct {
	Median *Estimate // of what a ratio is of: without the change of the machine
	runs   []made
	// changing says that the machine was found to change over time.
	changing bool
	// detrended says that Median is of values from which that was taken out.
	detrended bool
	byNode    bool
	apart     bool // the samples may be of different times
	// lacking: more runs have no value because of what it would be; Median counts them,
	// runs does not.
	lacking bool
}

// sample is the summary's, of values from which the change of the machine was taken
// out where one was found.
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

// settle sets the samples of all points that share the curve and the measure.
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

// divide is the ratio of two medians, or of the values within runs where the runs are
// the same, with its interval or the reason why there is none; nil where it is out of
// range.
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

// divideRuns is the ratio by runs that both samples have or that were made together; ok
// is false where they have none. Of runs that lack a value because of what it would be
// there is no ratio, so the others do not tell that of all.
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

// unbalanced is why a ratio of two samples would have a change of the machine in it.
func unbalanced(a, b Sample) (Refusal, string) {
	switch p := balance(a.runs, b.runs); {
	case p <= apartAt:
		return PlanOrder, madeApart
	case (a.changing || b.changing) && p <= unbalancedAt:
		return Drifting, notInTurns
	}
	return "", ""
}

// common are the runs of repeats that both samples have: where one has more, made later,
// these are of the same time. Nil where repeats are not told apart.
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

// medianOfRuns is the median over runs, of which +Inf is a miss; nil where half miss.
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

// ofRuns is the median of the ratios within runs, and its exact interval.
func ofRuns(within []made, byNode bool, confidence float64) (*Estimate, Refusal) {
	logs := slices.Clone(within)
	for i := range logs {
		logs[i].value = math.Log(logs[i].value)
	}
	return ofLogs(logs, byNode, confidence)
}

// ofLogs is the median of ratios of which these are the logarithms, and its exact interval.
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

// twoGroups reports whether about half of six runs or more are fast and the others
// slow, with a wide gap between them in which the median lies.
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

// gapped reports whether the gap between the first k of three ascending logarithms or more
// and the others is wide.
func gapped(logs []float64, k int) bool {
	spread := math.Sqrt((scatter(logs[:k]) + scatter(logs[k:])) / float64(len(logs)-2))
	gap := logs[k] - logs[k-1]
	return gap > clearGap*spread && gap > 0.02
}

// clearGap is a gap between groups, in standard deviations within the groups, that hardly
// ever occurs by chance within one group.
const clearGap = 5

// scatter is the sum of the squared distances from the mean.
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

// FromStart is a point's time to a target from the start of its processes, with
// initialisation: the sum of both within each run. A run that did not record its
// initialisation gets the median of the point's others. The measure is
// measure.FromStart of the time's. Nothing is in it where no run of the point recorded
// its initialisation, and for the program's own target, whose clock has it or not by
// its own rules.
func (p *Point) FromStart(name string) *Summary {
	t := p.Of(name)
	t.derive(&t.started, (*Summary).fromStart, func(s *Summary) **Summary { return &s.started })
	return t.started
}

// Reaching is the summary of the runs that reached the target alone: how fast those
// are, whatever share of all they may be.
func (s *Summary) Reaching() *Summary {
	s.derive(&s.reaching, (*Summary).onlyReached, func(s *Summary) **Summary { return &s.reaching })
	return s.reaching
}

// derive makes summaries of all points of a curve out of those of a measure.
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
