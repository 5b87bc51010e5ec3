package store

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/busbw"
	"github.com/scalebench/scalebench/metrics/measure"
)

// The views, Show and Select have a row for each operation, size and placement that rank 0
// measured, and the fitted latency and bandwidth. Collecting again changes nothing. Values
// that a log does not state are NULL.
func TestIngestCollectives(t *testing.T) {
	s := openStore(t)
	run := aRun()
	run.Kind, run.Parameters = "collective", map[string]any{"workload.kind": "collective", "workload.backend": "tcp"}
	events := []metrics.Event{{Start: &metrics.Start{Format: 1, Unix: 1.7e9, Writer: "rank", WorldSize: 2, Ranks: 2}}}
	known := func(v float64) *float64 { return &v }
	// 2 µs and 1 GB/s, exactly.
	for i, size := range []float64{1000, 1_000_000, 100_000_000} {
		seconds := 2e-6 + size/1e9
		m := busbw.Measurement{Op: "all_reduce", Bytes: size, InPlace: true, Iterations: 20, Seconds: &seconds, P99: known(2 * seconds), BusBW: known(size / seconds)}
		if i == 0 {
			m.P99 = nil
		}
		for _, f := range m.Figures() {
			events = append(events, metrics.Event{Time: float64(i), Figure: &f})
		}
	}
	// An operation with a single size cannot be fitted.
	lone := busbw.Measurement{Op: "broadcast", Bytes: 8, Iterations: 20, Seconds: known(1e-6)}
	other := metrics.Figure{Name: "avg_busbw", Value: 1e9, Unit: "B/s"}
	events = append(events, metrics.Event{Time: 3, Figure: &lone.Figures()[0]}, metrics.Event{Time: 3, Figure: &other}, metrics.Event{Time: 4, Stop: &metrics.Stop{Status: metrics.StopDone}})
	text := ""
	for _, e := range events {
		text += lines(e)
	}
	file := rankFile(t, t.TempDir(), 0, 0, text)
	ingestRun(t, s, run, file)

	if diff := cmp.Diff([]string{
		"s/p2-r1-a1|2|all_reduce|1000|1|20|3|<nil>|333.33",
		"s/p2-r1-a1|2|all_reduce|1000000|1|20|1002|2004|998",
		"s/p2-r1-a1|2|all_reduce|100000000|1|20|100002|200004|999.98",
		"s/p2-r1-a1|2|broadcast|8|0|20|1|<nil>|<nil>",
	}, table(t, s, `SELECT run, workers, op, bytes, in_place, iterations, round(seconds * 1e6, 3), round(seconds_p99 * 1e6, 3), round(busbw / 1e6, 2)
		FROM collectives ORDER BY op, bytes`)); diff != "" {
		t.Error(diff)
	}
	if got := value(t, s, "SELECT op, in_place, round(alpha * 1e6, 6), round(beta / 1e9, 6), sizes, abs(round(low, 6)), abs(round(high, 6)) FROM links"); got != "all_reduce|1|2|1|3|0|0" {
		t.Errorf("link %s", got)
	}
	if got := value(t, s, "SELECT kind, throughput, throughput_why FROM runs"); got != "collective|<nil>|<nil>" {
		t.Errorf("throughput of what trains nothing: %s", got)
	}
	d, err := s.Show(t.Context(), "s/p2-r1-a1")
	if err != nil {
		t.Fatal(err)
	}
	byKey := cmpopts.SortSlices(func(a, b measure.Place) bool { return measure.Key(a.At) < measure.Key(b.At) })
	near := cmpopts.EquateApprox(1e-9, 1e-12)
	want := []measure.Place{{At: map[string]any{"op": "all_reduce", "in_place": 1.0}, Values: map[string]float64{"latency": 2e-6, "bandwidth": 1e9, "fit_low": 0, "fit_high": 0, "fit_sizes": 3}},
		{At: map[string]any{"op": "broadcast", "in_place": 0.0, "bytes": 8.0}, Values: map[string]float64{"time": 1e-6}},
		{At: map[string]any{"op": "all_reduce", "in_place": 1.0, "bytes": 1e3}, Values: map[string]float64{"time": 3e-6, "busbw": 1e3 / 3e-6}},
		{At: map[string]any{"op": "all_reduce", "in_place": 1.0, "bytes": 1e6}, Values: map[string]float64{"time": 1.002e-3, "time_p99": 2.004e-3, "busbw": 1e6 / 1.002e-3}},
		{At: map[string]any{"op": "all_reduce", "in_place": 1.0, "bytes": 1e8}, Values: map[string]float64{"time": 0.100002, "time_p99": 0.200004, "busbw": 1e8 / 0.100002}}}
	if diff := cmp.Diff(want, d.Result.Places.List(), byKey, near); diff != "" {
		t.Errorf("shown (-want +got):\n%s", diff)
	}
	for _, f := range []Filter{{Study: "s"}, {Kind: "collective"}} {
		runs, _, err := s.Select(t.Context(), f)
		if err != nil || len(runs) != 1 || runs[0].Values["avg_busbw"] != 1e9 {
			t.Fatalf("%+v: %+v, %v", f, runs, err)
		}
		if diff := cmp.Diff(want, runs[0].Places, byKey, near); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", f, diff)
		}
	}
	// In a list the run has a row for each place; measures at different places have no
	// such list.
	busbw, _ := measure.Find("busbw")
	latency, _ := measure.Find("latency")
	rows, err := s.Runs(t.Context(), Filter{}, measure.Measure{Name: "avg_busbw", Unit: "B/s"}, busbw)
	if err != nil || len(rows) != 4 {
		t.Fatalf("%+v, %v", rows, err)
	}
	for _, r := range rows {
		if *r.Values[0] != 1e9 || (r.At["op"] == "broadcast") != (r.Values[1] == nil) || r.At["bytes"] == 1e6 && math.Abs(*r.Values[1]/(1e6/1.002e-3)-1) > 1e-9 {
			t.Errorf("%+v", r)
		}
	}
	if _, err := s.Runs(t.Context(), Filter{}, busbw, latency); !errors.Is(err, ErrPlaces) {
		t.Errorf("latency beside bus bandwidths: %v", err)
	}
	points, _, err := s.History(t.Context(), Filter{Where: "workers = 2"}, busbw)
	if err != nil || len(points) != 3 || len(points[0].Samples) != 1 {
		t.Errorf("history %+v, %v", points, err)
	}
	var where *WhereError
	if _, err := s.Runs(t.Context(), Filter{Where: "busbw > 1"}); !errors.As(err, &where) {
		t.Errorf("one of many bandwidths as a condition: %v", err)
	}
	if got := table(t, s, `SELECT measure, round(value), at FROM "values" WHERE measure IN ('avg_busbw', 'latency') ORDER BY measure`); !slices.Equal(got, []string{"avg_busbw|1e+09|<nil>", `latency|0|{"in_place":1,"op":"all_reduce"}`}) {
		t.Errorf("values %q", got)
	}
	before := dump(t, s)
	if r := ingestRun(t, s, run, file); r.Changed {
		t.Error("the same again changed something")
	}
	if _, err := s.write.Exec("UPDATE result SET algorithm = 1; DELETE FROM value WHERE place <> 0"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Recompute(t.Context()); err != nil || n != 1 {
		t.Errorf("%d computed again, %v", n, err)
	}
	if after := dump(t, s); after != before {
		t.Error(firstDifference(before, after))
	}
}
