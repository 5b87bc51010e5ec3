package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// achieved is the share of a rate that has to be answered for it to be the rate that
// was measured; arrivals at random times are a few per cent more or fewer.
const achieved = 0.9

// Within answers for each series by another limit than its study's, from the loads that
// were measured at rates: a rate keeps the limit if more than half of all runs are shown
// to keep it there (the exact interval of a median), and at all smaller rates. Nothing
// between rates is guessed, and a run that does not know a percentile keeps nothing.
//
// loads are curves of a measure of loads, searched those of the largest rate within the
// studies' own limits, both along the replicas. A series whose own limit is asked for
// has the answer of its search, and what a search found within a stricter limit keeps
// this one too. price is what replicas of a curve's kind cost; nil without prices.
func Within(loads, searched []scaling.Curve, limit measure.Limit, demand Load, price func(scaling.Curve) func(replicas int) (float64, error)) []Answer {
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
			list, done = append(list, Of(c, demand, of(c))), append(done, c)
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
	for _, c := range searched { // a stricter search, and no rates beside it
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

// byRates are what each number of replicas carried, by curves that differ in the rate.
func byRates(curves []scaling.Curve, search *scaling.Curve, limit measure.Limit) (list []carried, why string) {
	if own, err := limitOf(curves[0]); err == nil {
		limit.Errors = own.Errors
	}
	for _, name := range slices.Sorted(maps.Keys(limit.Seconds)) {
		if !slices.ContainsFunc(curves, func(c scaling.Curve) bool { return c.Measured(name) }) {
			return nil, "no run has " + name + " at a rate"
		}
	}
	at := map[int]map[float64]scaling.Point{} // by replicas and rate
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
			if own, err := limitOf(*search); err == nil && stricter(own, limit) {
				for _, p := range search.Points {
					if e := p.Of(measure.RateWithinLimit).Median; p.Workers == replicas && e != nil && e.Interval != nil && e.Interval.Low > one.low {
						one.low, one.rate = e.Interval.Low, max(one.rate, e.Value)
					}
				}
			}
		}
		list = append(list, one)
	}
	return list, why
}

// fewest runs have an interval of their median.
const fewest = 6

// stricter reports whether whatever keeps a limit keeps the other one too.
func stricter(a, b measure.Limit) bool {
	for name, seconds := range b.Seconds {
		if own, has := a.Seconds[name]; !has || own > seconds {
			return false
		}
	}
	return a.Errors <= b.Errors
}

// asked are the rates that a study asks for; nil where that is not known.
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

// rates sets what was carried by the points at each rate: the median of the runs, and
// the rates between which it is.
func (m *carried) rates(points map[float64]scaling.Point, rates []float64, limit measure.Limit) {
	// A run of several rates that lacks one knows nothing of it: the service did not
	// keep up there, or was too unsteady. One of a single rate is of that alone.
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
		var lacking, over []float64 // 1 for a run that is not known to keep it, or breaks it
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

// judge says whether a run's values at a rate tell if it keeps the limit, and whether
// they show that it breaks it.
func judge(values map[string]float64, rate float64, limit measure.Limit) (known, broken bool) {
	if answers, has := values[measure.RequestsPerSecond]; has && answers < achieved*rate {
		return false, false // another load than its name says
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
