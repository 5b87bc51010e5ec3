package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/pricing"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
	"github.com/scalebench/scalebench/metrics/scaling/decision"
	"github.com/scalebench/scalebench/metrics/table"
)

// mostDemand is far above what any service is asked, and bounds what is printed.
const mostDemand = 1e9

// nodesFor is how many nodes so many replicas take, as many on each as runs had; 0
// where no run says.
func nodesFor(replicas int, runs []scaling.Observation) int {
	perNode := 0
	for _, o := range runs {
		if o.Nodes > 0 {
			perNode = max(perNode, o.Workers/o.Nodes)
		}
	}
	if perNode == 0 {
		return 0
	}
	return (replicas + perNode - 1) / perNode
}

// replicaPrice is what so many replicas of a curve's kind cost an hour.
func replicaPrice(t *pricing.Tariff, c scaling.Curve, runs []scaling.Observation) func(replicas int) (float64, error) {
	like := t.Like(c, runs)
	return func(replicas int) (float64, error) { return like(replicas, nodesFor(replicas, runs), 3600) }
}

// demands are what each series of a service costs by the demand.
func demands(a *analysis, t *pricing.Tariff) []capacity.Line {
	var list []capacity.Line
	load := capacity.LoadOf(0, a.Observations, false)
	for _, c := range a.Curves {
		list = append(list, capacity.Demand(c, load, replicaPrice(t, c, a.Observations)))
	}
	return list
}

// adviseRate says how many replicas of a service carry a demand of so many requests/s.
func adviseRate(ctx context.Context, s *session, o adviseOptions) error {
	if !(o.rate > 0 && o.rate <= mostDemand) {
		return usagef("--rate %g is out of range; want requests/s above 0, up to %g", o.rate, float64(mostDemand))
	}
	adviser, err := o.adviser(ctx, s)
	if err != nil {
		return err
	}
	o.measure = measure.RateWithinLimit
	a, err := s.analyse(ctx, o.curveOptions)
	if err != nil {
		return err
	}
	if a.Kind.Rate == "" {
		return usagef("--rate asks how many replicas of a service carry a demand, and study %q is of kind %q", a.study, a.Kind.Name)
	}
	var price func(scaling.Curve) func(int) (float64, error)
	if adviser.tariff != nil {
		price = func(c scaling.Curve) func(int) (float64, error) {
			return replicaPrice(adviser.tariff, c, a.Observations)
		}
	}
	list := []capacity.Answer{}
	load := capacity.LoadOf(o.rate, a.Observations, o.limit != nil)
	switch {
	case o.limit != nil:
		loads := o.curveOptions
		loads.measure = measure.LatencyP95 // or any other of a load: curves have all of them
		along, err := s.analyse(ctx, loads)
		if err != nil {
			return err
		}
		if list = capacity.Within(along.Curves, a.Curves, *o.limit, load, price); len(list) == 0 {
			return &usageError{err: fmt.Errorf("no run of study %q says which rates keep %s: none was measured at a rate (open loop), and the latencies of closed loops are not what callers see", a.study, o.limit),
				hint: fmt.Sprintf("Set %s in [workload], or %s, which searches the largest rate within it, and run the study again.", capacity.Rates(o.rate/4, o.rate/2, o.rate), o.limit.TOML())}
		}
		a = along
	case len(a.Curves) == 0:
		return &usageError{err: fmt.Errorf("no run of study %q has found a largest rate within a limit", a.study),
			hint: fmt.Sprintf("Runs search for one if the study sets workload.limit, such as limit = { p95 = \"50ms\" }. If it does, `%s scaling %s` says why they found none.", appName, a.study)}
	}
	if o.limit == nil {
		for _, c := range a.Curves {
			var of func(int) (float64, error)
			if price != nil {
				of = price(c)
			}
			list = append(list, capacity.Of(c, load, of))
		}
	}
	slices.SortStableFunc(list, capacity.Compare)
	if err := s.completeRate(ctx, o, a, list); err != nil {
		return err
	}
	if err := s.printRate(list, load, adviser.currency()); err != nil {
		return err
	}
	a.warn(s)
	if list[0].Replicas == 0 { // those without an answer are last
		return errUndecided
	}
	return nil
}

// currency is that of the prices; "" without.
func (v *adviser) currency() string {
	if v.tariff == nil {
		return ""
	}
	return v.tariff.Currency
}

