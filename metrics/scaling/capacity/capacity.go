// Package capacity computes how many replicas of a service carry a demand, from the highest
// rate within the limit that runs found for each number of replicas
// (measure.RateWithinLimit). It also finds the load at which throughput saturates
// (saturation.go). It has no side effects.
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
	"github.com/scalebench/scalebench/metrics/scaling/decision"
)

// An Answer says how many replicas of one series are needed for a demand.
type Answer struct {
	Series string  `json:"series"`
	Limit  string  `json:"limit"`  // from the study; "" if the runs do not state it
	Demand float64 `json:"demand"` // requests/s
	// Samples per request of the demand, if the series' requests have another batch; Demand
	// is converted to requests/s of the series. 0: the same batch, or only one.
	Samples      float64 `json:"demand_samples,omitempty"` // in a request of the demand
	Batch        float64 `json:"batch,omitempty"`
	SeriesDemand float64 `json:"series_demand,omitempty"`
	// Replicas is the number that carries the demand even at the lower bound of its rate.
	// Fewer than AtLeast cannot carry it even at the upper bound. If Replicas is 0, Why
	// gives the reason.
	Replicas int `json:"replicas"`
	AtLeast  int `json:"at_least"`
	// Keeps is the probability that Replicas carry the demand. Probability is the probability that
	// Replicas is the smallest number that does; null: unknown.
	Keeps       *float64 `json:"keeps_limits"`
	Probability *float64 `json:"probability"`
	// Provisional reports whether fewer replicas may suffice, the answer was not measured, or
	// a warning can change it (Because).
	Provisional bool        `json:"provisional"`
	Because     []string    `json:"-"`
	Undecided   []Contender `json:"undecided"` // fewer replicas that may suffice, fewest first; never null
	Next        *Next       `json:"next"`      // null: no run can change the answer
	// From is the measured number of replicas. Rate is the rate that they carry within the
	// limit, in requests/s: the median of the runs, with its interval.
	From int     `json:"from"`
	Rate float64 `json:"rate_within_limit"`
	Low  float64 `json:"rate_within_limit_low"`
	// High is nil if no measured rate broke the limit.
	High *float64 `json:"rate_within_limit_high"`
	Runs int      `json:"runs"`
	// Cost of Replicas per hour, and of a million requests at the demand; nil without
	// prices.
	CostPerHour    *float64 `json:"cost_per_hour"`
	CostPerMillion *float64 `json:"cost_per_million"`

	Caveats []string `json:"doubts,omitempty"`
	// Warnings are about the runs. Package capacity leaves them empty.
	Warnings []string `json:"warnings"`
	Why      string   `json:"why,omitempty"` // why there is no answer
}

// A Contender is a number of replicas that may suffice.
type Contender struct {
	Replicas    int      `json:"replicas"`
	Probability *float64 `json:"probability"` // null: unknown
}

// Next is the most useful next measurement.
type Next struct {
	Replicas   int       `json:"replicas"`
	Neighbours []int     `json:"beside"` // also measured again in the same blocks, for comparison; never null
	Rates      []float64 `json:"rates"`  // requests/s requests/s to measure at; never null; empty: search for the highest rate within the limit
	Why        string    `json:"why"`
	Command    string    `json:"command"` // command that measures it; "": unknown. Package capacity leaves it empty
}

// most is the factor beyond the largest measured number of replicas up to which answers are
// given. With more replicas, shared resources may limit them.
const most = 4

// Estimate returns the answer for one series of runs with different numbers of replicas. price
// returns the hourly cost of a number of replicas; nil without prices.
func Estimate(c scaling.Curve, load Load, price func(replicas int) (float64, error)) Answer {
	measured, why := withInterval(c)
	limit, _ := c.Parameters["workload.limit"].(string)
	return answer(c, measured, why, load, limit, price)
}

