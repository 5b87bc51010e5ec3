package scaling

import (
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A run notices that it has reached the target at its next evaluation. If all points evaluate
// after the same amount of training, the delays are equal and cancel in ratios. Otherwise a ratio
// is also one of delays, and its interval does not include that error.
const (
	unlikeCadence = 1.25 // smallest ratio between two points' amounts of training per evaluation that causes a warning
	lateNotice    = 0.05 // share of the time to a target above which the delay matters
)

// cadence is the amount of training between two evaluations.
type cadence struct {
	amount float64
	unit   string // "sample", "epoch"
}

func (c cadence) String() string {
	if c.amount == 1 {
		return "every " + c.unit
	}
	return "every " + number.Count(int(c.amount), c.unit)
}

// cadenceOf returns the median amount of training between two evaluations of a run. ok is false
// if it is unknown.
func cadenceOf(o *Observation) (c cadence, ok bool) {
	for _, by := range []struct {
		unit string
		done func(Evaluation) float64
	}{
		{"sample", func(e Evaluation) float64 { return float64(e.Samples) }},
		{"epoch", func(e Evaluation) float64 { return float64(e.Epoch) }},
	} {
		var gaps []float64
		before := 0.0
		for _, e := range o.Evaluations {
			done := by.done(e)
			if done <= before { // evaluated before the training, twice at the same time, or at an unknown time
				continue
			}
			gaps = append(gaps, done-before)
			before = done
		}
		if len(gaps) > 0 {
			slices.Sort(gaps)
			return cadence{gaps[(len(gaps)-1)/2], by.unit}, true
		}
	}
	return cadence{}, false
}

// late returns the largest possible delay with which a run noticed the target, as a share of its
// time to the target: the time since the previous evaluation.
func late(o *Observation, t measure.Target) (share float64, reached bool) {
	before := 0.0
	for _, e := range o.Evaluations {
		x, judged := t.Judges(e.Accuracy, e.Loss)
		if !judged {
			continue
		}
		if t.Reached(x) {
			return (e.Seconds - before) / e.Seconds, e.Seconds > 0
		}
		before = e.Seconds
	}
	return 0, false
}

// untrained returns the number of runs that reached the target before training, and the number of
// all runs.
func untrained(c *Curve, runs map[Value][]*Observation, t measure.Target) (n, all int) {
	for _, p := range c.Points {
		for _, o := range runs[p.At] {
			if at := o.Known(t.Time().Name); at != nil && *at == 0 {
				n++
			}
			all++
		}
	}
	return n, all
}

// A lateness is a run's cadence of evaluations, and how late it may have seen a target.
type lateness struct {
	cadence
	late float64
}

// latestToSee returns the run that may have seen the target latest.
func latestToSee(runs []*Observation, t measure.Target) (worst lateness, ok bool) {
	for _, o := range runs {
		share, reached := late(o, t)
		every, known := cadenceOf(o)
		if reached && known && (!ok || share > worst.late) {
			worst, ok = lateness{every, share}, true
		}
	}
	return worst, ok
}

// cadenceWarnings returns one warning per target, about the point whose amount of training
// between evaluations differs most from the base's.
func (an *analysis) cadenceWarnings(c *Curve, runs map[Value][]*Observation) []string {
	if c.Base == nil {
		return nil
	}
	var targets []measure.Target
	for _, p := range c.Points {
		for _, o := range runs[p.At] {
			targets = append(targets, o.Targets()...)
		}
	}
	slices.SortStableFunc(targets, measure.Harder)
	var list []string
	for _, t := range slices.Compact(targets) {
		if n, all := untrained(c, runs, t); n > 0 && an.asks(t.Time()) {
			list = append(list, fmt.Sprintf("%s: reached at 0 s, before any training, by %d of %s: too easy to compare speeds; choose a harder one", goal(t.Time()), n, number.Count(all, "run")))
		}
		base, ok := latestToSee(runs[c.Base.At], t)
		if !ok || !an.asks(t.Time()) {
			continue
		}
		var worst lateness
		var where Value
		furthest := unlikeCadence
		for _, p := range c.Points {
			here, ok := latestToSee(runs[p.At], t)
			if !ok || here.unit != base.unit || max(here.late, base.late) < lateNotice {
				continue
			}
			if by := max(here.amount/base.amount, base.amount/here.amount); by >= furthest {
				furthest, worst, where = by, here, p.At
			}
		}
		if worst.amount > 0 {
			list = append(list, fmt.Sprintf("%s: evaluated %s with %s, and %s with %s: up to %s and %s of these times may be delay, so their ratio is not a speedup; evaluate equally often",
				goal(t.Time()), worst.cadence, c.Places(where), base.cadence, c.Places(c.Base.At), number.Percent(worst.late), number.Percent(base.late)))
		}
	}
	return list
}
