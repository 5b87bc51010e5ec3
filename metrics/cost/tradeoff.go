package cost

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// This file sets configurations side by side by what they take and what
// they cost: medians over runs with their intervals, both over a baseline's,
// cost of an epoch and to each target accuracy, and which are worth having at
// all (the Pareto front): by time and cost, or by any measure and cost.
//
// Figures are made of unrounded ones, ratios of medians and never
// means of ratios, without the drift of the machine, and a ratio's
// interval is that of package scaling. A run that cannot be priced leaves its configuration
// without a cost, with the reason: a cost of the others would be of other runs
// than the time beside it.

// PricedRun is one run's time and price.
type PricedRun struct {
	ID        string
	Seconds   float64 // that it took, on the clock that the caller chose
	Rate      *Rate   // nil: it has no price, and WhyNoRate says why
	WhyNoRate string
	// Joules is the energy that it took in those seconds; nil where WhyNoJoules says why.
	Joules      *float64
	WhyNoJoules string
	JoulesOf    string                     // what they are of, in a sentence; "" for what the run's samplers read
	Epochs      int                        // finished; 0 when none was, or it is not known
	Targets     map[measure.Target]float64 // seconds to each; +Inf: missed
	Values      map[string]float64         // as in scaling.Run
	Hosts       []string                   // nodes that it ran on; nil: not known
	// Made is when it was made, and in which repeat; nil: not known.
	Made *scaling.Observation
}

// Configuration is runs that are repeats of each other.
type Configuration struct {
	Series     string
	Workers    int
	Parameters map[string]any // that the series differ by, for the baseline
	Runs       []PricedRun
	// ByNode: runs of its series differ by their nodes, so that those that share one
	// count as one in intervals; see scaling.Curve.
	ByNode bool
	// Measured are what the runs say of the measures that they have.
	Measured []*scaling.Summary
}

// Work is what time and cost are of.
type Work struct {
	Epoch  bool            // of one epoch, on the average of the run
	Target *measure.Target // or until this is reached; nil and false: of the whole run
	// Million is of a million answers of a service that goes on: by the price of an
	// hour, without what a single use is billed in.
	Million bool
}

// String is the work for people: "a run", "an epoch", "accuracy 0.75", "a million answers".
func (w Work) String() string {
	switch {
	case w.Target != nil:
		return w.Target.Text()
	case w.Epoch:
		return "an epoch"
	case w.Million:
		return "a million answers"
	}
	return "a run"
}

// Options say what is compared.
type Options struct {
	Work Work
	// Measure stands beside the cost, and takes the place of the time on the front;
	// zero: none is asked for.
	Measure  measure.Measure
	Baseline []scaling.Condition // nil: nothing is divided
	// Energy is what the site says of a kilowatt-hour.
	Energy Energy
	// Confidence is the level asked of every interval; 0 is 0.95.
	Confidence float64
}

// BaselineText is the baseline for people: "the same with platform=gpu".
func (o Options) BaselineText() string {
	words := make([]string, len(o.Baseline))
	for i, c := range o.Baseline {
		words[i] = c.String()
	}
	return "the same with " + strings.Join(words, ", ")
}

// Judged reports whether a row can be on the front: what the front is of is known.
func (o Options) Judged(r Row) bool {
	_, known := o.merit(&r)
	return known && r.Cost != nil
}

// merit is what a row is judged by beside its cost, less being better; ok is false
// where that is not known, and for a measure that is neither better nor worse.
func (o Options) merit(r *Row) (x float64, ok bool) {
	switch {
	case o.Measure.Name == "" && r.Time != nil:
		return r.Time.Value, true
	case r.Value == nil || o.Measure.Better == measure.Neither:
		return 0, false
	case o.Measure.Better == measure.Higher:
		return -r.Value.Value, true
	}
	return r.Value.Value, true
}

// Bought is what a unit of currency buys of a measure that is something in a
// second: "tokens" of tokens/s; "" for any other.
func (o Options) Bought() string {
	what, rate := strings.CutSuffix(o.Measure.Unit, "/s")
	if !rate {
		return ""
	}
	return what
}

// Comparison is configurations side by side, with what they are of.
type Comparison struct {
	Rows     []Row
	Options  Options
	Currency string
}

