package summary

import (
	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/measure"
)

// collectives fits the latency and the bandwidth of each collective to the measurements of a
// benchmark, and adds them to the result.
func (r *Outcome) collectives(places *measure.Places) {
	links, why := busbw.Fit(func(yield func(busbw.Measurement) bool) {
		for p := range places.All() {
			size, sized := p.At[measure.Bytes].(float64)
			inPlace, placed := p.At[measure.InPlace].(float64)
			seconds, timed := p.Values[measure.Time]
			op, _ := p.At[measure.Op].(string)
			if sized && placed && timed && !yield(busbw.Measurement{Op: op, Bytes: size, InPlace: inPlace != 0, Seconds: &seconds}) {
				return
			}
		}
	})
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
