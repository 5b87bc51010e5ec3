package summary

import (
	"github.com/scalebench/scalebench/metrics/collective"
	"github.com/scalebench/scalebench/metrics/measure"
)

// collectives fits latency and bandwidth to what a benchmark of collectives
// measured.
func (r *Outcome) collectives(in Input, places *measure.Places) {
	list, _ := collective.Of(in.Figures)
	if len(list) == 0 {
		return
	}
	links, why := collective.Fit(list)
	for _, l := range links {
		at := l.At()
		for name, value := range map[string]float64{measure.Latency: l.Alpha, measure.Bandwidth: l.Beta, measure.FitLow: l.Low, measure.FitHigh: l.High, measure.FitSizes: float64(l.Sizes)} {
			places.Add(at, name, value)
		}
	}
	for _, w := range why {
		r.warn("%s", w)
	}
}
