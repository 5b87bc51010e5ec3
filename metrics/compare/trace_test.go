package compare

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/fingerprint"
)

// runs returns samples at ascending times, starting at from.
func runs(from int, print int, values ...float64) []Sample {
	var list []Sample
	for i, v := range values {
		list = append(list, Sample{Run: int64(from + i), Unix: float64(from + i), Value: v, Print: print})
	}
	return list
}

// summary holds the fields that the tests compare: kind, first run, number of runs, median.
type summary struct {
	Kind    string
	First   int64
	Runs    int
	Median  float64
	Before  int64 // 0: none
	Changed string
}

func summaries(list []Segment) []summary {
	var out []summary
	for _, s := range list {
		x := summary{Kind: s.Kind, First: s.Samples[0].Run, Runs: len(s.Samples), Median: s.Median}
		if s.Before != nil {
			x.Before = s.Before.Run
		}
		for _, d := range s.Changed {
			x.Changed += d.String()
		}
		out = append(out, x)
	}
	return out
}

var ten = []float64{100, 101, 99, 100, 101, 99, 100, 101, 99, 100}

func times(k float64) []float64 {
	xs := slices.Clone(ten)
	for i := range xs {
		xs[i] *= k
	}
	return xs
}

var prints = []fingerprint.Print{
	{fingerprint.CPU: "Xeon", fingerprint.Driver: "1"},
	{fingerprint.CPU: "Xeon", fingerprint.Driver: "2"},
	{fingerprint.CPU: "Xeon"}, // the driver was not recorded
}

func TestTrace(t *testing.T) {
	for _, test := range []struct {
		name    string
		samples []Sample
		want    []summary
	}{
		{"nothing", nil, nil},
		{"nothing changes", runs(1, 0, ten...), []summary{{Start, 1, 10, 100, 0, ""}}},
		{"a change, given out of order", slices.Concat(runs(11, 0, times(0.9)...), runs(1, 0, ten...)),
			[]summary{{Start, 1, 10, 100, 0, ""}, {Change, 11, 10, 90, 10, ""}}},
		{"another driver is not a change point, however small", slices.Concat(runs(1, 0, ten...), runs(11, 1, ten...)),
			[]summary{{Start, 1, 10, 100, 0, ""}, {Ground, 11, 10, 100, 10, "driver 1 → 2"}}},
		// Odd runs use one driver, even runs another. Alternating between 100 and 90 is not a
		// change, because the values of each driver stay the same.
		{"alternating", func() []Sample {
			var list []Sample
			for i := range 20 {
				list = append(list, runs(i+1, i%2, times(1 - 0.1*float64(i%2))[i/2])...)
			}
			return list
		}(), []summary{{Start, 1, 10, 100, 0, ""}, {Ground, 2, 10, 90, 1, "driver 1 → 2"}}},
		{"an unknown driver joins the latest", slices.Concat(runs(1, 0, ten...), runs(11, 1, times(0.5)...), runs(21, 2, times(0.5)...)),
			[]summary{{Start, 1, 10, 100, 0, ""}, {Ground, 11, 20, 50, 10, "driver 1 → 2"}}},
	} {
		if diff := cmp.Diff(test.want, summaries(Trace(test.samples, prints))); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

func TestSegmentFigures(t *testing.T) {
	list := Trace(slices.Concat(runs(1, 0, ten...), runs(11, 0, times(0.9)...)), prints)
	if len(list) != 2 {
		t.Fatal(list)
	}
	s, k := list[1], 0.9
	if s.Ratio == nil || *s.Ratio != k || s.P == nil || *s.P >= 0.001 || s.Low != k*99 || s.High != k*101 || list[0].Ratio != nil || list[0].P != nil {
		t.Errorf("%+v", s)
	}
	// A median of 0 has no ratio, and too few values have no p-value.
	list = Trace(slices.Concat(runs(1, 0, 0), runs(2, 1, 5)), prints)
	if s := list[1]; s.Ratio != nil || s.P != nil || s.Low != 5 || s.High != 5 {
		t.Errorf("%+v", s)
	}
}
