package summary

import (
	"slices"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
)

// resumed removes values that are wrong for a run that was resumed from a checkpoint: times from
// the start of training, and evaluations, whose times, steps and samples start again in each
// attempt. Rates and step times are kept.
func (r *Outcome) resumed(in Input) {
	if !slices.ContainsFunc(in.Figures, func(f metrics.Figure) bool { return f.Name == metrics.FigureResumed }) {
		return
	}
	gone := []string{measure.TrainSeconds, measure.InitSeconds, measure.RunSeconds, measure.ToTarget, measure.JoulesToTarget}
	for _, t := range in.Targets {
		gone = append(gone, t.Time().Name)
	}
	for _, m := range r.Reported {
		if m.Unit == "s" { // times cover the whole run, if the program knows them
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
