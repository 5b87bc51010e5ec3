package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/capacity"
)

// errNoRate is the error if no run of a study has found a rate, so that there is no curve.
var errNoRate = errors.New("no run")

// mostDemand is the largest valid --rate, in requests/s.
const mostDemand = 1e9

// nodesFor returns how many nodes are needed for the replicas, with as many replicas per node as in
// the runs; 0 if that is unknown.
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

// replicaPrice returns a function that computes the total hourly price of a number of replicas,
// each configured like curve c's.
func replicaPrice(t *workspace.Tariff, c scaling.Curve, runs []scaling.Observation) func(replicas int) (float64, error) {
	like := t.Like(c, runs)
	return func(replicas int) (float64, error) { return like(replicas, nodesFor(replicas, runs), 3600) }
}

// demands returns, for each series of a service, its cost as a function of the demand.
func demands(a *Analysis, t *workspace.Tariff) []capacity.Line {
	var list []capacity.Line
	load := capacity.LoadOf(0, a.Observations, false)
	for _, c := range a.Curves {
		list = append(list, capacity.Demand(c, load, replicaPrice(t, c, a.Observations)))
	}
	return list
}

// Rated holds, for each series of a service, how many replicas are needed for a demand.
type Rated struct {
	*Analysis
	Answers  []capacity.Answer // best first; those without an answer are last
	Load     capacity.Load
	Currency string // "" without prices
}

// Replicas returns how many replicas of a service are needed for the rate o.Rate, for each series.
func (r *Reader) Replicas(ctx context.Context, o Wish) (*Rated, error) {
	if !(o.Rate > 0 && o.Rate <= mostDemand) {
		return nil, workspace.Errorf("--rate %g is out of range; want requests/s above 0, up to %g", o.Rate, float64(mostDemand))
	}
	v, err := r.adviser(ctx, o)
	if err != nil {
		return nil, err
	}
	o.Measure = measure.RateWithinLimit
	a, err := r.Curves(ctx, o.Question)
	if err != nil {
		return nil, err
	}
	if a.Kind.Rate == "" {
		return nil, workspace.Errorf("--rate asks how many replicas of a service carry a demand, and study %q is of kind %q", a.Study, a.Kind.Name)
	}
	var price func(scaling.Curve) func(int) (float64, error)
	if v.tariff != nil {
		price = func(c scaling.Curve) func(int) (float64, error) {
			return replicaPrice(v.tariff, c, a.Observations)
		}
	}
	rated := &Rated{Analysis: a, Answers: []capacity.Answer{}, Load: capacity.LoadOf(o.Rate, a.Observations, o.Limit != nil), Currency: v.currency()}
	if a.design != nil {
		rated.Load.Confidence = a.design.Confidence
	}
	switch {
	case o.Limit != nil:
		err = r.within(ctx, o, rated, price)
	case len(a.Curves) == 0:
		err = &workspace.Error{Err: fmt.Errorf("%w of study %q has found a largest rate within a limit", errNoRate, a.Study),
			Hint: fmt.Sprintf("Runs search for one if the study sets workload.limit, such as limit = { p95 = \"50ms\" }. If it does, `scalebench scaling %s` says why they found none.", a.Study)}
	default:
		for _, c := range a.Curves {
			var of func(int) (float64, error)
			if price != nil {
				of = price(c)
			}
			rated.Answers = append(rated.Answers, capacity.Estimate(c, rated.Load, of))
		}
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rated.Answers, capacity.Compare)
	return rated, r.completeRate(ctx, o, rated.Analysis, rated.Answers)
}

// within replaces the answers in rated by answers for the latency limit o.Limit, which differs from
// the study's limit. It uses the latencies measured at each rate.
func (r *Reader) within(ctx context.Context, o Wish, rated *Rated, price func(scaling.Curve) func(int) (float64, error)) error {
	loads := o.Question
	loads.Measure = measure.LatencyP95 // or any other measure of a load: curves have all of them
	along, err := r.Curves(ctx, loads)
	if err != nil {
		return err
	}
	if rated.Answers = capacity.WithinLimit(along.Curves, rated.Curves, *o.Limit, rated.Load, price); len(rated.Answers) == 0 {
		return &workspace.Error{Err: fmt.Errorf("no run of study %q says which rates keep %s: none was measured at a rate (open loop), and the latencies of closed loops are not what callers see", rated.Study, o.Limit),
			Hint: fmt.Sprintf("Set %s in [workload], or %s, which searches the largest rate within it, and run the study again.", capacity.Rates(o.Rate/4, o.Rate/2, o.Rate), o.Limit.TOML())}
	}
	rated.Analysis = along
	return nil
}

// completeRate adds warnings to the answers, and the shell commands for the measurements that they
// suggest.
func (r *Reader) completeRate(ctx context.Context, o Wish, a *Analysis, list []capacity.Answer) error {
	more, err := r.measuring(ctx, o.Study, a.Observations)
	if err != nil {
		return err
	}
	for i := range list {
		one := &list[i]
		one.Warnings = a.lines(one.Series)
		if more != nil {
			more.completeReplicas(ctx, a, one)
		}
		one.AddCaveats(a.decisive(one.Series))
		if i := slices.IndexFunc(a.Curves, func(c scaling.Curve) bool { return c.Series == one.Series }); i >= 0 && scaling.AllImported(a.Curves[i].Observed(a.Observations)) {
			one.AddEqualRatesCaveat(a.Curves[i])
			one.Next = nil // nobody can make more of them here
		}
	}
	return nil
}

// completeReplicas adds to an answer the shell command for the measurement that it suggests.
func (m *measuring) completeReplicas(ctx context.Context, a *Analysis, one *capacity.Answer) {
	n := one.Next
	if n == nil {
		return
	}
	most := m.upTo(ctx, one.From, n.Replicas)
	if n.Replicas > most {
		one.Caveats = append(one.Caveats, fmt.Sprintf("The study cannot be planned with more than %s there.", number.Count(most, "replica")))
		if n.Replicas = most; most <= one.From {
			one.Next = nil
			return
		}
	}
	keys := []string{counts(append([]int{n.Replicas}, n.Neighbours...)...)}
	if len(n.Rates) > 0 {
		keys = append(keys, "workload."+strings.Replace(capacity.Rates(n.Rates...), " = ", "=", 1))
	}
	if k := slices.IndexFunc(a.Curves, func(c scaling.Curve) bool { return c.Series == one.Series }); k >= 0 {
		keys = append(keys, distinguishing(a.Curves, k)...)
	}
	if _, roomy := m.fits(ctx, n.Replicas); !roomy {
		keys = append(keys, "--oversubscribe")
	}
	n.Command = m.command(6, keys...)
}
