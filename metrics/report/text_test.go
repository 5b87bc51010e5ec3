package report

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/scaling/advice"
)

// curves returns curves with one run at each of 1, 2 and 4 workers.
func curves(t *testing.T, m measure.Measure, values ...float64) []scaling.Curve {
	t.Helper()
	var obs []scaling.Observation
	for i, v := range values {
		n := 1 << i
		obs = append(obs, scaling.Observation{Run: fmt.Sprint(n), Study: "s", Point: fmt.Sprint(n), Framework: "command", Workers: n,
			Parameters: map[string]any{"workers": int64(n)}, Values: map[string]float64{m.Name: v}, Reported: []measure.Measure{m}})
	}
	list, err := scaling.Analyse(obs, scaling.Options{})
	var noBase *scaling.NoBaseError // the error for a throughput if no run has one
	if err != nil && !errors.As(err, &noBase) {
		t.Fatal(err)
	}
	return list
}

// The best value depends on the measure's direction; without a direction, none is best.
func TestBestOf(t *testing.T) {
	for _, test := range []struct {
		better     measure.Direction
		name, unit string
		want       string
	}{
		{measure.Higher, "tokens", "tokens/s", "Highest tokens with 2 workers: 300 tokens/s (one run, so no interval)."},
		{measure.Lower, "loss", "", "Lowest loss with 1 worker: 100 (one run, so no interval)."},
		{measure.Lower, "wait", "s", "Lowest wait with 1 worker: 100 s (one run, so no interval)."},
		{measure.Neither, "tokens", "tokens/s", ""},
	} {
		m := measure.Reported(test.name, test.unit, test.better)
		if got := bestOf(m, curves(t, m, 100, 300, 200)); got != test.want {
			t.Errorf("%s, better %q: %q, want %q", test.name, test.better, got, test.want)
		}
	}
	other := measure.Reported("other", "", measure.Higher)
	if got := bestOf(other, curves(t, measure.Reported("tokens", "", measure.Higher), 1)); got != "" {
		t.Errorf("of what no run has: %q", got)
	}
	placed := measure.Measure{Name: "tokens", Better: measure.Higher, At: "load", Axis: "load"}
	if got := bestOf(placed, curves(t, placed, 1)); got != "" {
		t.Errorf("of what a run has many values of: %q", got)
	}
	placed.Capacity, placed.Title, placed.Unit = true, "answers", "requests/s"
	if got := bestOf(placed, curves(t, placed, 100, 300)); !strings.HasPrefix(got, "Highest answers with ") || !strings.Contains(got, ": 300 requests/s (") {
		t.Errorf("of a capacity: %q", got)
	}
}

// A training that reports its own figures and no steps leads with the best of them, not
// with what is missing.
func TestAnswerOfOwnFigures(t *testing.T) {
	m := measure.Reported("tokens", "tokens/s", measure.Higher)
	list := curves(t, m, 100, 300)
	s := &ReportedStudy{Kind: measure.KindOf(""), Curves: list, Frames: []ReportFrame{{Curves: list, Measures: []measure.Measure{m}}}}
	want := Answer{Lead: "Highest tokens with 2 workers: 300 tokens/s (one run, so no interval).",
		Reasons: []string{"No run reports its steps or reaches a target, so there is no advice on the number of workers."}}
	if diff := cmp.Diff(want, s.answer()); diff != "" {
		t.Error(diff)
	}
	// advise compares workers by the only figure, and the page says the same.
	s.Advised = []*advice.Advice{{OnlyFigure: true, Reason: [2]string{"Use 1 worker."}}}
	if got := s.answer(); got.Lead != "Use 1 worker." || len(got.Reasons) != 1 || got.Reasons[0] != want.Lead {
		t.Errorf("%+v", got)
	}
	rate := curves(t, measure.Measure{Name: measure.Throughput}, 1)
	if !trained(rate) || trained(list) {
		t.Errorf("trained: with a throughput %v, without %v", trained(rate), trained(list))
	}
}

// Nothing can be plotted along an axis with a single number.
func TestOnlyPlace(t *testing.T) {
	m := measure.Reported("tokens", "", measure.Higher)
	if got := onlyPlace(curves(t, m, 1)); got != "1 worker" {
		t.Errorf("one place: %q", got)
	}
	if got := onlyPlace(curves(t, m, 1, 2)); got != "" {
		t.Errorf("two places: %q", got)
	}
	if got := onlyPlace(nil); got != "" {
		t.Errorf("none: %q", got)
	}
}

// A median and its interval share a unit.
func TestSpread(t *testing.T) {
	e := &scaling.Estimate{Value: 119, Interval: &scaling.Interval{Low: 110, High: 121}}
	if got, want := spread(e, number.Seconds, "", 6), "1m59s [1m50s, 2m01s] (median of 6 runs, with its interval)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rate := &scaling.Estimate{Value: 1.38e6, Interval: &scaling.Interval{Low: 9e5, High: 3.92e6}}
	if got, want := spread(rate, number.Significant, "items/s", 6), "1.38M items/s [900k, 3.92M] (median of 6 runs, with its interval)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Interval = nil
	if got, want := spread(e, number.Seconds, "", 2), "119 s (median of 2 runs, too few for an interval)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