// AddEqualRatesCaveat makes the answer provisional if all runs that it rests on have the same rate. Callers
// use it for imported runs: a search tries the same rates in each run, and may find equal ones.
func (a *Answer) AddEqualRatesCaveat(c scaling.Curve) {
	for i := range c.Points {
		if p := &c.Points[i]; p.Workers == a.From && p.Of(measure.RateWithinLimit).Constant() {
			a.Keeps = nil
			a.AddCaveats([]string{fmt.Sprintf("%s of %s have exactly the same rate, so there is no interval: check whether the values were copied or rounded", scaling.EqualRuns(p.Of(measure.RateWithinLimit)), counted(a.From))})
		}
	}
}

func answer(c scaling.Curve, measured []carried, why string, load Load, limit string, price func(replicas int) (float64, error)) Answer {
	a := Answer{Series: c.Series, Limit: limit, Demand: load.Rate, Samples: load.Samples, Undecided: []Contender{}, Warnings: []string{}}
	stands := load.requestsPerRequest(c)
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
	for i := range measured {
		measured[i].level = load.Confidence
	}
	r, chosen := a.decide(measured, demand)
	from := measured[len(measured)-1]
	if r.Chosen >= 0 {
		if i := slices.IndexFunc(measured, func(m carried) bool { return m.replicas == chosen.replicas }); i >= 0 {
			from = measured[i]
		}
	}
	a.From, a.Rate, a.Low, a.Runs = from.replicas, from.rate, from.low, from.runs
	if !math.IsInf(from.high, 1) {
		a.High = &from.high
	}
	if r.Chosen < 0 {
		a.undecided(measured, demand)
		return a
	}
	a.Replicas, a.Keeps, a.Probability = chosen.replicas, chosen.carries(demand), r.Probability
	a.AtLeast = min(a.AtLeast, a.Replicas)
	a.Provisional = r.Provisional || len(a.Undecided) > 0
	a.next(measured, demand)
	if stands > 1 {
		together := (stands - 1) / load.Rate
		doubt := fmt.Sprintf("Where callers send %s at a time, the %s of a request take %s to come together at this demand, which is not in what was measured", samples(load.Samples), samples(a.Batch), number.Seconds(together))
		if l, err := measure.ParseLimit(limit); err == nil && len(l.Seconds) > 0 && together > slices.Min(slices.Collect(maps.Values(l.Seconds))) {
			doubt += " and is more than the limit"
		}
		a.Caveats = append(a.Caveats, doubt+".")
	}
	if price != nil {
		if hour, err := price(a.Replicas); err != nil {
			a.Caveats = append(a.Caveats, "No cost: "+err.Error()+".")
		} else {
			a.CostPerHour, a.CostPerMillion = &hour, new(hour/3600/load.Rate*1e6)
		}
	}
	return a
}

// decide asks for the smallest number of replicas that surely carries the demand.
func (a *Answer) decide(measured []carried, demand float64) (decision.Result, carried) {
	sure := measured[0].sure()
	q := decision.Question{Limits: true, Least: sure}
	largest := measured[len(measured)-1].replicas
	var all []carried
	for _, k := range counts(measured) {
		c := rateAt(measured, k)
		keeps := c.carries(demand)
		if keeps != nil && c.runs == 0 && k < largest {
			p := min(*keeps, sure-1e-6) // between measured numbers, only measured ones are answers
			keeps = &p
		}
		all = append(all, c)
		q.Options = append(q.Options, decision.Option{Size: k, Runs: c.runs, Measured: c.runs > 0, Keeps: keeps, Worth: 1 / float64(k)})
		if a.AtLeast == 0 && (keeps == nil || *keeps > 1-sure) {
			a.AtLeast = k
		}
		if c.runs > 0 && c.high < demand {
			a.AtLeast = 0 // fewer cannot carry it, either
		}
		if keeps != nil && *keeps >= 0.9999 {
			break
		}
	}
	r := decision.Decide(q)
	if r.Chosen < 0 {
		return r, carried{}
	}
	chosen := all[r.Chosen]
	if chosen.runs == 0 {
		r.Provisional = true
	}
	for i, o := range q.Options[:r.Chosen] {
		if o.Size >= a.AtLeast && (o.Keeps == nil || *o.Keeps > 1-sure) {
			a.Undecided = append(a.Undecided, Contender{all[i].replicas, o.Keeps})
		}
	}
	return r, chosen
}

