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

// This file compares configurations by time and cost: medians over runs with
// intervals, ratios to a baseline, the cost of an epoch and of each target accuracy,
// and which configurations are worth considering (the Pareto front of time and cost,
// or of any measure and cost).
//
// All figures derive from unrounded ones. Ratios are ratios of medians, never means of
// ratios, corrected for the drift of the machine; package scaling computes their
// intervals. If one run cannot be priced, its configuration has no cost and a reason:
// the cost of the others would not be of the runs whose time is shown.

// A PricedRun is one run's time and price.
type PricedRun struct {
	ID        string
	Seconds   float64 // duration, on the clock that the caller chose
	Rate      *Rate   // nil if the run has no price; see WhyNoRate
	WhyNoRate string
	// Joules is the energy used in those seconds; nil: see WhyNoJoules.
	Joules      *float64
	WhyNoJoules string
	JoulesOf    string                     // a sentence that says what Joules covers; "" for sampled energy
	Epochs      int                        // epochs finished; 0 if none or unknown
	Targets     map[measure.Target]float64 // seconds to each target; +Inf: missed
	Values      map[string]float64         // as in scaling.Run
	Hosts       []string                   // nodes used; nil if unknown
	// Made is when the run was made, and in which repeat; nil if unknown.
	Made *scaling.Observation
}

// A Configuration is a set of runs that are repeats of each other.
type Configuration struct {
	Series     string
	Workers    int
	Parameters map[string]any // parameters that distinguish the series, used to find the baseline
	Runs       []PricedRun
	// ByNode is set if runs of the series differ by node, so that runs that share a
	// node count as one in intervals; see scaling.Curve.
	ByNode bool
	// Measured holds the summaries of the runs' measures.
	Measured []*scaling.Summary
}

// Work is the unit that time and cost refer to.
type Work struct {
	Epoch  bool            // one epoch, averaged over the run
	Target *measure.Target // time until the target; nil with Epoch false: the whole run
	// Million is set for a million answers of a service in continuous operation. It
	// uses the hourly price without granularity and minimum.
	Million bool
}

// String returns the work as text: "a run", "an epoch", "accuracy 0.75", "a million
// answers".
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

// Options select what is compared.
type Options struct {
	Work Work
	// Measure is shown next to the cost and replaces time on the Pareto front; zero
	// means none.
	Measure  measure.Measure
	Baseline []scaling.Condition // nil: no ratios
	// Energy is the site's data per kilowatt-hour.
	Energy Energy
	// Confidence is the level of every interval; 0 means 0.95.
	Confidence float64
}

// BaselineText returns the baseline as text: "the same with platform=gpu".
func (o Options) BaselineText() string {
	words := make([]string, len(o.Baseline))
	for i, c := range o.Baseline {
		words[i] = c.String()
	}
	return "the same with " + strings.Join(words, ", ")
}

// Judged reports whether a row can be on the front: both of its values are known.
func (o Options) Judged(r Row) bool {
	_, known := o.merit(&r)
	return known && r.Cost != nil
}

// merit returns the value that the front weighs against cost; less is better. ok is
// false if it is unknown or the measure has no direction.
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

// Bought returns what a unit of currency buys of a rate: "tokens" for tokens/s; "" for
// measures that are not rates.
func (o Options) Bought() string {
	what, rate := strings.CutSuffix(o.Measure.Unit, "/s")
	if !rate {
		return ""
	}
	return what
}

// A Comparison is a list of configurations and what is compared.
type Comparison struct {
	Rows     []Row
	Options  Options
	Currency string
}

// A Row is one configuration. Unknown values are nil.
type Row struct {
	Series     string
	Workers    int
	Parameters map[string]any
	Runs       int

	Time *scaling.Estimate // seconds
	Cost *scaling.Estimate // in Rate's currency
	Why  string            // why there is no time or no cost; "" if both are known
	Rate *Rate             // of the first run; nil without a cost

	Energy      *scaling.Estimate // joules
	WhyNoEnergy string
	EnergyOf    []string // distinct PricedRun.JoulesOf of its runs

	// Value is the median of Options.Measure over the runs that have it, in its unit.
	// WhyNoValue says why it or its interval is missing.
	Value      *scaling.Estimate
	WhyNoValue string
	// Bought is the amount of Options.Bought that a unit of currency buys at that rate and
	// the hourly price; nil if the price is unknown or 0.
	Bought *scaling.Estimate

	// Ratios to the baseline: ratios of medians, or medians of the ratios within
	// blocks of runs; see scaling.RatioOf. At the baseline itself they are exactly 1,
	// without an interval.
	TimeNormalised, CostNormalised *scaling.Estimate
	// Gain says how many times better the value is than the baseline's, in the direction
	// of its measure.
	Gain *scaling.Estimate
	// Matched compares the row with the baseline at the same hourly price; nil unless
	// Options.Matches.
	Matched *Matched
	// BreakEven is 1/CostNormalised: how many times more expensive the row may get
	// before the baseline is as cheap; nil at cost 0.
	BreakEven *float64
	Base      string // the baseline: "native, 1 worker"; "" if there is none (see WhyNoBase)
	WhyNoBase string

	CostPerEpoch *scaling.Estimate
	Targets      []Target // as measure.Harder orders them
	// Front reports whether no other row is at least as good in both time and cost and
	// better in one. Options.Measure replaces time if set. It is false if either value
	// is unknown.
	Front    bool
	Warnings []string

	times, costs, merits, boughts scaling.Sample // samples of Time, Cost, Value and Bought
}

// AtBaseline explains why the baseline's ratios have no interval.
const AtBaseline = "1 by definition at the baseline"

// A Target is the time and cost of reaching a target. Runs that miss it rank after all
// that reach it; see scaling.Reached.
type Target struct {
	Of            measure.Target
	Reached, Runs int
	Time, Cost    *scaling.Estimate
	Why           string
}

// Compare returns one row per configuration, in the same order.
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
		if err := normalise(rows, list, o); err != nil {
			return nil, err
		}
		if err := match(rows, list, o); err != nil {
			return nil, err
		}
	}
	Front(rows, o)
	warnWork(rows, list, o.Work)
	return rows, nil
}

// normalise compares each row with its baseline.
func normalise(rows []Row, list []Configuration, o Options) error {
	bases, err := scaling.Baselines(o.Baseline, parameters(list))
	if err != nil {
		return err
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
		if c := r.CostNormalised; c != nil {
			r.BreakEven = new(1 / c.Value)
		}
	}
	return nil
}

// parameters returns each configuration's parameters, including its workers.
func parameters(list []Configuration) []map[string]any {
	all := make([]map[string]any, len(list))
	for i, c := range list {
		all[i] = map[string]any{scaling.Workers: c.Workers}
		maps.Copy(all[i], c.Parameters)
	}
	return all
}

// Front marks the configurations that no other one dominates. Differences within
// floating-point error count as equal.
func Front(rows []Row, o Options) {
	const tolerance = 1e-9
	less := func(a, b float64) bool { return a < b-tolerance*math.Abs(b) }
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

// warnWork warns if whole runs are compared that did different work.
func warnWork(rows []Row, list []Configuration, w Work) {
	if w.Epoch || w.Million || w.Target != nil {
		return
	}
	epochs := map[int]struct{}{}
	for _, c := range list {
		for _, run := range c.Runs {
			epochs[run.Epochs] = struct{}{}
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