// completeRate adds the commands that measure what the answers ask for, and the warnings.
func (s *session) completeRate(ctx context.Context, o adviseOptions, a *analysis, list []capacity.Answer) error {
	more, err := s.measuring(ctx, o.study, a.Observations)
	if err != nil {
		return err
	}
	for i := range list {
		one := &list[i]
		one.Warnings = a.lines(one.Series)
		n := one.Next
		if n == nil || more == nil {
			continue
		}
		most := more.upTo(ctx, one.From, n.Replicas)
		if n.Replicas > most {
			one.Doubts = append(one.Doubts, fmt.Sprintf("The study cannot be planned with more than %s there.", number.Count(most, "replica")))
			if n.Replicas = most; most <= one.From {
				one.Next = nil
				continue
			}
		}
		keys := []string{counts(append([]int{n.Replicas}, n.Beside...)...)}
		if len(n.Rates) > 0 {
			keys = append(keys, "workload."+strings.Replace(capacity.Rates(n.Rates...), " = ", "=", 1))
		}
		if k := slices.IndexFunc(a.Curves, func(c scaling.Curve) bool { return c.Series == one.Series }); k >= 0 {
			keys = append(keys, distinguishing(a.Curves, k)...)
		}
		if _, roomy := more.fits(ctx, n.Replicas); !roomy {
			keys = append(keys, "--oversubscribe")
		}
		n.Command = more.command(6, keys...)
	}
	return nil
}

// printRate prints the answers, best first.
func (s *session) printRate(list []capacity.Answer, load capacity.Load, currency string) error {
	if s.format == table.FormatJSON {
		text, err := table.EncodeJSON(list)
		if err == nil {
			_, err = fmt.Fprintln(s.stdout, text)
		}
		return err
	}
	t := &table.Table{Columns: []table.Column{{Key: "series"}, {Key: "demand", Unit: "requests/s", Optional: true}, {Key: "replicas"}, {Key: "at_least"}, {Key: "from", Head: "measured replicas"},
		{Key: "rate_within_limit", Unit: "requests/s"}, {Key: "rate_within_limit_low", Head: "low"}, {Key: "rate_within_limit_high", Head: "high"}, {Key: "runs"}, {Key: "keeps_limits", Head: "carries it", Show: decision.Likely, Right: true}, {Key: "provisional", Data: true}}}
	if currency != "" {
		t.Columns = append(t.Columns, table.Column{Key: "cost_per_hour", Unit: currency}, table.Column{Key: "cost_per_million", Unit: currency})
	}
	add := func(cells ...any) { t.Add(cells[:len(t.Columns)]...) }
	amount := func(x *float64) any {
		if x == nil {
			return nil
		}
		return *x
	}
	for _, one := range list {
		if one.Replicas == 0 {
			add(one.Series, table.NonZero(one.SeriesDemand), nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil)
			if len(list) > 1 {
				t.Notes = append(t.Notes, one.Sentence())
			}
			continue
		}
		add(one.Series, table.NonZero(one.SeriesDemand), one.Replicas, one.AtLeast, one.From, one.Rate, one.Low, amount(one.High), one.Runs, amount(one.Keeps), one.Provisional, amount(one.CostPerHour), amount(one.CostPerMillion))
	}
	if load.Samples > 0 {
		t.Notes = append(t.Notes, load.Sentence())
	}
	if s.format == table.FormatCSV {
		return s.print(t)
	}
	best := list[0]
	if best.Next != nil {
		t.Notes = append(t.Notes, best.Next.Sentence())
		if best.Next.Command != "" {
			t.Notes = append(t.Notes, "`"+best.Next.Command+"`")
		} else {
			text := "Import 6 runs of " + number.Count(best.Next.Replicas, "replica")
			if len(best.Next.Beside) > 0 {
				text += fmt.Sprintf(" and 6 of %d, made in the same blocks", best.Next.Beside[0])
			}
			t.Notes = append(t.Notes, text+".")
		}
	} else if best.Replicas > 0 {
		t.Notes = append(t.Notes, "Measure next: nothing; no run is likely to change the answer.")
	}
	sentence := best.Sentence()
	if best.CostPerHour != nil {
		sentence += fmt.Sprintf(" %s an hour, %s per million requests at that demand.", number.Significant(*best.CostPerHour)+" "+currency, number.Significant(*best.CostPerMillion)+" "+currency)
	}
	if single := capacity.Unbatched(list); single != nil {
		sentence += " Without putting requests together: " + single.Short(currency) + "."
	}
	return s.printSaying(sentence, t)
}
