package capacity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Rung is the range of demands that a number of replicas carries: those above the
// previous rung's.
type Rung struct {
	Upto     float64 // requests/s
	Replicas int
	PerHour  float64 // hourly cost
}

// million returns the cost of a million requests at a demand that the rung carries.
func (r Rung) million(demand float64) float64 { return r.PerHour / 3600 / demand * 1e6 }

// A Line is the cost of one series as a function of the demand.
type Line struct {
	Series string
	Limit  string
	// Samples is the number per request of the demand, and Batch that per request of the
	// series, which replaces several; both are 0 if all requests have the same size.
	Samples, Batch float64
	// Sure are the rungs according to the lower bounds of the measured rates, as Of recommends
	// them. Hoped are the rungs according to the upper bounds.
	Sure, Hoped []Rung
	Measured    int    // number of Sure's rungs up to the most replicas measured
	Why         string // why the line is missing
}

// End returns the largest demand that the line covers.
func (l Line) End() float64 { return l.Sure[len(l.Sure)-1].Upto }

// Demand returns the line of one series along the replicas, over requests/s of load.Samples
// each. price returns the hourly cost of a number of replicas.
func Demand(c scaling.Curve, load Load, price func(replicas int) (float64, error)) Line {
	stands := load.requestsPerRequest(c)
	l := Line{Series: c.Series, Limit: fmt.Sprint(c.Parameters["workload.limit"]), Samples: load.Samples, Batch: load.Samples * stands}
	if stands == 0 {
		l.Why = "its runs do not say how many samples a request has"
		return l
	}
	var measured []carried
	if measured, l.Why = withInterval(c); len(measured) == 0 {
		return l
	}
	l.Why = ""
	for i := range measured {
		measured[i].rate *= stands
		measured[i].low *= stands
		measured[i].high *= stands
	}
	ladder := func(end func(carried) float64) (rungs []Rung) {
		add := func(upto float64, replicas int) {
			if l.Why != "" || len(rungs) > 0 && upto <= rungs[len(rungs)-1].Upto {
				return
			}
			hour, err := price(replicas)
			if err != nil {
				l.Why = err.Error()
				return
			}
			rungs = append(rungs, Rung{upto, replicas, hour})
		}
		for _, m := range measured {
			add(end(m), m.replicas)
		}
		l.Measured = len(rungs)
		last := measured[len(measured)-1]
		for _, k := range counts(measured) {
			if k > last.replicas {
				add(end(rateAt(measured, k)), k)
			}
		}
		return rungs
	}
	l.Hoped = ladder(func(m carried) float64 { return m.high })
	l.Sure = ladder(func(m carried) float64 { return m.low })
	return l
}

// A BreakEven is the demand above which a series costs no more than the one that is
// cheapest at small demands.
type BreakEven struct {
	From, To string // the series that is cheaper below At, and the one above
	// At is the demand above which To is always as cheap. First is where it first becomes
	// as cheap, until it needs another replica.
	At, First float64
	// Low and High are At for the most pessimistic and optimistic rates in the intervals of
	// both series; High 0: possibly never.
	Low, High float64
	// Million is the cost of a million requests at At.
	Million float64
	End     float64 // largest demand for which this holds
	Never   bool    // From always stays cheaper
}

// BreakEvens returns where the series with the cheapest first replica is overtaken by the
// first one that stays as cheap, where that one is overtaken, and so on. If no series
// overtakes it, it returns a BreakEven with Never. Lines without rungs are left out.
func BreakEvens(lines []Line) []BreakEven {
	lines = slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Why != "" })
	slices.SortStableFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Sure[0].PerHour, b.Sure[0].PerHour), cmp.Compare(slope(a.Sure), slope(b.Sure)))
	})
	var list []BreakEven
	for len(lines) > 1 {
		first := lines[0]
		var next []BreakEven
		of := map[string]int{}
		for i, other := range lines[1:] {
			if b := breakEven(first, other); !b.Never {
				next, of[b.To] = append(next, b), i+1
			}
		}
		if next == nil {
			if list == nil {
				list = []BreakEven{stays(first, lines[1:])}
			}
			return list
		}
		b := slices.MinFunc(next, func(a, b BreakEven) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(slope(lines[of[a.To]].Sure), slope(lines[of[b.To]].Sure)))
		})
		list = append(list, b)
		to := lines[of[b.To]]
		var rest []Line // only series that are cheaper in the long run can overtake it
		for _, l := range lines[1:] {
			if slope(l.Sure) < slope(to.Sure) {
				rest = append(rest, l)
			}
		}
		lines = append([]Line{to}, rest...)
	}
	return list
}