// AddCaveats makes the answer provisional because of warnings about the runs that can change it.
func (a *Answer) AddCaveats(because []string) {
	if a.Replicas == 0 || len(because) == 0 {
		return
	}
	a.Because, a.Provisional = append(a.Because, because...), true
	if a.Next == nil {
		a.Next = &Next{Replicas: a.Replicas, Neighbours: []int{}, Rates: []float64{}, Why: "first remove the cause of the warning; more runs like these would not change the answer"}
	}
}

// undecided sets the reason for the missing answer.
func (a *Answer) undecided(measured []carried, demand float64) {
	last := measured[len(measured)-1]
	a.AtLeast = 0
	if last.low == 0 {
		a.Why = "no measured rate is shown to keep the limit with " + counted(a.From)
		a.Next = &Next{Replicas: last.replicas, Neighbours: []int{}, Rates: []float64{demand / most, demand / 2, demand}, Why: "no measured rate is shown to keep the limit"}
		return
	}
	farthest := rateAt(measured, most*last.replicas)
	odds := ""
	if p := farthest.carries(demand); p != nil {
		odds = " (" + decision.Likely(*p) + " likely)"
	}
	a.Why = fmt.Sprintf("%s carried %s requests/s, and not even %d, %d times as many, are sure to carry %s%s", counted(a.From), number.Significant(a.Rate), farthest.replicas, most, number.Significant(demand), odds)
	a.Next = &Next{Replicas: 2 * last.replicas, Neighbours: []int{last.replicas}, Rates: []float64{}, Why: "nearer to what is asked"}
}

// next sets the measurement that could change the answer, if there is one.
func (a *Answer) next(measured []carried, demand float64) {
	largest := measured[len(measured)-1]
	switch {
	case a.Replicas > largest.replicas:
		a.Next = &Next{Replicas: a.Replicas, Neighbours: []int{largest.replicas}, Rates: []float64{}, Why: "it is recommended and was not measured"}
	case len(a.Undecided) > 0:
		u := a.Undecided[len(a.Undecided)-1]
		c := rateAt(measured, u.Replicas)
		why := fmt.Sprintf("%s may be enough", counted(u.Replicas))
		if u.Probability != nil {
			why += " (" + decision.Likely(*u.Probability) + " likely)"
		}
		a.Next = &Next{Replicas: u.Replicas, Neighbours: []int{}, Rates: []float64{}, Why: why}
		if c.byRates {
			a.Next.Rates = []float64{demand}
		}
	}
}

// carried is the rate that a number of replicas carried within the limit: the median over
// runs with its interval. high is +Inf if no rate broke the limit.
type carried struct {
	replicas, runs  int
	rate, low, high float64
	byRates         bool    // from measured rates instead of a search
	level           float64 // of low and high; 0 means the default
}

// withInterval returns the numbers of replicas whose largest rate within the limit has an
// interval, or the reason why no number has one.
func withInterval(c scaling.Curve) (measured []carried, why string) {
	for _, p := range c.Points {
		of := p.Of(measure.RateWithinLimit)
		m := of.Median
		switch {
		case m == nil && of.Censored() > 0:
			why = fmt.Sprintf("no interval at %s: %s; set study.repeats", counted(p.Workers), of.Why)
			continue
		case m == nil:
			continue
		}
		low, high, ok := m.Ends() // a search tries the same rates in each run, and may find equal ones
		if !ok {
			why = fmt.Sprintf("no interval at %s: %s; set study.repeats", counted(p.Workers), m.Why)
			continue
		}
		measured = append(measured, carried{replicas: p.Workers, runs: m.Runs, rate: m.Value, low: low, high: high})
	}
	return measured, cmp.Or(why, "no run found a largest rate within a limit; set workload.limit, such as { p95 = \"50ms\" }")
}

