package sequential

import (
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// Of a study without a target, no run tells when it would be done: a deadline is not measured any further. With
// --samples it is: 1e6 samples at 150/s take 6,667 s.
func TestDeadlineWithoutTarget(t *testing.T) {
	runs := map[int][]float64{1: {100, 101, 99, 100.5}, 2: {150, 151, 149, 150.5}}
	for name, c := range map[string]struct {
		wish advice.Options
		ends bool
	}{
		"deadline":       {advice.Options{Deadline: 60}, true},
		"not collected":  {advice.Options{Deadline: 60, Target: &measure.Target{Of: measure.OfAccuracy, Value: 0.8, Better: measure.Higher}}, true},
		"with samples":   {advice.Options{Deadline: 7000, Samples: 1e6}, false},
		"another":        {advice.Options{MinEfficiency: 0.7}, false},
		"without limits": {advice.Options{}, false},
	} {
		l := lookAt(t, question(t, c.wish), runs)
		if ends := l.Caveat != ""; ends != c.ends || c.ends && (l.Decided || len(l.Open) > 0) {
			t.Errorf("%s: decided %v, open %v, caveat %q", name, l.Decided, l.Open, l.Caveat)
		}
	}
}
