package tradeoff

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// amounts are the medians of the times and costs of the runs for the work. A run
// that misses the target takes infinitely long.
func (r *Row) amounts(runs []PricedRun, o Options) error {
	var times, costs []float64
	without := map[string]int{}
	unpriced := map[string]int{}
	for _, run := range runs {
		seconds, why := run.Seconds, ""
		switch {
		case o.Work.Target != nil:
			seconds, why = run.reached(*o.Work.Target)
		case o.Work.Epoch && run.Epochs == 0:
			why = "finished no epoch, or does not say"
		}
		if why == "" && !(seconds > 0) {
			why = "recorded no time"
		}
		if why != "" {
			without[why]++
			continue
		}
		share := 1.0
		if o.Work.Epoch {
			share = 1 / float64(run.Epochs)
		}
		times = append(times, seconds*share)
		switch {
		case run.Rate == nil:
			unpriced[run.WhyNoRate]++
		case math.IsInf(seconds, 1):
			costs = append(costs, seconds)
		default:
			costs = append(costs, run.Rate.Cost(seconds)*share)
			if r.Rate == nil {
				r.Rate = run.Rate
			}
		}
	}
	var whys []string
	for _, why := range slices.Sorted(maps.Keys(without)) {
		whys = append(whys, fmt.Sprintf("%d of %s left out: %s", without[why], number.Count(len(runs), "run"), why))
	}
	whys = append(whys, slices.Sorted(maps.Keys(unpriced))...)
	if len(unpriced) > 0 {
		costs, r.Rate = nil, nil
	}
	time, err := scaling.Reached(times, o.Confidence)
	if err != nil {
		return err
	}
	if time.Why != "" {
		whys = append(whys, time.Why)
	}
	r.Time = time.Median
	if r.Cost, err = median(costs, o.Confidence); err != nil {
		return err
	}
	if r.Time == nil || r.Cost == nil {
		r.Why = strings.Join(whys, "; ")
	} else if whys != nil {
		r.Warnings = append(r.Warnings, whys...)
	}
	return nil
}

// value is what the runs have of the measure, and what a unit of currency buys of
// it. Runs that lack it are in time and cost and not in it, which is said.
func (r *Row) value(c Configuration, o Options) error {
	if o.Measure.Name == "" {
		return nil
	}
	i := slices.IndexFunc(c.Measured, func(s *scaling.Summary) bool { return s.Name == o.Measure.Name })
	if i < 0 || c.Measured[i].Runs == 0 {
		r.WhyNoValue = "no run has " + o.Measure.Title
		return nil
	}
	s := c.Measured[i]
	r.Value = s.Median
	if r.Value == nil {
		r.WhyNoValue = o.Measure.Title + ": " + s.Why
	}
	if n := len(c.Runs); s.Runs < n {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s, %s: %d of %s without %s, which counts in time and cost alone", r.Series, number.Count(r.Workers, "worker"), n-s.Runs, number.Count(n, "run"), o.Measure.Title))
	}
	if o.Bought() == "" {
		return nil
	}
	var bought []float64
	for _, run := range c.Runs {
		v, has := run.Values[o.Measure.Name]
		switch {
		case !has || !slices.Contains(s.Values, v): // as the summary has left it out
			continue
		case run.Rate == nil || !(run.Rate.PerHour() > 0):
			return nil
		}
		bought = append(bought, v*3600/run.Rate.PerHour())
	}
	var err error
	r.Bought, err = median(bought, o.Confidence)
	return err
}

// reached is when the run reached an accuracy, +Inf when it did not.
func (run *PricedRun) reached(accuracy float64) (seconds float64, why string) {
	if seconds, had := run.Targets[accuracy]; had {
		return seconds, ""
	}
	return 0, "had no target " + trim(accuracy)
}

// median of amounts, of which those that are infinite rank last; nil for none, and
// where too many are.
func median(xs []float64, confidence float64) (*scaling.Estimate, error) {
	r, err := scaling.Reached(xs, confidence)
	return r.Median, err
}

// gain is how many times better one median of the measure is than the baseline's;
// nil where that means nothing.
func (o Options) gain(of, base *scaling.Estimate, same bool) *scaling.Estimate {
	if of == nil || base == nil || !(of.Value > 0 && base.Value > 0) {
		return nil
	}
	switch o.Measure.Better {
	case measure.Higher:
		return ratio(of, base, same)
	case measure.Lower:
		return ratio(base, of, same)
	}
	return nil
}

// ratio is one configuration's median over the baseline's.
func ratio(of, base *scaling.Estimate, same bool) *scaling.Estimate {
	if same && of != nil && base != nil && base.Value != 0 {
		return &scaling.Estimate{Value: 1, Runs: of.Runs, Why: AtBaseline}
	}
	return scaling.Ratio(of, base)
}

func (r *Row) perEpoch(runs []PricedRun, confidence float64) error {
	var costs []float64
	for _, run := range runs {
		if run.Rate == nil || run.Epochs == 0 || !(run.Seconds > 0) {
			return nil
		}
		costs = append(costs, run.Rate.Cost(run.Seconds)/float64(run.Epochs))
	}
	var err error
	r.CostPerEpoch, err = median(costs, confidence)
	return err
}

func (r *Row) targets(runs []PricedRun, confidence float64) error {
	of := map[float64]bool{}
	for _, run := range runs {
		for accuracy := range run.Targets {
			of[accuracy] = true
		}
	}
	for _, accuracy := range slices.Sorted(maps.Keys(of)) {
		t := Target{Accuracy: accuracy}
		var times, costs []float64
		for _, run := range runs {
			seconds, why := run.reached(accuracy)
			if why != "" {
				continue
			}
			t.Runs++
			times = append(times, seconds)
			price := seconds
			switch {
			case run.Rate == nil:
				t.Why = run.WhyNoRate
			case !math.IsInf(seconds, 1):
				price = run.Rate.Cost(seconds)
			}
			costs = append(costs, price)
			if !math.IsInf(seconds, 1) {
				t.Reached++
			}
		}
		if t.Why != "" {
			costs = nil
		}
		var err error
		if t.Time, err = median(times, confidence); err != nil {
			return err
		}
		if t.Cost, err = median(costs, confidence); err != nil {
			return err
		}
		r.Targets = append(r.Targets, t)
	}
	return nil
}
