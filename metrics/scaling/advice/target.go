package advice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/predict"
)

// chooseTarget sets the target: the user's, else the program's own, else the hardest one that
// half of the runs at some count are shown to reach. If none exists, it takes the hardest
// target that any run reached.
func (s *study) chooseTarget() {
	target := s.o.Target
	if target == nil && s.o.Samples == 0 {
		var own bool
		if target, own = s.hardest(); own {
			s.Goal = measure.ToTarget
			return
		}
	}
	if target != nil {
		s.Goal, s.Target = target.Time().Name, target
	}
}

// hardest returns the hardest target that half of the runs at some count reached, else that any
// run reached; own is true if a run reached the program's own target.
func (s *study) hardest() (target *measure.Target, own bool) {
	var some *measure.Target
	for _, p := range s.curve.Points {
		for _, t := range p.Targets() {
			one, ok := measure.TargetOf(t.Name)
			switch {
			case t.Reached() == 0:
			case t.Name == measure.ToTarget:
				return nil, true
			case ok:
				some = harder(some, one)
				if t.Median != nil {
					target = harder(target, one)
				}
			}
		}
	}
	return cmp.Or(target, some), false
}

// harder returns the harder of two targets; a may be nil.
func harder(a *measure.Target, b measure.Target) *measure.Target {
	if a == nil || measure.Harder(b, *a) > 0 {
		return &b
	}
	return a
}

// converge fits how many samples the target takes as a function of the global batch.
func (s *study) converge() error {
	s.chooseTarget()
	if s.Goal == "" {
		if s.o.Figure != nil {
			s.timeless = s.o.Figure.Title + " is compared, not times"
		} else if s.o.Samples == 0 {
			s.timeless = "no time to a target was measured; say with --samples how much to train"
		}
		return nil
	}
	reached, silent := s.outcomes()
	s.lost, s.lostRuns = s.misses.lost()
	reached = slices.DeleteFunc(reached, func(r predict.ToTarget) bool { return r.Batch >= s.lost })
	if len(reached) == 0 {
		s.timeless = s.unreached(silent)
		return nil
	}
	slices.SortFunc(reached, func(a, b predict.ToTarget) int {
		return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Samples, b.Samples))
	})
	var err error
	s.conv, err = predict.FitConvergence(reached, s.o.Confidence)
	return err
}

// outcomes returns the samples to the target of the runs that reached it and recorded them. It
// counts the runs that missed it, and warns about missing records. silent reports that a run
// reached the target without recording its samples.
func (s *study) outcomes() (reached []predict.ToTarget, silent bool) {
	batchless, sampleless, misses := false, false, 0
	for _, runs := range s.runs {
		for _, o := range runs {
			samples, did, known := s.outcome(o)
			if !known {
				continue
			}
			if !did {
				misses++
			}
			silent = silent || did && samples == 0
			batch := predict.Batch(o)
			if batch == 0 {
				batchless = true
				continue
			}
			s.misses.add(batch, !did)
			if samples > 0 && did {
				reached = append(reached, predict.ToTarget{Batch: batch, Samples: samples})
			} else if did {
				sampleless = true
			}
		}
	}
	if batchless {
		s.warn("runs do not record their global batch, so the samples to the target are not extrapolated to other worker counts")
	} else if sampleless {
		s.warn("runs do not record how many samples the target took: times are known only at the measured worker counts")
	}
	if misses > 0 {
		verb := "miss"
		if misses == 1 {
			verb = "misses"
		}
		s.warn("%s %s %s; the samples to the target come from the runs that reach it", number.Count(misses, "run"), verb, s.goal())
	}
	return reached, silent
}

// unreached says why no count has a time, if no run tells how many samples the target takes. It
// returns "" if some count has a measured time.
func (s *study) unreached(silent bool) string {
	asked := func(p scaling.Point) bool { return p.Of(s.Goal).Runs > 0 }
	switch {
	case slices.ContainsFunc(s.curve.Points, func(p scaling.Point) bool { return s.reached(p.Workers) != nil }):
		return ""
	case silent && !slices.ContainsFunc(s.curve.Points, asked):
		return fmt.Sprintf("times to %s were not collected; add %s to workload.targets, submit again (no run is repeated), and collect", s.goal(), s.Target)
	}
	return fmt.Sprintf("no worker count reaches %s in more than half of its runs", s.goal())
}

// outcome returns whether a run reached the target, and the samples that it had trained on at the
// first evaluation that did; 0 if unknown. For the program's own target, the samples are taken from
// the whole training, if it ended when it reached the target. known is false for a run without
// data on the target.
func (s *study) outcome(o *scaling.Observation) (samples float64, reached, known bool) {
	if v, ok := o.Value(s.Goal); ok {
		reached, known = !math.IsInf(v, 1), true
	}
	if s.Target == nil {
		seconds, rate, to := o.Known(measure.TrainSeconds), o.Known(measure.EndToEnd), o.Known(s.Goal)
		if seconds != nil && rate != nil && to != nil && *seconds == *to {
			samples = *rate * *seconds
		}
		return samples, reached, known
	}
	judged := false
	for _, e := range o.Evaluations {
		x, is := s.Target.Judges(e.Accuracy, e.Loss)
		judged = judged || is
		switch {
		case !is || !s.Target.Reached(x):
		case e.Samples < 0:
			return float64(e.Step) * predict.Batch(o), true, true
		default:
			return float64(e.Samples), true, true
		}
	}
	return 0, reached, known || judged
}

