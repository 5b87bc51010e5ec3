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

// Matched is a configuration over as much of the baseline as the same money buys in an
// hour: a GPU over the CPU replicas that cost as much.
type Matched struct {
	// Gain is how many times as much of Options.Bought a unit of currency buys, which at
	// equal prices of an hour is the ratio of what they do in a second; nil: Why. Its
	// interval is that of package scaling's ratios. Nothing is carried over from another
	// number of workers: they share what does not grow with them.
	Gain *scaling.Estimate
	Why  string

	Base        string // "triton platform=cpu, 4 replicas"; "" where there is no Gain
	BasePerHour float64
}

// MatchedWithin is how far the prices of an hour may differ, as a share of the row's own.
const MatchedWithin = 0.1

// Matches reports whether configurations are compared at equal prices of an hour: what
// they do is a rate that is better when it is higher, and the baseline leaves open how
// many workers it is.
func (o Options) Matches() bool {
	return o.Baseline != nil && o.Bought() != "" && o.Measure.Better == measure.Higher && !slices.ContainsFunc(o.Baseline, func(c scaling.Condition) bool {
		last := c.Key[strings.LastIndex(c.Key, ".")+1:]
		return slices.Contains([]string{scaling.Workers, "nodes", "workers_per_node", "replicas"}, last)
	})
}

// match sets Matched of all rows, made of configurations in the same order.
func match(rows []Row, list []Configuration, o Options) error {
	if !o.Matches() {
		return nil
	}
	first := map[string]int{} // of each series: its place among series
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

// matched is a row over those of its baseline.
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
	// Which number would be as dear, if each costs what each of the nearest does.
	each := price / float64(base.Workers)
	n := max(1, math.Round(hour/each))
	said := fmt.Sprintf("no measured number of %ss of %s costs about its %s %s an hour (%s cost %s)", o.worker(), base.Series,
		number.Significant(hour), r.Rate.Currency, number.Count(base.Workers, o.worker()), number.Significant(price))
	if n < 1<<30 && math.Abs(n*each-hour) <= MatchedWithin*hour {
		return &Matched{Why: fmt.Sprintf("%s; measure %d", said, int(n))}
	}
	return &Matched{Why: fmt.Sprintf("%s, and none comes within %g %%; measure more %ss of both", said, 100*MatchedWithin, o.worker())}
}

// worker is what a service calls its workers.
func (o Options) worker() string {
	if o.Work.Million {
		return "replica"
	}
	return "worker"
}

// Name is a row for people: "native platform=p2, 2 workers".
func (o Options) Name(r Row) string {
	return r.Series + ", " + number.Count(r.Workers, o.worker())
}