// Row is one configuration. What could not be had is nil.
type Row struct {
	Series     string
	Workers    int
	Parameters map[string]any
	Runs       int

	Time *scaling.Estimate // seconds
	Cost *scaling.Estimate // in Rate's currency
	Why  string            // there is no time, or no cost; "" with both
	Rate *Rate             // of the first run, nil without a cost

	Energy      *scaling.Estimate // joules
	WhyNoEnergy string
	EnergyOf    []string // PricedRun.JoulesOf of its runs

	// Value is of Options.Measure, in its unit: the median over the runs that have
	// it. WhyNoValue says why there is none, or why it has no interval.
	Value      *scaling.Estimate
	WhyNoValue string
	// Bought is how much of Options.Bought a unit of currency buys at that rate, by
	// the price of an hour; nil without a price, and at none.
	Bought *scaling.Estimate

	// Over the baseline's: ratios of medians, or the medians of the ratios within
	// blocks of runs; see scaling.RatioOf. Exactly 1, without an interval, at the
	// baseline itself.
	TimeNormalised, CostNormalised *scaling.Estimate
	// Gain is how many times better than the baseline the value is, in the direction
	// of its measure.
	Gain *scaling.Estimate
	// Matched is the row over the baseline at the same price of an hour; nil where
	// Options.Matches says that nothing is.
	Matched *Matched
	// BreakEven is 1/CostNormalised: how many times dearer this may get before
	// the baseline is as cheap. nil at no cost.
	BreakEven *float64
	Base      string // whom it is divided by: "native, 1 worker"; "" for none, and WhyNoBase says why
	WhyNoBase string

	CostPerEpoch *scaling.Estimate
	Targets      []Target // as measure.Harder orders them
	// Front reports whether nothing else is as fast and as cheap and better in
	// one of them; with Options.Measure, as good in that in place of as fast. false
	// also where one of the two is not known.
	Front    bool
	Warnings []string

	times, costs, merits, boughts scaling.Sample // that Time, Cost, Value and Bought are of
}

// AtBaseline is why the baseline's own ratios have no interval.
const AtBaseline = "1 by definition at the baseline"

// Target is what it takes and costs to reach one. A run that misses
// ranks behind all that reach it; see scaling.Reached.
type Target struct {
	Of            measure.Target
	Reached, Runs int
	Time, Cost    *scaling.Estimate
	Why           string
}

// Compare computes one row for each configuration, in their order.
func Compare(list []Configuration, o Options) ([]Row, error) {
	rows := make([]Row, len(list))
	for i, c := range list {
		r := &rows[i]
		*r = Row{Series: c.Series, Workers: c.Workers, Parameters: c.Parameters, Runs: len(c.Runs)}
		if err := r.amounts(c, o); err != nil {
			return nil, err
		}
		if err := r.value(c, o); err != nil {
			return nil, err
		}
		if err := r.energy(c, o); err != nil {
			return nil, err
		}
		if err := r.perEpoch(c, o.Confidence); err != nil {
			return nil, err
		}
		if err := r.targets(c, o.Confidence); err != nil {
			return nil, err
		}
	}
	if o.Baseline != nil {
		bases, err := scaling.Baselines(o.Baseline, parameters(list))
		if err != nil {
			return nil, err
		}
		for i := range rows {
			r, at := &rows[i], bases[i].Index
			if bases[i].Why != "" {
				r.WhyNoBase = bases[i].Why
				continue
			}
			if also := bases[i].Also; also != nil {
				r.Warnings = append(r.Warnings, fmt.Sprintf("%s: also differs from its baseline in %s", o.Name(*r), strings.Join(also, ", ")))
			}
			r.Base = o.Name(rows[at])
			r.TimeNormalised = ratio(r.times, rows[at].times, i == at, o.Confidence)
			r.CostNormalised = ratio(r.costs, rows[at].costs, i == at, o.Confidence)
			r.Gain = o.gain(r.merits, rows[at].merits, i == at)
			if c := r.CostNormalised; c != nil && c.Value > 0 {
				even := 1 / c.Value
				r.BreakEven = &even
			}
		}
		if err := match(rows, list, o); err != nil {
			return nil, err
		}
	}
	Front(rows, o)
	warnWork(rows, list, o.Work)
	return rows, nil
}

// parameters are those of each configuration, its workers among them.
func parameters(list []Configuration) []map[string]any {
	all := make([]map[string]any, len(list))
	for i, c := range list {
		all[i] = map[string]any{scaling.Workers: c.Workers}
		maps.Copy(all[i], c.Parameters)
	}
	return all
}

// Front marks the configurations that no other one dominates. What differs by
// less than sums of floats can tell is equal.
func Front(rows []Row, o Options) {
	const tolerance = 1e-9
	less := func(a, b float64) bool { return a < b-tolerance*max(math.Abs(a), math.Abs(b)) }
	for i := range rows {
		a := &rows[i]
		if a.Front = o.Judged(*a); !a.Front {
			continue
		}
		merit, _ := o.merit(a)
		a.Front = !slices.ContainsFunc(rows, func(b Row) bool {
			other, _ := o.merit(&b)
			return o.Judged(b) && !less(merit, other) && !less(a.Cost.Value, b.Cost.Value) &&
				(less(other, merit) || less(b.Cost.Value, a.Cost.Value))
		})
	}
}

// warnWork says where whole runs are compared that did not do the same work.
func warnWork(rows []Row, list []Configuration, w Work) {
	if w.Epoch || w.Million || w.Target != nil {
		return
	}
	epochs := map[int]bool{}
	for _, c := range list {
		for _, run := range c.Runs {
			epochs[run.Epochs] = true
		}
	}
	if len(epochs) < 2 {
		return
	}
	var counts []string
	for _, n := range slices.Sorted(maps.Keys(epochs)) {
		counts = append(counts, fmt.Sprint(n))
	}
	for i := range rows {
		rows[i].Warnings = append(rows[i].Warnings, "runs of different length are compared ("+strings.Join(counts, ", ")+
			" epochs): time and cost are not for the same work; compare them per epoch or to a target")
	}
}
