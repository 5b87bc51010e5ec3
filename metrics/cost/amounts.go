package cost

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

// amounts sets the row's median times and costs of the work. A run that misses the
// target takes infinitely long.
func (r *Row) amounts(c Configuration, o Options) error {
	times, costs := c.sample(), c.sample()
	without := map[string]int{}
	unpriced := map[string]struct{}{}
	for _, run := range c.Runs {
		seconds, why := o.seconds(&run)
		if why != "" && o.Work.Million { // runs lack it because its value would be bad
			times.lacking++
			costs.lacking++
			continue
		}
		if why != "" {
			without[why]++
			continue
		}
		share := 1.0
		if o.Work.Epoch {
			share = 1 / float64(run.Epochs)
		}
		times.add(&run, seconds*share)
		if run.Rate == nil {
			unpriced[run.WhyNoRate] = struct{}{}
			continue
		}
		costs.add(&run, o.Work.cost(&run, seconds, share))
		if r.Rate == nil && !math.IsInf(seconds, 1) {
			r.Rate = run.Rate
		}
	}
	var whys []string
	for _, why := range slices.Sorted(maps.Keys(without)) {
		whys = append(whys, fmt.Sprintf("%d of %s left out: %s", without[why], number.Count(len(c.Runs), "run"), why))
	}
	whys = append(whys, slices.Sorted(maps.Keys(unpriced))...)
	if len(unpriced) > 0 {
		costs, r.Rate = c.sample(), nil
	}
	time, err := times.reached(o.Confidence)
	if err != nil {
		return err
	}
	if time.Why != "" {
		whys = append(whys, time.Why)
	}
	r.Time = time.Median
	if r.Cost, err = costs.median(o.Confidence); err != nil {
		return err
	}
	like := o.Work.clock(c)
	if r.times, err = times.like(like, o.Confidence); err != nil {
		return err
	}
	if r.costs, err = costs.like(like, o.Confidence); err != nil {
		return err
	}
	if r.Time == nil || r.Cost == nil {
		r.Why = strings.Join(whys, "; ")
	} else {
		for _, why := range whys {
			r.Warnings = append(r.Warnings, o.Name(*r)+": "+why)
		}
	}
	return nil
}

// seconds returns how long a run took for the work, or why that is unknown; +Inf if it
// misses the target.
func (o Options) seconds(run *PricedRun) (seconds float64, why string) {
	seconds = run.Seconds
	switch {
	case o.Work.Target != nil:
		seconds, why = run.reached(*o.Work.Target)
	case o.Work.Epoch && run.Epochs == 0:
		why = "no finished epoch recorded"
	}
	switch {
	case why != "" || seconds > 0:
		return seconds, why
	case o.Work.Million:
		return seconds, "has no " + o.Measure.Title
	}
	return seconds, "recorded no time"
}

// cost returns what a priced run costs for its share of the work.
func (w Work) cost(run *PricedRun, seconds, share float64) float64 {
	switch {
	case math.IsInf(seconds, 1):
		return seconds
	case w.Million:
		return run.Rate.PerHour() * seconds / 3600
	}
	return run.Rate.Cost(seconds) * share
}

// value sets the row's value of the measure, and how much of it a unit of currency
// buys. Runs without a value still count in time and cost; the row says so.
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
	if n := len(c.Runs); s.Runs < n && !o.Work.Million { // such runs have no cost either, and the cost's reason says so
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: %d of %s without %s, counted only in time and cost", o.Name(*r), n-s.Runs, number.Count(n, "run"), o.Measure.Title))
	}
	merits := c.sample()
	merits.lacking, merits.better = s.Censored(), s.Better
	for _, run := range c.Runs {
		if v, has := run.Values[o.Measure.Name]; has && slices.Contains(s.Values, v) { // the summary may have excluded the run
			merits.add(&run, v)
		}
	}
	var err error
	if r.merits, err = merits.like(s, o.Confidence); err != nil {
		return err
	}
	if o.Bought() == "" {
		return nil
	}
	bought := c.sample()
	bought.lacking, bought.better = s.Censored(), measure.Higher
	for _, run := range c.Runs {
		v, has := run.Values[o.Measure.Name]
		switch {
		case !has || !slices.Contains(s.Values, v): // the summary may have excluded the run
			continue
		case run.Rate == nil || !(run.Rate.PerHour() > 0):
			return nil
		}
		bought.add(&run, v*3600/run.Rate.PerHour())
	}
	if r.Bought, err = bought.median(o.Confidence); err != nil {
		return err
	}
	r.boughts, err = bought.like(s, o.Confidence)
	return err
}

