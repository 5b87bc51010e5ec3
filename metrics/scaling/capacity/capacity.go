// Package capacity says how many replicas of a service carry a demand, from the
// largest rate within the limit that runs of each number of replicas found
// (measure.RateWithinLimit). It is pure.
package capacity

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Answer is how many replicas of one series carry a demand.
type Answer struct {
	Series string  `json:"series"`
	Limit  string  `json:"limit"`  // as the study has it
	Demand float64 `json:"demand"` // requests/s
	// Where a request of the series holds another number of samples than one of the
	// demand, the demand is so many requests/s of the series. 0: as many, or one batch.
	Samples      float64 `json:"demand_samples,omitempty"` // in a request of the demand
	Batch        float64 `json:"batch,omitempty"`
	SeriesDemand float64 `json:"series_demand,omitempty"`
	// Replicas carry the demand even at the lower end of what was measured; fewer than
	// AtLeast do not even at its upper end. Both 0: Why.
	Replicas int `json:"replicas"`
	AtLeast  int `json:"at_least"`
	// From is how many replicas were measured, and Rate what they carry within the
	// limit, in requests/s: the median of the runs with its interval.
	From int     `json:"from"`
	Rate float64 `json:"rate_within_limit"`
	Low  float64 `json:"rate_within_limit_low"`
	// High is nil where no measured rate broke the limit.
	High *float64 `json:"rate_within_limit_high"`
	Runs int      `json:"runs"`
	// Cost of Replicas, and of a million requests at the demand; nil without prices.
	CostPerHour    *float64 `json:"cost_per_hour"`
	CostPerMillion *float64 `json:"cost_per_million"`

	Doubts []string `json:"doubts,omitempty"`
	Why    string   `json:"why,omitempty"` // there is no answer
}

// Load is a demand: requests a second, each of so many samples. Where several batches
// were measured these are the fewest, and a request of a larger batch stands for several
// of the demand; 0 where all requests have as many.
type Load struct{ Rate, Samples float64 }

// LoadOf is a demand of so many requests/s on a service, of whose runs some have a largest
// rate within the limit, or with open also loads at rates, at one batch or several.
func LoadOf(rate float64, runs []scaling.Observation, open bool) Load {
	var batches []float64
	for _, o := range runs {
		for _, p := range o.Places {
			_, found := p.Values[measure.RateWithinLimit]
			_, atRate := p.At[measure.Rate]
			if batch, ok := p.At[measure.Batch].(float64); ok && batch > 0 && (found || open && atRate) && !slices.Contains(batches, batch) {
				batches = append(batches, batch)
			}
		}
	}
	if len(batches) < 2 {
		return Load{Rate: rate}
	}
	return Load{rate, slices.Min(batches)}
}

// stands is how many requests of the demand one of the curve stands for; 0 where no run
// says.
func (l Load) stands(c scaling.Curve) float64 {
	if l.Samples == 0 {
		return 1
	}
	batch, _ := c.Parameters[measure.Batch].(float64)
	return batch / l.Samples
}

// most is how many times the largest measured number of replicas an answer may have:
// behind it, what they share shows.
const most = 4

// Of answers for one series, whose axis is the number of replicas. price is what so
// many replicas cost an hour; nil without prices.
func Of(c scaling.Curve, load Load, price func(replicas int) (float64, error)) Answer {
	measured, why := withInterval(c)
	return answer(c, measured, why, load, fmt.Sprint(c.Parameters["workload.limit"]), price)
}

