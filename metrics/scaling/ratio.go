package scaling

import (
	"math"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling/drift"
)

// A Ratio is how many times better one point is than another in one measure: a
// speedup, for rates and times alike. Every table, sentence, figure, and view that
// shows such a ratio shows this one.
type Ratio struct {
	// Estimate has the value and its interval. nil: there is no value. Without an
	// interval, Refusal and Why say why.
	Estimate *Estimate
	// Refusal is why there is no value or no interval; "" with both. Why is the same
	// as a sentence.
	Refusal Refusal
	Why     string
	// Order is when the runs of the one point were made, seen from the other's.
	Order Order
	// Drift is what the runs of the curve go by other than chance; nil for nothing.
	Drift []drift.Finding
	// Of is the point's runs, Over those of the point that it is divided by.
	Of, Over Side
}

// A Side is the runs of one of the two points that a Ratio compares.
type Side struct {
	Runs   int // with the measure, those that missed the target included
	Missed int // that missed the target
}

// A Refusal is a reason why a Ratio has no value or no interval.
type Refusal string

// The refusals. The first three leave no value either.
const (
	NoRuns    Refusal = "no-runs"   // a point has no run with the measure
	HalfMiss  Refusal = "half-miss" // half of a point's runs or more miss the target
	NoGain    Refusal = "no-gain"   // the measure is not better either way, or a value is 0 or out of range
	AtItself  Refusal = "base"      // a point over itself is 1 by definition
	FewRuns   Refusal = "few-runs"  // too few runs for an interval, after those that share a node count as one
	Missing   Refusal = "misses"    // so many runs miss the target that the interval has no end
	PlanOrder Refusal = "order"     // the runs of the points were made at different times: a drift would look like a difference
	Drifting  Refusal = "drift"     // the machine drifts, and the runs are not in blocks that cancel it
)

// Order is when the runs of two points were made.
type Order string

// The orders.
const (
	OrderUnknown Order = "unknown" // some run does not say when it began: drift cannot be excluded
	Interleaved  Order = "interleaved"
	InBlocks     Order = "blocks" // a run of each point, then another of each
	OnePerRun    Order = "runs"   // both values are of the same runs
	MadeApart    Order = "apart"
)

// Ratio compares the point that s is of with the point that other is of. Never nil.
func (s *Summary) Ratio(other *Summary) *Ratio {
	r := &Ratio{Of: s.side(), Over: other.side(), Order: order(s.made, other.made)}
	r.Drift = s.found
	refuse := func(why Refusal, text string) *Ratio {
		r.Refusal, r.Why = why, text
		return r
	}
	switch {
	case s.Runs == 0 || other.Runs == 0:
		return refuse(NoRuns, "no run has it")
	case s.Better == measure.Neither:
		return refuse(NoGain, "it is neither better nor worse")
	case s.Median == nil && 2*r.Of.Missed >= r.Of.Runs || other.Median == nil && 2*r.Over.Missed >= r.Over.Runs:
		return refuse(HalfMiss, halfMiss)
	case s.Median == nil || other.Median == nil:
		return refuse(Missing, tooManyMiss)
	}
	r.Estimate = s.over(other)
	switch {
	case r.Estimate == nil:
		return refuse(NoGain, "a value is 0 or out of range")
	case r.Estimate.Interval != nil:
		return r
	case s == other:
		return refuse(AtItself, AtBase)
	case r.Estimate.Why == madeApart:
		return refuse(PlanOrder, madeApart)
	case r.Estimate.Why == zeroValue:
		return refuse(NoGain, zeroValue)
	}
	return refuse(FewRuns, r.Estimate.Why)
}

func (s *Summary) side() Side { return Side{Runs: s.Runs, Missed: s.Runs - len(s.Values)} }

func order(a, b []made) Order {
	for _, list := range [][]made{a, b} {
		for _, m := range list {
			if m.BeganUnix == 0 {
				return OrderUnknown
			}
		}
	}
	switch {
	case blocks(a, b) != nil:
		return InBlocks
	case apart(a, b):
		return MadeApart
	}
	return Interleaved
}

// FromStart is a point's time to a target from the start of its processes, with
// initialisation: the sum of both within each run. A run that did not record its
// initialisation gets the median of the point's others. The measure is called
// measure.FromStart(name). Nothing is in it where no run of the point recorded
// its initialisation.
func (p *Point) FromStart(name string) *Summary {
	t := p.Of(name)
	if t.started == nil {
		t.started = t.fromStart()
		if t.base != nil && t.base != t {
			if t.base.started == nil {
				t.base.started = t.base.fromStart()
			}
			t.started.base = t.base.started
		} else if t.base == t {
			t.started.base = t.started
		}
		t.started.multiple = t.multiple
	}
	return t.started
}

func (s *Summary) fromStart() *Summary {
	m := measure.FromStart(s.Measure)
	empty := &Summary{Measure: m}
	var inits []float64
	for _, o := range s.made {
		if x := o.Known(measure.InitSeconds); x != nil {
			inits = append(inits, *x)
		}
	}
	if len(inits) == 0 || s.Name == measure.ToTarget {
		return empty
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
	return s.an.summarise(&Summary{Measure: m, an: s.an, byNode: s.byNode, found: s.found}, values, 0)
}

// Reaching is the summary of the runs that reached the target alone: how fast those
// are, whatever share of all they may be.
func (s *Summary) Reaching() *Summary {
	var values []made
	for _, m := range s.made {
		if !math.IsInf(m.value, 1) {
			values = append(values, m)
		}
	}
	if len(values) == 0 {
		return &Summary{Measure: s.Measure}
	}
	return s.an.summarise(&Summary{Measure: s.Measure, an: s.an, rate: s.rate, byNode: s.byNode, found: s.found}, values, 0)
}