// goal returns the target in words.
func (s *study) goal() string {
	if s.Target == nil {
		return "the program's target"
	}
	if s.Target.Of != measure.OfAccuracy {
		return s.Target.Text()
	}
	return percent(s.Target.Value) + " accuracy"
}

// misses counts the runs that missed the target, by their global batch. The probability of a miss
// depends on the training recipe, which includes the batch, but not on the number of workers.
type misses struct {
	missed, all map[float64]int
	total       int // runs that missed the target, over all batches
	level       float64
}

func newMisses(level float64) misses {
	return misses{missed: map[float64]int{}, all: map[float64]int{}, level: level}
}

func (m *misses) add(batch float64, missed bool) {
	m.all[batch]++
	if missed {
		m.missed[batch]++
		m.total++
	}
}

// share returns the share of a measured batch's runs that miss, with its exact interval (Clopper
// & Pearson, Biometrika 26, 1934). The upper end is below one half in the same cases in which
// scaling.Reached returns a median for as many runs.
func (m *misses) share(batch float64) Estimate {
	k, n := float64(m.missed[batch]), float64(m.all[batch])
	low, high := 0.0, 1.0
	if k > 0 {
		low = mathext.InvRegIncBeta(k, n-k+1, (1-m.level)/2)
	}
	if k < n {
		high = mathext.InvRegIncBeta(k+1, n-k, (1+m.level)/2)
	}
	return Estimate{Value: k / n, Low: &low, High: &high}
}

// chance returns the probability that a run with this global batch misses the target. It is nil
// if no run misses it, or none with this batch. For a batch that was not measured it is predicted
// by a logistic regression on the logarithm of the batch, with a profile-likelihood interval.
func (m *misses) chance(batch float64) *Estimate {
	if m.total == 0 || m.all[batch] > 0 && m.missed[batch] == 0 {
		return nil
	}
	if m.all[batch] > 0 {
		return new(m.share(batch))
	}
	const lowest, highest, steepest, step = -8, 8, 8, 0.25 // ranges of the logit and the slope
	var likelihood []float64                               // at each logit, the largest over all slopes
	away := map[float64]float64{}
	for b := range m.all {
		away[b] = math.Log(b / batch)
	}
	for logit := float64(lowest); logit <= highest; logit += step {
		best := math.Inf(-1)
		for slope := float64(-steepest); slope <= steepest; slope += 4 * step {
			sum := 0.0
			for b, n := range m.all {
				x := logit + slope*away[b]
				// log(1 + eˣ) in a form that does not overflow
				rest := max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
				sum += float64(m.missed[b])*x - float64(n)*rest
			}
			best = max(best, sum)
		}
		likelihood = append(likelihood, best)
	}
	top := slices.Max(likelihood)
	allowed := top - distuv.ChiSquared{K: 1}.Quantile(m.level)/2
	at := func(i int) float64 { return 1 / (1 + math.Exp(-(lowest + step*float64(i)))) }
	low, high := 0.0, 1.0 // one grid step outside the allowed logits, or 0 and 1 at the ends of the grid
	for i, l := range likelihood {
		if l < allowed {
			continue
		}
		if low == 0 && i > 0 {
			low = at(i - 1)
		}
		if high = 1; i+1 < len(likelihood) {
			high = at(i + 1)
		}
	}
	return &Estimate{Value: at(slices.Index(likelihood, top)), Low: &low, High: &high}
}

// later returns the median time of all runs divided by the median time of the runs that reach the target, if
// a share p of all runs misses it. The logarithms of the times scatter by sigma. The median of
// all runs is the quantile 0.5/(1−p) of those that reach the target. It returns +Inf if half of
// them miss it.
func later(p, sigma float64) float64 {
	if p >= 0.5 {
		return math.Inf(1)
	}
	return math.Exp(sigma * distuv.UnitNormal.Quantile(0.5/(1-p)))
}

// lost returns the smallest global batch at which half of the runs or more miss the target, above
// the largest batch that is shown to reach it, and a clause with the numbers. It returns +Inf if
// none exists.
func (m *misses) lost() (batch float64, what string) {
	batch = math.Inf(1)
	var batches []float64
	for b := range m.all {
		batches = append(batches, b)
	}
	slices.Sort(batches)
	for _, b := range slices.Backward(batches) {
		if *m.share(b).High < 0.5 {
			break
		}
		if 2*m.missed[b] >= m.all[b] {
			batch = b
			what = fmt.Sprintf("at a global batch of %g, %d of %d runs miss the target", b, m.missed[b], m.all[b])
		}
	}
	return batch, what
}