func answer(c scaling.Curve, measured []carried, why string, load Load, limit string, price func(replicas int) (float64, error)) Answer {
	a := Answer{Series: c.Series, Limit: limit, Demand: load.Rate, Samples: load.Samples}
	stands := load.stands(c)
	demand := load.Rate / stands
	switch {
	case stands == 0:
		a.Why = "its runs do not say how many samples a request has"
		return a
	case len(measured) == 0:
		a.Why = why
		return a
	}
	if load.Samples > 0 {
		a.Batch, a.SeriesDemand = load.Samples*stands, demand
	}
	take := func(m carried) {
		a.From, a.Rate, a.Low, a.Runs = m.replicas, m.rate, m.low, m.runs
		if !math.IsInf(m.high, 1) {
			a.High = &m.high
		}
	}
	i := slices.IndexFunc(measured, func(m carried) bool { return m.low >= demand })
	if i >= 0 {
		take(measured[i])
		a.Replicas = a.From
	} else {
		i = len(measured) - 1
		take(measured[i])
		a.Replicas = times(demand, a.Low, a.From)
	}
	// Of the numbers that were measured below, those are enough that may be.
	a.AtLeast = min(a.Replicas, times(demand, measured[i].high, a.From))
	for _, m := range measured {
		if m.replicas < a.Replicas && m.high < demand {
			a.AtLeast = max(a.AtLeast, m.replicas+1)
		}
	}
	if a.Low == 0 {
		a.Why = fmt.Sprintf("no measured rate is shown to keep the limit with %s; measure smaller ones, such as %s in [workload]", counted(a.From), Rates(demand/most, demand/2, demand))
		a.Replicas, a.AtLeast = 0, 0
		return a
	}
	if a.Replicas > most*a.From {
		a.Why = fmt.Sprintf("%s carried %s requests/s, and %s would take over %d times as many replicas; measure more", counted(a.From), number.Significant(a.Rate), number.Significant(demand), most)
		a.Replicas, a.AtLeast = 0, 0
		return a
	}
	if measured[i].byRates && a.AtLeast < a.Replicas {
		var missing []float64 // what the measured replicas carry if fewer than advised are enough
		for k := a.Replicas - 1; k >= a.AtLeast && len(missing) < 4; k-- {
			missing = append(missing, demand*float64(a.From)/float64(k))
		}
		a.Doubts = append(a.Doubts, fmt.Sprintf("%s requests/s are the most shown to keep the limit; nothing is said of others. To tell whether fewer replicas are enough, set %s in [workload].", number.Significant(a.Low), Rates(missing...)))
	}
	if a.Replicas > a.From {
		a.Doubts = append(a.Doubts, fmt.Sprintf("This assumes that %d replicas carry %.3g times as much as %d, the most that was measured; what they share (memory, network) may prevent that: measure %d.",
			a.Replicas, float64(a.Replicas)/float64(a.From), a.From, a.Replicas))
	}
	if stands > 1 {
		together := (stands - 1) / load.Rate
		doubt := fmt.Sprintf("Where callers send %s at a time, the %s of a request take %s to come together at this demand, which is not in what was measured", samples(load.Samples), samples(a.Batch), number.Seconds(together))
		if l, err := measure.ParseLimit(limit); err == nil && len(l.Seconds) > 0 && together > slices.Min(slices.Collect(maps.Values(l.Seconds))) {
			doubt += " and is more than the limit"
		}
		a.Doubts = append(a.Doubts, doubt+".")
	}
	if price != nil {
		if hour, err := price(a.Replicas); err != nil {
			a.Doubts = append(a.Doubts, "No cost: "+err.Error()+".")
		} else {
			million := hour / 3600 / load.Rate * 1e6
			a.CostPerHour, a.CostPerMillion = &hour, &million
		}
	}
	return a
}

// carried is what so many replicas carried within the limit: the median of runs with
// its interval; high is +Inf where nothing broke the limit.
type carried struct {
	replicas, runs  int
	rate, low, high float64
	byRates         bool // of the rates that were measured, and no search
}

// withInterval are the numbers of replicas whose largest rate within the limit has an
// interval, or why there are none.
func withInterval(c scaling.Curve) (measured []carried, why string) {
	for _, p := range c.Points {
		m := p.Of(measure.RateWithinLimit).Median
		switch {
		case m == nil:
			continue
		case m.Interval == nil:
			why = fmt.Sprintf("no interval at %s: %s; set study.repeats", counted(p.Workers), m.Why)
			continue
		}
		measured = append(measured, carried{replicas: p.Workers, runs: m.Runs, rate: m.Value, low: m.Interval.Low, high: m.Interval.High})
	}
	return measured, cmp.Or(why, "no run found a largest rate within a limit; set workload.limit, such as { p95 = \"50ms\" }")
}

