package cost

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// joulesPerKWh is the number of joules in a kilowatt-hour.
const joulesPerKWh = 3.6e6

// Energy is a site's price and CO₂ emission per kilowatt-hour; nil means unknown,
// which differs from 0. Energy is shown next to a run's cost and never added to it:
// the price of a node-hour includes the node's energy.
type Energy struct {
	PerKWh   *float64 // in Currency
	Currency string
	Grams    *float64 // of CO₂ per kWh
	AsOf     string   // date of both values, 2006-01-02; "" if unknown
	Source   string
}

// Set reports whether any value is known.
func (e Energy) Set() bool { return e.PerKWh != nil || e.Grams != nil }

// Unknown says which keys to set for unknown values; "" if all are known.
func (e Energy) Unknown() string {
	var words []string
	if e.PerKWh == nil {
		words = append(words, "a price (energy.per_kwh with energy.currency)")
	}
	if e.Grams == nil {
		words = append(words, "CO2 (energy.co2_per_kwh)")
	}
	return strings.Join(words, " and ")
}

// String returns the known values: "0.3 EUR and 380 g of CO2 per kWh (as of
// 2026-01-01; the utility)".
func (e Energy) String() string {
	var words, about []string
	if e.PerKWh != nil {
		words = append(words, fmt.Sprintf("%g %s", *e.PerKWh, e.Currency))
	}
	if e.Grams != nil {
		words = append(words, fmt.Sprintf("%g g of CO2", *e.Grams))
	}
	text := strings.Join(words, " and ") + " per kWh"
	if e.AsOf != "" {
		about = append(about, "as of "+e.AsOf)
	}
	if e.Source != "" {
		about = append(about, e.Source)
	}
	if about != nil {
		text += " (" + strings.Join(about, "; ") + ")"
	}
	return text
}

// joules returns the energy of the work in one run, +Inf if it misses the target.
func (run *PricedRun) joules(w Work) (joules float64, why string) {
	switch {
	case w.Million:
		return 0, "power is a mean over all loads, not that of the largest rate"
	case w.Target != nil:
		return run.joulesTo(*w.Target)
	case run.Joules == nil:
		return 0, run.WhyNoJoules
	case w.Epoch && run.Epochs == 0:
		return 0, "no finished epoch recorded"
	case w.Epoch:
		return *run.Joules / float64(run.Epochs), ""
	}
	return *run.Joules, ""
}

// joulesTo returns the energy to a target; it is known only for the run's hardest one.
func (run *PricedRun) joulesTo(target measure.Target) (joules float64, why string) {
	seconds, why := run.reached(target)
	joules, known := run.Values[measure.JoulesToTarget]
	switch {
	case why != "":
		return 0, why
	case measure.Harder(target, slices.MaxFunc(slices.Collect(maps.Keys(run.Targets)), measure.Harder)) < 0:
		return 0, "energy is known to the hardest target alone"
	case math.IsInf(seconds, 1):
		return seconds, ""
	case !known:
		return 0, run.WhyNoJoules
	}
	return joules, ""
}

// energy sets the median over the runs. As with costs, if one run lacks it the
// configuration lacks it too: the others would not be the runs whose time is shown.
func (r *Row) energy(c Configuration, o Options) error {
	amounts := c.sample()
	without := map[string]int{}
	for _, run := range c.Runs {
		joules, why := run.joules(o.Work)
		if why != "" {
			without[why]++
			continue
		}
		amounts.add(&run, joules)
		if run.JoulesOf != "" && !slices.Contains(r.EnergyOf, run.JoulesOf) {
			r.EnergyOf = append(r.EnergyOf, run.JoulesOf)
		}
	}
	if len(without) > 0 {
		var whys []string
		for _, why := range slices.Sorted(maps.Keys(without)) {
			whys = append(whys, fmt.Sprintf("%d of %s: %s", without[why], number.Count(len(c.Runs), "run"), why))
		}
		r.WhyNoEnergy = strings.Join(whys, "; ")
		return nil
	}
	all, err := amounts.reached(o.Confidence)
	if r.Energy = all.Median; r.Energy == nil && len(c.Runs) > 0 {
		r.WhyNoEnergy = "too many runs miss the target for a median"
	}
	return err
}

// PerKWh multiplies an energy in joules by an amount per kilowatt-hour; nil if either
// is unknown.
func PerKWh(joules *scaling.Estimate, each *float64) *scaling.Estimate {
	if joules == nil || each == nil {
		return nil
	}
	e, factor := *joules, *each/joulesPerKWh
	e.Value *= factor
	if e.Interval != nil {
		in := *e.Interval
		in.Low, in.High = in.Low*factor, in.High*factor
		e.Interval = &in
	}
	return &e
}
