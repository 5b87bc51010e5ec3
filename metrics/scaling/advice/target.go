package advice

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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
		var some *measure.Target // the hardest that any run reached
		for _, p := range s.curve.Points {
			for _, t := range p.Targets() {
				if t.Reached() == 0 {
					continue
				}
				if t.Name == measure.ToTarget {
					s.Goal = t.Name
					return
				}
				if one, ok := measure.TargetOf(t.Name); ok {
					some = harder(some, one)
					if t.Median != nil {
						target = harder(target, one)
					}
				}
			}
		}
		if target == nil {
			target = some
		}
	}
	if target != nil {
		s.Goal, s.Target = target.Time().Name, target
	}
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
// first evaluation that did; 0 if unknown. For the program's own target, the samples are those of
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
