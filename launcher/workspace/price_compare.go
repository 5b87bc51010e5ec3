package workspace

import (
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// A PriceQuestion configures a comparison.
type PriceQuestion struct {
	Mix    bool
	Series []string        // nil means all
	Target *measure.Target // nil means the most informative work
	// Baseline selects the point by which times and costs are divided; nil means the smallest worker count.
	Baseline []scaling.Condition
	// Confidence is the level of intervals; 0 means 0.95.
	Confidence float64
}

// Compare compares the points of curves by time on the training clock and by cost. Without a target it uses the
// most informative work: up to the hardest target that was reached, else an epoch, else a run.
func (t *Tariff) Compare(curves []scaling.Curve, observations []scaling.Observation, q PriceQuestion) (*cost.Comparison, error) {
	list, _, err := t.Configurations(observations, TrainClock, measure.Measure{}, q.Mix)
	if err != nil {
		return nil, err
	}
	if len(q.Series) > 0 {
		list = slices.DeleteFunc(list, func(c cost.Configuration) bool { return !slices.Contains(q.Series, c.Series) })
	}
	bill := &cost.Comparison{Currency: t.Currency, Options: cost.Options{Energy: t.Energy, Work: usualWork(curves, observations), Baseline: q.Baseline, Confidence: q.Confidence}}
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
