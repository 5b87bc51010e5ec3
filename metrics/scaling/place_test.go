package scaling

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// A load of a service has a number of threads or a rate, never both. A curve over one of them
// leaves out loads with the other, and names of series omit coordinates that a load does not have.
func TestPlacesWithoutACoordinate(t *testing.T) {
	place := func(value float64, at map[string]any) measure.Place {
		at[measure.Batch] = 1.0
		return measure.Place{At: at, Values: map[string]float64{measure.LatencyP50: value}}
	}
	obs := []Observation{{Run: "r", Study: "s", Point: "p", Kind: "serve", Framework: "native", Workers: 1, Places: []measure.Place{
		place(0.1, map[string]any{measure.Threads: 1.0}), place(0.2, map[string]any{measure.Threads: 2.0}),
		place(0.3, map[string]any{measure.Rate: 50.0}),
	}}}
	names := func(axis string) (list []string) {
		m, err := measure.Find(measure.LatencyP50)
		if err != nil {
			t.Fatal(err)
		}
		curves, err := Analyse(obs, Options{Measure: m, Axis: axis})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range curves {
			list = append(list, c.Series)
		}
		return list
	}
	for axis, want := range map[string][]string{
		"":              {"native rate=50", "native threads=1", "native threads=2"},
		measure.Threads: {"native"},
		measure.Rate:    {"native"},
	} {
		if got := names(axis); !slices.Equal(got, want) {
			t.Errorf("over %q: %q, want %q", axis, got, want)
		}
	}
}

// Of twelve runs that search for the largest rate within a limit, some find none. The interval for
// twelve runs is from the 3rd to the 10th. If three values are missing, which may be the lowest,
// the lower end and the median are unknown. With two, the interval is valid.
func TestRunsWithoutARate(t *testing.T) {
	of := func(missing int) *Summary {
		var obs []Observation
		for i := range 12 {
			values := map[string]float64{measure.SearchProbes: 9}
			if i >= missing {
				values[measure.RateWithinLimit] = float64(100 + i)
			}
			obs = append(obs, Observation{Run: fmt.Sprint(i), Study: "s", Point: "p", Kind: "serve", Framework: "native", Workers: 1,
				Places: []measure.Place{{At: map[string]any{measure.Batch: 1.0}, Values: values}}})
		}
		m, err := measure.Find(measure.RateWithinLimit)
		if err != nil {
			t.Fatal(err)
		}
		curves, err := Analyse(obs, Options{Measure: m})
		var baseless *NoBaseError
		if err != nil && !errors.As(err, &baseless) || len(curves) != 1 || len(curves[0].Points) != 1 {
			t.Fatalf("%+v %v", curves, err)
		}
		return curves[0].Points[0].Of(m.Name)
	}
	if s := of(3); s.Median != nil || s.Why != "3 of 12 runs lack it, too many to leave out: they may be the slow ones" {
		t.Errorf("3 missing: %+v %q", s.Median, s.Why)
	}
	// The ten values start at 102: if both missing ones are lower, the 3rd of twelve is the first.
	if e := of(2).Median; e.Interval == nil || e.Interval.Low != 102 || e.Interval.High != 111 {
		t.Errorf("2 missing: %+v %+v", e, e.Interval)
	}
}
