package pricing

import (
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// Question is what a comparison is to be of.
type Question struct {
	Mix    bool
	Series []string        // only these; nil: all
	Target *measure.Target // nil: the work that says most
	// Baseline is what time and cost are divided by; nil: the smallest worker
	// count.
	Baseline []scaling.Condition
}

// Compare sets the points of curves side by side by time on the training clock
// and cost. The work that says most is to the hardest target that was reached,
// else an epoch, else a run.
func (t *Tariff) Compare(curves []scaling.Curve, observations []scaling.Observation, q Question) (*cost.Comparison, error) {
	list, _, err := t.Configurations(observations, Train, measure.Measure{}, q.Mix)
	if err != nil {
		return nil, err
	}
	if len(q.Series) > 0 {
		list = slices.DeleteFunc(list, func(c cost.Configuration) bool { return !slices.Contains(q.Series, c.Series) })
	}
	bill := &cost.Comparison{Currency: t.Currency, Options: cost.Options{Energy: t.Energy, Work: usualWork(curves, observations), Baseline: q.Baseline}}
	if q.Target != nil {
		bill.Options.Work = cost.Work{Target: q.Target}
	}
	if q.Baseline == nil && len(list) > 0 {
		least := slices.MinFunc(list, func(a, b cost.Configuration) int { return a.Workers - b.Workers }).Workers
		bill.Options.Baseline = []scaling.Condition{{Key: scaling.Workers, Value: fmt.Sprint(least)}}
	}
	bill.Rows, err = cost.Compare(list, bill.Options)
	return bill, err
}

func usualWork(curves []scaling.Curve, observations []scaling.Observation) cost.Work {
	var work cost.Work
	for _, c := range curves {
		for _, p := range c.Points {
			for _, t := range p.Targets() {
				if target, ok := measure.TargetOf(t.Name); ok && t.Median != nil && (work.Target == nil || measure.Harder(target, *work.Target) > 0) {
					work.Target = &target
				}
			}
		}
	}
	work.Epoch = work.Target == nil && !slices.ContainsFunc(observations, func(o scaling.Observation) bool { return o.Epochs == nil || *o.Epochs == 0 })
	return work
}