// Rates returns the line of a study's [workload] that measures at these rates, rounded up to three
// digits.
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

// Unbatched returns the first answer in an ordered list whose requests have the demand's batch, if
// the list's first answer has another one; nil: none.
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

// Compare orders answers: cheapest first, then fewest replicas; those without an answer
// come last.
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

// Sentence formats the proposal for people, without its command.
func (n *Next) Sentence() string {
	text := "Measure next: " + counted(n.Replicas)
	if len(n.Neighbours) > 0 {
		text += fmt.Sprintf(", with as many runs of %d to compare with", n.Neighbours[0])
	}
	if len(n.Rates) > 0 {
		text += ", at " + Rates(n.Rates...)
	}
	return text + ": " + n.Why + "."
}

// Short formats the answer in a few words: "4 replicas of triton batch=1 (at most 1 was
// measured), 0.400 USD an hour".
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

// Sentence formats the answer for people.
func (a Answer) Sentence() string {
	if a.Replicas == 0 {
		return fmt.Sprintf("%s: no answer: %s.", a.Series, a.Why)
	}
	use, odds := "Use ", ""
	if a.Provisional {
		use = "Provisional: use "
	}
	if a.Keeps != nil {
		odds = " (" + decision.Likely(*a.Keeps) + " likely to carry it"
		if a.AtLeast > 1 && a.AtLeast < a.Replicas {
			odds += fmt.Sprintf("; at least %d are needed", a.AtLeast)
		}
		odds += ")"
	}
	spread := fmt.Sprintf("[%s or more]", number.Significant(a.Low))
	if a.High != nil {
		spread = fmt.Sprintf("[%s, %s]", number.Significant(a.Low), number.Significant(*a.High))
	}
	demand, of := number.Exact(a.Demand)+" requests/s", ""
	if a.Samples > 0 {
		demand += " of " + samples(a.Samples)
	}
	if a.Batch != a.Samples {
		demand += fmt.Sprintf(" (%s/s of %s)", number.Significant(a.SeriesDemand), number.Exact(a.Batch))
		of = " of " + samples(a.Batch)
	}
	text := fmt.Sprintf("%s%s of %s for %s within %s%s: %s carried %s %s requests/s%s in %s.",
		use, counted(a.Replicas), a.Series, demand, cmp.Or(a.Limit, "a limit that the runs do not state"), odds, counted(a.From), number.Significant(a.Rate), spread, of, number.Count(a.Runs, "run"))
	if why := a.provisionally(); why != "" {
		text += " Provisional because " + why + "."
	}
	for _, d := range a.Caveats {
		text += " " + d
	}
	return text
}

// provisionally says why the answer is provisional; "" if it is not.
func (a Answer) provisionally() string {
	why := slices.Clone(a.Because)
	if a.Replicas > a.From {
		were := "were"
		if a.From == 1 {
			were = "was"
		}
		why = append(why, fmt.Sprintf("%d replicas were not measured, at most %d %s, and more may meet a limit that no run has met", a.Replicas, a.From, were))
	}
	if n := len(a.Undecided); n > 0 {
		u := a.Undecided[n-1]
		if u.Probability != nil {
			why = append(why, fmt.Sprintf("%d may be enough (%s likely)", u.Replicas, decision.Likely(*u.Probability)))
		} else {
			why = append(why, fmt.Sprintf("%d may be enough: rates between the measured ones are unknown", u.Replicas))
		}
	}
	return strings.Join(why, "; ")
}
