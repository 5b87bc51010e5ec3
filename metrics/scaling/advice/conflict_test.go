package advice

import (
	"strings"
	"testing"
)

// At 1000·n/(1 + 0.1·log₂ n) samples/s, 3.6e6 samples take 3600, 1980, 1080, 585 and 315 s on 1, 2,
// 4, 8 and 16 workers, with 10 s of initialisation, and cost n times as much: 1.003, 1.106, 1.211,
// 1.322 and 1.444 EUR an hour's worth.
func TestConflictingLimits(t *testing.T) {
	for _, test := range []struct {
		name    string
		o       Options
		has     []string
		without string
	}{
		{"a deadline and a budget", Options{Deadline: 700, Budget: 1.15}, []string{"; 7 workers do within 11m40s: ", "; 2 workers do for at most 1.15 EUR: ", "; relax one of the limits."}, "fastest"},
		{"two of three are met by one count", Options{Deadline: 1200, Budget: 1.3, MinEfficiency: 0.95}, []string{"; 4 workers do within 20m00s and for at most 1.30 EUR: ", "; 1 worker does at an efficiency of 95 % or more: "}, "fastest"},
		{"no count costs so little", Options{Deadline: 700, Budget: 0.5}, []string{"; the cheapest is 1 worker, under 1 % likely to: "}, "relax"},
		{"no count is so fast", Options{Deadline: 20, Budget: 5}, []string{"; the fastest is 64 workers, under 1 % likely to: "}, "relax"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.o.Samples, test.o.Cost, test.o.Currency = 3.6e6, perWorkerHour, "EUR"
			a := series{counts: octaves, runs: 6, x: tree}.advise(t, test.o)
			if a.Workers != nil {
				t.Fatalf("%d workers, %q", *a.Workers, a.Reason[0])
			}
			for _, part := range test.has {
				if !strings.Contains(a.Reason[0], part) {
					t.Errorf("no %q in %q", part, a.Reason[0])
				}
			}
			if strings.Contains(a.Reason[0], test.without) {
				t.Errorf("%q in %q", test.without, a.Reason[0])
			}
		})
	}
}
