package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// achieved is the share of a rate that must be answered for the rate to count as measured;
// random arrivals vary by a few percent.
const achieved = 0.9

// WithinLimit answers for a limit other than the study's, from loads measured at fixed rates. A
// rate keeps the limit if more than half of all runs surely keep it there (by the exact
// interval of a median) and at all lower rates. It does not interpolate between rates; a
// run without a percentile does not count as keeping it.
//
// loads are curves of a measure of loads, and searched those of the highest rate within the
// studies' own limits, both along the replicas. If the limit is a series' own, its search
// answers; a search within a stricter limit also counts. price returns the cost of replicas
// of a curve's kind; nil without prices.
func WithinLimit(loads, searched []scaling.Curve, limit measure.Limit, demand Load, price func(scaling.Curve) func(replicas int) (float64, error)) []Answer {
	of := func(c scaling.Curve) func(int) (float64, error) {
		if price == nil {
			return nil
		}
		return price(c)
	}
	var list []Answer
	var done []scaling.Curve
	for _, c := range searched {
		if own, err := limitOf(c); err == nil && maps.Equal(own.Seconds, limit.Seconds) {
			list, done = append(list, Estimate(c, demand, of(c))), append(done, c)
		}
	}
	named := scaling.Rename(loads, measure.Rate)
	for i, c := range loads {
		like := func(o scaling.Curve) bool { return scaling.Alike(c, o, measure.Rate) }
		if _, open := c.Parameters[measure.Rate].(float64); !open || slices.ContainsFunc(done, like) {
			continue
		}
		done = append(done, c)
		var own []scaling.Curve
		for _, o := range loads {
			if _, open := o.Parameters[measure.Rate].(float64); open && like(o) {
				own = append(own, o)
			}
		}
		var search *scaling.Curve
		if j := slices.IndexFunc(searched, like); j >= 0 {
			search = &searched[j]
		}
		c.Series = named[i].Series
		measured, why := byRates(own, search, limit)
		list = append(list, answer(c, measured, why, demand, limit.String(), of(c)))
	}
	for _, c := range searched { // a stricter search without fixed rates
		own, err := limitOf(c)
		if err != nil || !stricter(own, limit) || slices.ContainsFunc(done, func(o scaling.Curve) bool { return scaling.Alike(c, o, measure.Rate) }) {
			continue
		}
		measured, why := withInterval(c)
		for i := range measured {
			measured[i].high, measured[i].byRates = math.Inf(1), true
		}
		list = append(list, answer(c, measured, why, demand, limit.String(), of(c)))
	}
	return list
}

func limitOf(c scaling.Curve) (measure.Limit, error) {
	text, _ := c.Parameters["workload.limit"].(string)
	return measure.ParseLimit(text)
}

// searched takes a larger rate that a search found within a stricter limit.
func (c *carried) searched(search scaling.Curve, limit measure.Limit) {
	if own, err := limitOf(search); err != nil || !stricter(own, limit) {
		return
	}
	for _, p := range search.Points {
		e := p.Of(measure.RateWithinLimit).Median
		if low, _, ok := e.Ends(); p.Workers == c.replicas && ok && low > c.low {
			c.low, c.rate = low, max(c.rate, e.Value)
		}
	}
}

// byRates returns what each number of replicas carried, from curves that differ only in the rate.
func byRates(curves []scaling.Curve, search *scaling.Curve, limit measure.Limit) (list []carried, why string) {
	if own, err := limitOf(curves[0]); err == nil {
		limit.Errors = own.Errors
	}
	for _, name := range slices.Sorted(maps.Keys(limit.Seconds)) {
		if !slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Measured(name) }) {
			return nil, "no run has " + name + " at a rate"
		}
	}
	at := map[int]map[float64]scaling.Point{} // by replicas, then rate
	for _, c := range curves {
		for _, p := range c.Points {
			if at[p.Workers] == nil {
				at[p.Workers] = map[float64]scaling.Point{}
			}
			at[p.Workers][c.Parameters[measure.Rate].(float64)] = p
		}
	}
	why = "no measured rate"
	for _, replicas := range slices.Sorted(maps.Keys(at)) {
		one := carried{replicas: replicas, high: math.Inf(1), byRates: true}
		one.rates(at[replicas], asked(curves[0]), limit)
		if one.runs < fewest {
			why = fmt.Sprintf("at %s no rate has %d runs, which an interval needs; set study.repeats", counted(replicas), fewest)
			continue
		}
		if search != nil {
			one.searched(*search, limit)
		}
		list = append(list, one)
	}
	return list, why
}

// fewest is the smallest number of runs with an interval of their median.
const fewest = 6

// stricter reports whether keeping limit a implies keeping b.
func stricter(a, b measure.Limit) bool {
	for name, seconds := range b.Seconds {
		if own, has := a.Seconds[name]; !has || own > seconds {
			return false
		}
	}
	return a.Errors <= b.Errors
}

// asked returns the rates in the study; nil if unknown.
func asked(c scaling.Curve) (rates []float64) {
	list, _ := c.Parameters["workload.rate"].([]any)
	for _, x := range list {
		switch x := x.(type) {
		case float64:
			rates = append(rates, x)
		case int64:
			rates = append(rates, float64(x))
		}
	}
	return rates
}

// rates sets the carried rate from the points at each rate: the median of the runs, and the
// rates that bracket it.
func (m *carried) rates(points map[float64]scaling.Point, rates []float64, limit measure.Limit) {
	// A run with several rates that lacks one could not keep up there or was too unsteady.
	// A run with a single rate says nothing about others.
	loads := map[string]int{}
	for rate, p := range points {
		rates = append(rates, rate)
		for _, r := range p.Runs {
			loads[r.ID]++
		}
	}
	slices.Sort(rates)
	keeping, median := true, true
	for _, rate := range slices.Compact(rates) {
		var lacking, over []float64 // 1 for a run that does not surely keep it, or that breaks it
		p := points[rate]
		seen := map[string]bool{}
		for _, r := range p.Runs {
			seen[r.ID] = true
			known, broken := judge(r.Values, rate, limit)
			lacking, over = append(lacking, share(!known || broken)), append(over, share(broken))
		}
		for id, n := range loads {
			if n > 1 && !seen[id] {
				lacking, over = append(lacking, 1), append(over, 0)
			}
		}
		m.runs = max(m.runs, len(lacking))
		kept, err := scaling.Median(lacking, 0)
		keeping = keeping && err == nil && kept.Interval != nil && kept.Interval.High == 0
		median = median && err == nil && kept.Value < 0.5
		if keeping {
			m.low = rate
		}
		if median {
			m.rate = rate
		}
		if broke, err := scaling.Median(over, 0); err == nil && broke.Interval != nil && broke.Interval.Low == 1 {
			m.high = rate
			return
		}
	}
}

// judge reports whether a run's values at a rate tell if it keeps the limit, and whether
// they show that it breaks it.
func judge(values map[string]float64, rate float64, limit measure.Limit) (known, broken bool) {
	if answers, has := values[measure.RequestsPerSecond]; has && answers < achieved*rate {
		return false, false // the actual rate was lower than requested
	}
	known = true
	for name, seconds := range limit.Seconds {
		x, has := values[name]
		known, broken = known && has, broken || has && x > seconds
	}
	if wrong, has := values[measure.Errors]; has && wrong > limit.Errors {
		broken = true
	}
	return known, broken
}

func share(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
