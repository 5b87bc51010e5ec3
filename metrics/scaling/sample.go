package scaling

import (
	"github.com/scalebench/scalebench/metrics/measure"
)

// sampleOf is what a sample is, as all runs say; "" where they do not.
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

// SampleOf is sampleOf.
func SampleOf(obs []Observation) string {
	runs := make([]*Observation, len(obs))
	for i := range obs {
		runs[i] = &obs[i]
	}
	return sampleOf(runs)
}

// RateUnit is the unit of rates of samples in all of the curves: "images/s" where all
// say that a sample is an image, "samples/s" where they do not say the same.
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
