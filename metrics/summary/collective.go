package summary

import (
	"github.com/scalebench/scalebench/metrics/collective"
)

// collectives fits what a benchmark of collectives measured, and says of a run
// that measured nothing else that it is no training.
func (r *Result) collectives(in Input) {
	list, _ := collective.Of(in.Figures)
	if len(list) == 0 {
		return
	}
	var why []string
	r.Links, why = collective.Fit(list)
	for _, w := range why {
		r.warn("%s", w)
	}
	if len(in.Steps) == 0 && r.Throughput == nil {
		r.ThroughputWhy = NoTraining
	}
}

// NoTraining is why a benchmark of collectives has no throughput.
const NoTraining = "a benchmark of collectives trains nothing"
