package advice

import (
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/scaling"
)

// Ranks that had too few CPUs make the answer provisional, and it says why.
func TestDecisiveWarnings(t *testing.T) {
	crowded := "4 ranks on n01 compute with 4 threads on 2 CPUs"
	crowd := func(o *scaling.Observation) {
		if o.Workers == 4 {
			o.Warnings = []string{crowded}
		}
	}
	if a := (series{counts: octaves, runs: 6, x: linear}).advise(t, Options{}); a.Provisional {
		t.Fatalf("without the warning: %s", a.Sentences())
	}
	a := series{counts: octaves, runs: 6, x: linear, change: crowd}.advise(t, Options{})
	if !a.Provisional || !strings.Contains(a.Sentences(), "Provisional because 4 workers: 6 of 6 runs: "+crowded+".") {
		t.Errorf("provisional %t: %s", a.Provisional, a.Sentences())
	}
	for _, o := range []Options{{Deadline: 1e6, Samples: 1000}, {MinEfficiency: 0.5}} {
		if a := (series{counts: octaves, runs: 6, x: linear, change: crowd}).advise(t, o); !a.Provisional || !strings.Contains(a.Sentences(), crowded) {
			t.Errorf("%+v: %s", o, a.Sentences())
		}
	}
}
