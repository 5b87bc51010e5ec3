package advice

import (
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// At a price of 1/1.4, 150 samples/s count as 107, and 5 s as 7 s. The slowest run of the first is
// compared with the fastest of the second.
func TestOverlap(t *testing.T) {
	of := func(better measure.Direction, values ...float64) *scaling.Summary {
		return &scaling.Summary{Measure: measure.Measure{Better: better}, Values: values}
	}
	for _, test := range []struct {
		name string
		x, y *scaling.Summary
		want bool
	}{
		{"rates apart", of(measure.Higher, 150, 160), of(measure.Higher, 90, 107), false},
		{"rates overlap", of(measure.Higher, 150, 160), of(measure.Higher, 90, 108), true},
		{"times apart", of(measure.Lower, 4, 5), of(measure.Lower, 7.1, 9), false},
		{"times overlap", of(measure.Lower, 4, 5), of(measure.Lower, 6.9, 9), true},
		{"no run", of(measure.Higher), of(measure.Higher, 1), false},
	} {
		if got := overlap(test.x, test.y, 1/1.4); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
