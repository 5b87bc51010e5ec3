package summary

import (
	"github.com/scalebench/scalebench/metrics/collective"
)

// collectives fits what a benchmark of collectives measured.
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
}