// reached returns when the run reached a target in seconds, or +Inf if it did not.
func (run *PricedRun) reached(target measure.Target) (seconds float64, why string) {
	if seconds, had := run.Targets[target]; had {
		return seconds, ""
	}
	return 0, "had no target " + target.String()
}

// clock returns the summary of the measure that times the work; nil if the runs lack
// it or no measure times the work.
func (w Work) clock(c Configuration) *scaling.Summary {
	name := measure.TrainSeconds
	switch {
	case w.Target != nil:
		name = w.Target.Time().Name
	case w.Million:
		return nil
	}
	for _, s := range c.Measured {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// A sample holds amounts of runs; infinite ones rank last.
type sample struct {
	values []float64
	byNode bool
	// lacking counts further runs without an amount because it would be bad, such as
	// those that found no rate within a limit.
	lacking int
	better  measure.Direction // direction of the amounts, if lacking > 0
	made    []*scaling.Observation
}

func (c Configuration) sample() sample { return sample{byNode: c.ByNode, better: measure.Lower} }

func (s *sample) add(run *PricedRun, value float64) {
	made := run.Made
	if made == nil {
		made = &scaling.Observation{Run: run.ID, Hosts: run.Hosts}
	}
	s.values, s.made = append(s.values, value), append(s.made, made)
}

// like returns the sample in the form that ratios need; its runs come from the
// summary.
func (s *sample) like(of *scaling.Summary, confidence float64) (scaling.Sample, error) {
	return of.Like(s.values, s.made, s.lacking, s.better, s.byNode, confidence)
}

func (s *sample) reached(confidence float64) (scaling.Reach, error) {
	return scaling.ReachOf(s.values, s.made, s.lacking, s.better, s.byNode, confidence)
}

// median returns nil without amounts, or if too many are infinite.
func (s *sample) median(confidence float64) (*scaling.Estimate, error) {
	r, err := s.reached(confidence)
	return r.Median, err
}

// gain returns how many times better one sample of the measure is than the baseline's;
// nil if the ratio has no meaning.
func (o Options) gain(of, base scaling.Sample, same bool) *scaling.Estimate {
	if base.Median == nil || !(base.Median.Value > 0) { // a ratio of two negative medians
		return nil
	}
	switch o.Measure.Better {
	case measure.Higher:
		return ratio(of, base, same, o.Confidence)
	case measure.Lower:
		return ratio(base, of, same, o.Confidence)
	}
	return nil
}

// ratio returns a configuration's median over the baseline's.
func ratio(of, base scaling.Sample, same bool, confidence float64) *scaling.Estimate {
	if same && base.Median != nil && base.Median.Value != 0 {
		return &scaling.Estimate{Value: 1, Runs: base.Median.Runs, Why: AtBaseline}
	}
	return scaling.RatioOf(of, base, confidence)
}

func (r *Row) perEpoch(c Configuration, confidence float64) error {
	costs := c.sample()
	for _, run := range c.Runs {
		if run.Rate == nil || run.Epochs == 0 || !(run.Seconds > 0) {
			return nil
		}
		costs.add(&run, run.Rate.Cost(run.Seconds)/float64(run.Epochs))
	}
	var err error
	r.CostPerEpoch, err = costs.median(confidence)
	return err
}

func (r *Row) targets(c Configuration, confidence float64) error {
	of := map[measure.Target]struct{}{}
	for _, run := range c.Runs {
		for target := range run.Targets {
			of[target] = struct{}{}
		}
	}
	for _, target := range slices.SortedFunc(maps.Keys(of), measure.Harder) {
		t := Target{Of: target}
		times, costs := c.sample(), c.sample()
		for _, run := range c.Runs {
			seconds, why := run.reached(target)
			if why != "" {
				continue
			}
			t.Runs++
			times.add(&run, seconds)
			price := seconds
			switch {
			case run.Rate == nil:
				t.Why = run.WhyNoRate
			case !math.IsInf(seconds, 1):
				price = run.Rate.Cost(seconds)
			}
			costs.add(&run, price)
			if !math.IsInf(seconds, 1) {
				t.Reached++
			}
		}
		if t.Why != "" {
			costs = c.sample()
		}
		var err error
		if t.Time, err = times.median(confidence); err != nil {
			return err
		}
		if t.Cost, err = costs.median(confidence); err != nil {
			return err
		}
		r.Targets = append(r.Targets, t)
	}
	return nil
}
