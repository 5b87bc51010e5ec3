package sensitivity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

func TestWhyOpen(t *testing.T) {
	p := 0.4
	at := map[string]scaling.Value{"resources.cpus_per_worker": {Number: 4}}
	for _, test := range []struct {
		name    string
		factors int
		next    []Allocation
		want    string
	}{
		{"nothing varied", 0, nil, "no run has less of anything with all else unchanged"},
		{"nothing to measure", 1, nil, "the runs do not decide whether less is enough"},
		{"not measured together", 1, []Allocation{{At: at}}, "amounts that are enough one by one were not measured together"},
		{"undecided", 1, []Allocation{{At: at, Verdict: Undecided, Keeps: &p}}, "the runs do not decide: cpus_per_worker=4 is 40 % likely to be enough"},
		{"without an interval", 1, []Allocation{{At: at, Verdict: Undecided}}, "the runs do not decide"},
	} {
		s := search{Answer: &Answer{Factors: make([]Factor, test.factors), Next: test.next}, keys: []string{"resources.cpus_per_worker"}}
		if got := s.whyOpen(); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// The lower ends are compared; that of the reference is 1.
func TestFaster(t *testing.T) {
	of := func(low float64) *Allocation {
		return &Allocation{Ratio: &scaling.Estimate{Value: 2 * low, Interval: &scaling.Interval{Low: low, High: 3 * low}}}
	}
	for _, test := range []struct {
		x, y *Allocation
		want bool
	}{
		{of(1.02), of(1.01), true}, {of(1.01), of(1.02), false}, {of(1.01), of(1.01), false},
		{of(1.01), &Allocation{}, true}, {of(0.99), &Allocation{}, false}, {&Allocation{}, &Allocation{}, false},
	} {
		if got := faster(test.x, test.y); got != test.want {
			t.Errorf("%+v, %+v: %v", test.x.Ratio, test.y.Ratio, got)
		}
	}
}

// Runs that are equal to the last digit, and warnings that can change an answer, make it
// provisional; equal runs give no probability.
func TestSpecInDoubt(t *testing.T) {
	const key = "resources.cpus_per_worker"
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		scatter  float64
		warnings []string
		because  string // "": none
		odds     bool
	}{
		{"runs that differ", 0.001, nil, "", true},
		{"equal runs", 0, nil, "all runs with cpus_per_worker=2 and with cpus_per_worker=4 have exactly the same throughput", false},
		{"unread runs", 0.001, []string{"1 of 12 runs could not be read: point.json is damaged"}, "1 of 12 runs could not be read", true},
		{"a warning of little weight", 0.001, []string{"throughput is stated by a log, not measured here"}, "", true},
	} {
		var obs []scaling.Observation
		for _, cpus := range []int64{2, 4} { // 2 keep 98 %
			for k := range 6 {
				obs = append(obs, scaling.Observation{Run: fmt.Sprintf("c%d-%d", cpus, k), Study: "s", Point: fmt.Sprint(cpus), Repeat: k + 1, Framework: "native", Workers: 1,
					Parameters: map[string]any{key: cpus}, Values: map[string]float64{measure.Throughput: (96 + float64(cpus)) * (1 + test.scatter*float64(k))}})
			}
		}
		list, err := Analyse(obs, Options{Measure: throughput, Factors: []string{key}, Warnings: test.warnings})
		if err != nil || len(list) != 1 {
			t.Fatal(err, len(list))
		}
		a := list[0]
		if a.Spec == nil || a.Spec.At[key].Number != 2 {
			t.Fatalf("%s: %+v, %s", test.name, a.Spec, a.Why)
		}
		if a.Provisional != (test.because != "") || !strings.Contains(strings.Join(a.Because, "; "), test.because) || test.because == "" && len(a.Because) > 0 || (a.Spec.Keeps != nil) != test.odds {
			t.Errorf("%s: provisional %v because %v, keeps %v", test.name, a.Provisional, a.Because, a.Spec.Keeps)
		}
	}
}
