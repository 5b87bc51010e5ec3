package scaling

import (
	"slices"
	"testing"

	"github.com/scalebench/scalebench/metrics/measure"
)

// Loads of a service are at threads or at a rate, never at both. Over one of them the
// others make no curve, and a name says nothing of what a load does not have.
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
