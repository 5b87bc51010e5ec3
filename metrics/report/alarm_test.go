package report

import (
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// apart matches the distance of the newest runs from the earlier ones, which another test
// checks.
var apart = regexp.MustCompile(`\d+(\.\d+)? standard errors`)

// 14 runs of about 100, then three of 80: 20 % less, which is worse for a rate and
// better for a time.
func TestAlarms(t *testing.T) {
	throughput, err := measure.Find(measure.Throughput)
	if err != nil {
		t.Fatal(err)
	}
	tokens := measure.Reported("tokens", "tokens/s", measure.Higher)
	wait := measure.Reported("wait", "s", measure.Lower)
	type change func(i int, o *scaling.Observation)
	newest := func(of func(o *scaling.Observation)) change {
		return func(i int, o *scaling.Observation) {
			if i >= 14 {
				of(o)
			}
		}
	}
	slow := func(name string, by float64) change {
		return newest(func(o *scaling.Observation) { o.Values[name] *= by })
	}
	const alarm = "Alarm: native, 2 workers: the newest 3 runs, from s/w2-r15-a1 on, are worse than the 14 before: %s (medians; the means are many standard errors apart)."
	for _, test := range []struct {
		name    string
		of      measure.Measure
		other   bool // not a training
		changes []change
		want    []string
	}{
		{"even", throughput, false, nil, nil},
		{"slower in the end", throughput, false, []change{slow(measure.Throughput, 0.8)}, []string{fmt.Sprintf(alarm, "throughput −20.0 %")}},
		{"faster in the end", throughput, false, []change{slow(measure.Throughput, 1.25)}, nil},
		{"slower in the end, on something else", throughput, false, []change{slow(measure.Throughput, 0.8),
			newest(func(o *scaling.Observation) { o.Fingerprint = fingerprint.Print{"cpu": "other"} })}, nil},
		{"in no order", throughput, false, []change{slow(measure.Throughput, 0.8), func(_ int, o *scaling.Observation) { o.BeganUnix = 0 }}, nil},
		{"made last, not named last", throughput, false, []change{slow(measure.Throughput, 0.8), func(i int, o *scaling.Observation) { o.BeganUnix = float64(2e9 - i) }}, nil},
		{"what runs report", tokens, false, []change{slow("tokens", 0.8)}, []string{fmt.Sprintf(alarm, "tokens −20.0 %")}},
		{"a time", wait, false, []change{slow("wait", 0.8)}, nil},
		{"a longer time", wait, false, []change{slow("wait", 1.25)}, []string{fmt.Sprintf(alarm, "wait +25.0 %")}},
		{"of no training", tokens, true, []change{slow("tokens", 0.8)}, []string{fmt.Sprintf(alarm, "tokens −20.0 %")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := ReportedStudy{Name: "s", Kind: measure.KindOf(map[bool]string{true: "collective"}[test.other])}
			for _, n := range []int{1, 2} {
				for i := range 17 {
					o := scaling.Observation{Run: fmt.Sprintf("s/w%d-r%d-a1", n, i+1), Study: "s", Point: fmt.Sprint("w", n), Repeat: i + 1, Framework: "native", Workers: n, Nodes: 1,
						BeganUnix: 1e9 + float64(i), Parameters: map[string]any{"workers": int64(n)}, Fingerprint: fingerprint.Print{"cpu": "one"},
						Values: map[string]float64{test.of.Name: []float64{100, 101, 99}[i%3]}}
					if test.of.Name != measure.Throughput {
						o.Reported = []measure.Measure{test.of}
					}
					if i >= 14 {
						o.Values[test.of.Name] = 100
					}
					for _, change := range test.changes {
						if n == 2 {
							change(i, &o)
						}
					}
					s.Observations = append(s.Observations, o)
				}
			}
			var noBase *scaling.NoBaseError
			if s.Curves, err = scaling.Analyse(s.Observations, scaling.Options{Mix: true}); err != nil && !errors.As(err, &noBase) {
				t.Fatal(err)
			}
			if test.of.Name != measure.Throughput {
				s.Frames = []ReportFrame{{ID: "reported", Curves: s.Curves, Measures: []measure.Measure{test.of}}}
			}
			var got []string
			for _, text := range s.alarms() {
				got = append(got, apart.ReplaceAllString(text, "many standard errors"))
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if len(test.want) > 0 && apart.ReplaceAllString(s.warnings()[0], "many standard errors") != test.want[0] {
				t.Errorf("first of the doubts is %q", s.warnings()[0])
			}
		})
	}
}