// Rates is the line of a study's [workload] that measures at these, to three digits,
// rounded up.
func Rates(list ...float64) string {
	words := make([]string, len(list))
	for i, x := range list {
		digit := math.Pow(10, math.Floor(math.Log10(x))-2)
		words[i] = strconv.FormatFloat(math.Ceil(x/digit-1e-9)*digit, 'g', 6, 64)
	}
	return "rate = [" + strings.Join(slices.Compact(words), ", ") + "]"
}

func samples(n float64) string {
	if n == 1 {
		return "1 sample"
	}
	return number.Exact(n) + " samples"
}

func counted(replicas int) string { return number.Count(replicas, "replica") }

// times is how many replicas carry a demand, if each carries as much as each of those
// that carry a rate together.
func times(demand, rate float64, replicas int) int {
	n := math.Ceil(demand / (rate / float64(replicas)) * (1 - 1e-12))
	return int(min(max(n, 1), 1<<30))
}

// Unbatched is the first of ordered answers whose requests are those of the demand, where
// those of the first are not; nil for none.
func Unbatched(list []Answer) *Answer {
	if len(list) == 0 || list[0].Batch == list[0].Samples {
		return nil
	}
	i := slices.IndexFunc(list, func(a Answer) bool { return a.Replicas > 0 && a.Batch == a.Samples })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// Compare orders answers: the cheapest first, then the one with the fewest replicas;
// those without an answer last.
func Compare(a, b Answer) int {
	cost := func(a Answer) float64 {
		if a.CostPerHour == nil {
			return math.Inf(1)
		}
		return *a.CostPerHour
	}
	none := func(a Answer) int {
		if a.Replicas == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(none(a), none(b)), cmp.Compare(cost(a), cost(b)), cmp.Compare(a.Replicas, b.Replicas), cmp.Compare(b.Low, a.Low))
}

// Short is the answer in a few words: "4 replicas of triton batch=1 (at most 1 was measured),
// 0.400 USD an hour".
func (a Answer) Short(currency string) string {
	text := counted(a.Replicas) + " of " + a.Series
	if a.Replicas > a.From {
		were := "were"
		if a.From == 1 {
			were = "was"
		}
		text += fmt.Sprintf(" (at most %d %s measured)", a.From, were)
	}
	if a.CostPerHour != nil {
		text += ", " + number.Significant(*a.CostPerHour) + " " + currency + " an hour"
	}
	return text
}

// Sentence says what a request of the demand is where several batches were measured.
func (l Load) Sentence() string {
	return fmt.Sprintf("Demand: requests of %s, the smallest batch that was measured; a request of a larger batch counts as several of them.", samples(l.Samples))
}

// Sentence is the answer for people.
func (a Answer) Sentence() string {
	if a.Replicas == 0 {
		return fmt.Sprintf("%s: no answer: %s.", a.Series, a.Why)
	}
	count := counted(a.Replicas)
	if a.AtLeast < a.Replicas {
		count += fmt.Sprintf(" (%d may be enough)", a.AtLeast)
	}
	spread := fmt.Sprintf("[%s or more]", number.Significant(a.Low))
	if a.High != nil {
		spread = fmt.Sprintf("[%s, %s]", number.Significant(a.Low), number.Significant(*a.High))
	}
	demand, of := number.Significant(a.Demand)+" requests/s", ""
	if a.Samples > 0 {
		demand += " of " + samples(a.Samples)
	}
	if a.Batch != a.Samples {
		demand += fmt.Sprintf(" (%s/s of %s)", number.Significant(a.SeriesDemand), number.Exact(a.Batch))
		of = " of " + samples(a.Batch)
	}
	text := fmt.Sprintf("Use %s of %s for %s within %s: %s carried %s %s requests/s%s in %s.",
		count, a.Series, demand, a.Limit, counted(a.From), number.Significant(a.Rate), spread, of, number.Count(a.Runs, "run"))
	for _, d := range a.Doubts {
		text += " " + d
	}
	return text
}
