package summary

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

// A Stated is a value at one step or epoch of the training, which rank 0 recorded or a log reports.
type Stated struct {
	Time  float64 // from rank 0's start
	Name  string
	Value float64
}

// State adds a value that was reported during training, if one of the run's targets refers to it.
func (in *Input) State(seconds float64, f metrics.Figure) {
	if len(f.At) != 1 || f.At["step"] == nil && f.At["epoch"] == nil || !slices.Contains(in.Asked(), f.Name) {
		return
	}
	in.Stated = append(in.Stated, Stated{seconds, f.Name, f.Value})
}

// Asked returns the names of the reported values to which the run's targets refer.
func (in *Input) Asked() []string {
	var names []string
	for _, t := range in.Targets {
		switch t.Of {
		case measure.OfAccuracy: // targets of accuracy are judged by evaluations
		case measure.OfLoss:
			names = append(names, metrics.FigureLoss, metrics.FigureEvalLoss)
		case measure.OfPerplexity:
			names = append(names, metrics.FigureLoss, metrics.FigureEvalLoss, measure.OfPerplexity)
		default:
			names = append(names, t.Of)
		}
	}
	return names
}

// A judged is a value that decides whether a target is reached, with its time.
type judged struct {
	time, value float64 // time from rank 0's start
}

// reach sets the time to each target: the time of the first value that reaches it. The values are
// the accuracies or losses of evaluations or, if no evaluation has a loss, the smoothed training
// losses.
func (r *Outcome) reach(in Input) {
	zero := rankZero(in)
	for _, t := range in.Targets {
		name := t.Time().Name
		list, why := r.judge(in, t)
		first := slices.IndexFunc(list, func(j judged) bool {
			return t.Reached(j.value) && (zero == nil || zero.TrainTime == nil || j.time >= *zero.TrainTime)
		})
		switch {
		case why != "": // never evaluated, which is not a miss
			r.Why[name] = why
		case first < 0:
			r.Values[name] = math.Inf(1)
		case zero == nil || zero.TrainTime == nil: // a target that was reached at any time is not missed
			r.Why[name] = "reached at an unknown time: no training clock was recorded"
		default:
			r.Values[name] = list[first].time - *zero.TrainTime
		}
	}
}

// judge returns the values that decide about a target, in time order, or the reason why there are
// none.
func (r *Outcome) judge(in Input, t measure.Target) (list []judged, why string) {
	for _, e := range in.Evaluations {
		if x, ok := t.Judges(e.Accuracy, e.Loss); ok {
			list = append(list, judged{e.Time, x})
		}
	}
	if t.Of == measure.OfAccuracy {
		if len(list) == 0 {
			why = "no evaluation was recorded"
		}
		return list, why
	}
	of := func(name string) (list []judged) {
		for _, s := range in.Stated {
			if s.Name == name {
				list = append(list, judged{s.Time, s.Value})
			}
		}
		return list
	}
	loss, losses := func(list []judged) []judged { return list }, t.Of == measure.OfLoss || t.Of == measure.OfPerplexity
	if t.Of == measure.OfPerplexity {
		loss = func(list []judged) []judged {
			for i := range list {
				list[i].value = math.Exp(list[i].value)
			}
			return list
		}
	}
	if !losses || t.Of == measure.OfPerplexity {
		list = append(list, of(t.Of)...)
	}
	if losses {
		list = append(list, loss(of(metrics.FigureEvalLoss))...)
	}
	byTime(list)
	if len(list) > 0 {
		return list, ""
	}
	if !losses {
		return nil, fmt.Sprintf("no %s was recorded at a step or an epoch", t.Of)
	}
	switch list = of(metrics.FigureLoss); {
	case len(list) == 0:
		return nil, "no loss was recorded, of an evaluation or at a step"
	case len(list) < leastSmoothed:
		return nil, fmt.Sprintf("the training loss was recorded %s, and it takes %d to smooth it; record the loss of an evaluation, or the training loss more often", number.Count(len(list), "time"), leastSmoothed)
	}
	byTime(list)
	if note := "no evaluation recorded a loss: targets are judged by the training loss, smoothed (docs/metrics.md)"; !slices.Contains(r.Warnings, note) {
		r.warn("%s", note)
	}
	return loss(smoothed(list)), ""
}

func byTime(list []judged) {
	slices.SortStableFunc(list, func(a, b judged) int { return cmp.Compare(a.time, b.time) })
}

// The training loss is smoothed by a median over the latest tenth of the values so far, with a
// minimum number of values. The delay by smoothing is then the same share of every run's time, so
// that it cancels in a speedup. It also does not depend on when the run ends. A median ignores
// spikes, which a mean would not.
const (
	smoothedShare = 10 // a tenth
	leastSmoothed = 5
)

// smoothed returns the running median of the latest values, beginning with the first value before
// which there are enough.
func smoothed(list []judged) []judged {
	var out []judged
	var window []float64 // sorted
	from := 0
	for i, j := range list {
		at, _ := slices.BinarySearch(window, j.value)
		window = slices.Insert(window, at, j.value)
		for width := max(leastSmoothed, (i+1)/smoothedShare); i+1-from > width; from++ {
			at, _ := slices.BinarySearch(window, list[from].value)
			window = slices.Delete(window, at, at+1)
		}
		if n := len(window); n >= leastSmoothed {
			out = append(out, judged{j.time, window[(n-1)/2]/2 + window[n/2]/2})
		}
	}
	return out
}

// accuracies sets the evaluations of the result, with their times since the start of training.
func (r *Outcome) accuracies(in Input) {
	n := len(in.Evaluations)
	if n == 0 {
		return
	}
	r.Values[measure.FinalAccuracy] = in.Evaluations[n-1].Accuracy
	zero := rankZero(in)
	if zero == nil || zero.TrainTime == nil {
		r.warn("no time to accuracy: the evaluations have no time since training began; in a log (?P<elapsed>…) reads it, in a table --map elapsed=COLUMN")
		return
	}
	var trained int64 // samples trained on in the steps before the evaluation
	next, before := 0, 0
	for _, e := range in.Evaluations {
		seconds := e.Time - *zero.TrainTime
		if seconds < 0 {
			before++
			continue
		}
		for next < len(in.Steps) && in.Steps[next].Index < e.Step {
			trained += in.Steps[next].Samples
			next++
		}
		samples := trained
		if len(in.Steps) == 0 {
			samples = e.Trained
		}
		r.Evaluations = append(r.Evaluations, Accuracy{seconds, e.Epoch, e.Step, samples, e.Accuracy, e.Loss})
	}
	if before > 0 {
		r.warn("left out of the time to accuracy: %s before the training clock started", number.Count(before, "evaluation"))
	}
}
