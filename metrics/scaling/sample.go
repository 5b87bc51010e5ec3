package scaling

import (
	"github.com/scalebench/scalebench/metrics/measure"
)

// sampleOf returns what a sample is ("image", for example) if all runs agree; "" otherwise.
func sampleOf(runs []*Observation) string {
	said := ""
	for i, o := range runs {
		word, _ := o.Parameters[measure.SampleKey].(string)
		if i > 0 && word != said {
			return ""
		}
		said = word
	}
	return said
}

// sampleOfAll is like sampleOf.
func sampleOfAll(obs []Observation) string {
	runs := make([]*Observation, len(obs))
	for i := range obs {
		runs[i] = &obs[i]
	}
	return sampleOf(runs)
}

// RateUnit returns the unit of the curves' rates of samples: "images/s" if all declare that a
// sample is an image, "samples/s" if they differ.
func RateUnit(curves ...Curve) string {
	said := ""
	for i, c := range curves {
		if i > 0 && c.Sample != said {
			return measure.RateUnit("")
		}
		said = c.Sample
	}
	return measure.RateUnit(said)
}