// stays returns that a series stays cheaper than the others.
func stays(first Line, others []Line) BreakEven {
	b := BreakEven{From: first.Series, To: others[0].Series, End: first.End(), Never: true}
	if len(others) > 1 {
		b.To = fmt.Sprintf("the %d others", len(others))
	}
	for _, l := range others {
		b.End = min(b.End, l.End())
	}
	return b
}

func breakEven(first, other Line) BreakEven {
	b := BreakEven{From: first.Series, To: other.Series, End: min(first.End(), other.End())}
	var found bool
	if b.First, b.At, found = cross(first.Sure, other.Sure, b.End); !found {
		b.Never = true
		return b
	}
	b.Low, b.High = b.At, 0
	if _, low, found := cross(first.Sure, other.Hoped, b.End); found {
		b.Low = low
	}
	if _, high, found := cross(first.Hoped, other.Sure, b.End); found {
		b.High = high
	}
	b.Million = at(other.Sure, b.At*(1+1e-9)).million(b.At)
	return b
}

// slope returns the hourly cost per request/s with many replicas.
func slope(rungs []Rung) float64 {
	last := rungs[len(rungs)-1]
	return last.PerHour / last.Upto
}

// at returns the rung that carries a demand, or the last one.
func at(rungs []Rung, demand float64) Rung {
	i, _ := slices.BinarySearchFunc(rungs, demand, func(r Rung, d float64) int { return cmp.Compare(r.Upto, d) })
	return rungs[min(i, len(rungs)-1)]
}

// cross returns the demand above which b first costs no more than a, and the one above
// which it always does, up to end. found is false if b does not stay as cheap, or if its
// requests are not cheaper in the long run, since agreement on the last steps alone would
// be a coincidence.
func cross(a, b []Rung, end float64) (first, always float64, found bool) {
	if slope(b) >= slope(a) {
		return 0, 0, false
	}
	ends := []float64{end}
	for _, r := range slices.Concat(a, b) {
		if r.Upto < end {
			ends = append(ends, r.Upto)
		}
	}
	slices.Sort(ends)
	from, seen := 0.0, false
	for _, to := range slices.Compact(ends) {
		if found = at(b, to).PerHour <= at(a, to).PerHour; found && !seen {
			first, seen = from, true
		}
		if !found {
			always = to
		}
		from = to
	}
	return first, always, found
}

// Sentence describes it for people.
func (b BreakEven) Sentence() string {
	switch {
	case b.Never:
		return fmt.Sprintf("%s stays cheaper than %s up to %s requests/s, beyond which nothing is said.", b.From, b.To, number.Significant(b.End))
	case b.At == 0:
		return fmt.Sprintf("%s costs no more than %s at any demand up to %s requests/s.", b.To, b.From, number.Significant(b.End))
	}
	text := fmt.Sprintf("Break-even: above %s ", number.Significant(b.At))
	if b.High > 0 {
		text += fmt.Sprintf("[%s, %s] requests/s", number.Significant(b.Low), number.Significant(b.High))
	} else {
		text += fmt.Sprintf("requests/s (%s or more; by the intervals, perhaps not up to %s)", number.Significant(b.Low), number.Significant(b.End))
	}
	text += fmt.Sprintf(", %s costs no more than %s", b.To, b.From)
	if b.First < b.At {
		text += fmt.Sprintf("; the first time above %s, until it needs another replica", number.Significant(b.First))
	}
	return text + "."
}

// A Load is a demand in requests/s. Samples is the number of samples per request, the
// smallest measured batch; a request with a larger batch replaces several of the demand.
// Samples is 0 if all requests have the same batch.
type Load struct {
	Rate, Samples float64
	Confidence    float64 // level of the intervals of curves; 0 means 0.95
}

// LoadOf returns the demand at a rate on a service. Its runs state a highest rate within
// the limit or, with open, also loads at fixed rates, for one or more batches.
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
	return Load{Rate: rate, Samples: slices.Min(batches)}
}

// requestsPerRequest returns how many requests of the demand one request of the curve replaces, because the
// curve's batch is larger; 0: unknown.
func (l Load) requestsPerRequest(c scaling.Curve) float64 {
	if l.Samples == 0 {
		return 1
	}
	batch, _ := c.Parameters[measure.Batch].(float64)
	return batch / l.Samples
}

// Sentence says how large a request of the demand is if several batches were measured.
func (l Load) Sentence() string {
	return fmt.Sprintf("Demand: requests of %s, the smallest batch that was measured; a request of a larger batch counts as several of them.", samples(l.Samples))
}
