package cost

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A Matched compares a configuration with as much of the baseline as the same hourly
// price buys: a GPU with the CPU replicas that cost as much.
type Matched struct {
	// Gain compares how much of Options.Bought a unit of currency buys, as a ratio. At
	// equal hourly prices this is the ratio of the rates; nil: see Why. Its interval
	// comes from package scaling. Nothing is extrapolated from another worker count,
	// because workers share resources that do not grow with their number.
	Gain *scaling.Estimate
	Why  string

	Base        string // "triton platform=cpu, 4 replicas"; "" if Gain is nil
	BasePerHour float64
}

// MatchedWithin is the largest allowed difference of the hourly prices, as a share of
// the row's price.
const MatchedWithin = 0.1

// Matches reports whether configurations are compared at equal prices: they have a
// rate for which higher is better, and the baseline does not fix the worker count.
func (o Options) Matches() bool {
	return o.Baseline != nil && o.Bought() != "" && o.Measure.Better == measure.Higher && !slices.ContainsFunc(o.Baseline, func(c scaling.Condition) bool {
		last := c.Key[strings.LastIndex(c.Key, ".")+1:]
		return slices.Contains([]string{scaling.Workers, "nodes", "workers_per_node", "replicas"}, last)
	})
}

// match sets Matched of all rows; rows and list have the same order.
func match(rows []Row, list []Configuration, o Options) error {
	if !o.Matches() {
		return nil
	}
	first := map[string]int{} // index of each series in series
	var series []map[string]any
	for _, c := range list {
		if _, seen := first[c.Series]; !seen {
			first[c.Series] = len(series)
			series = append(series, maps.Clone(c.Parameters))
		}
	}
	bases, err := scaling.Baselines(o.Baseline, series)
	if err != nil {
		return err
	}
	for i := range rows {
		base := bases[first[rows[i].Series]]
		if base.Why != "" {
			rows[i].Matched = &Matched{Why: base.Why}
			continue
		}
		var of []*Row
		for j := range rows {
			if first[rows[j].Series] == base.Index {
				of = append(of, &rows[j])
			}
		}
		rows[i].Matched = rows[i].matched(of, o)
	}
	return nil
}

// matched compares a row with its baselines.
func (r *Row) matched(bases []*Row, o Options) *Matched {
	if r.Bought == nil || r.Rate == nil {
		return &Matched{Why: "it has no price or no " + o.Measure.Title}
	}
	bases = slices.DeleteFunc(slices.Clone(bases), func(b *Row) bool { return b.Bought == nil || b.Rate == nil })
	if len(bases) == 0 {
		return &Matched{Why: "the baseline has no price or no " + o.Measure.Title}
	}
	hour := r.Rate.PerHour()
	base := slices.MinFunc(bases, func(a, b *Row) int {
		off := func(x *Row) float64 { return math.Abs(x.Rate.PerHour() - hour) }
		return cmp.Or(cmp.Compare(off(a), off(b)), cmp.Compare(a.Workers, b.Workers))
	})
	price := base.Rate.PerHour()
	if math.Abs(price-hour) <= MatchedWithin*hour {
		return &Matched{Gain: ratio(r.boughts, base.boughts, r == base, o.Confidence), Base: o.Name(*base), BasePerHour: price}
	}
	// Estimate the worker count at the same price from the nearest baseline's price
	// per worker.
	each := price / float64(base.Workers)
	n := math.Round(hour / each)
	said := fmt.Sprintf("no measured number of %ss of %s costs about its %s %s an hour (%s cost %s)", o.worker(), base.Series,
		number.Significant(hour), r.Rate.Currency, number.Count(base.Workers, o.worker()), number.Significant(price))
	if math.Abs(n*each-hour) <= MatchedWithin*hour {
		return &Matched{Why: fmt.Sprintf("%s; measure %.0f", said, n)}
	}
	return &Matched{Why: fmt.Sprintf("%s, and none comes within %g %%; measure more %ss of both", said, 100*MatchedWithin, o.worker())}
}

// worker returns the word for a service's workers.
func (o Options) worker() string {
	if o.Work.Million {
		return "replica"
	}
	return "worker"
}

// Name returns a row's name: "native platform=p2, 2 workers".
func (o Options) Name(r Row) string {
	return r.Series + ", " + number.Count(r.Workers, o.worker())
}
