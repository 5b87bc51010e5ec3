package summary

import (
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// resumed takes out what a run that went on from a checkpoint cannot say: times
// from the start of the training, and what its evaluations come to by time, steps
// or samples, which all begin anew in each attempt. Rates and step times stay.
func (r *Outcome) resumed(in Input) {
	if !slices.ContainsFunc(in.Figures, func(f metrics.Figure) bool { return f.Name == metrics.FigureResumed }) {
		return
	}
	gone := []string{measure.TrainSeconds, measure.InitSeconds, measure.RunSeconds, measure.ToTarget, measure.JoulesToTarget}
	for _, t := range in.Targets {
		gone = append(gone, t.Time().Name)
	}
	for _, m := range r.Reported {
		if m.Unit == "s" { // of the run, as far as the program knows
			gone = append(gone, m.Name)
		}
	}
	for _, name := range gone {
		_, had := r.Values[name]
		if delete(r.Values, name); had || r.Why[name] != "" || name == measure.TrainSeconds {
			r.Why[name] = measure.WhyResumed
		}
	}
	r.Evaluations, r.Epochs = nil, 0
	r.warn("resumed: %s; it has no time to a target and no run time", measure.WhyResumed)
}
