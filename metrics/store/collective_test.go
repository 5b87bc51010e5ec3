package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/collective"
)

// What rank 0 measures of collectives is a row an operation, size and place, with
// the latency and bandwidth that follow, in the views, in Show and in Collectives;
// collecting the same again changes nothing, and what a log does not state is NULL.
func TestIngestCollectives(t *testing.T) {
	s := openStore(t)
	run := aRun()
	run.Kind, run.Parameters = "collective", map[string]any{"workload.kind": "collective", "workload.backend": "tcp"}
	events := []metrics.Event{{Start: &metrics.Start{Format: 1, Unix: 1.7e9, Writer: "rank", WorldSize: 2, Ranks: 2}}}
	known := func(v float64) *float64 { return &v }
	// 2 µs and 1 GB/s, exactly.
	for i, size := range []float64{1000, 1_000_000, 100_000_000} {
		seconds := 2e-6 + size/1e9
		m := collective.Measurement{Op: "all_reduce", Bytes: size, InPlace: true, Iterations: 20, Seconds: &seconds, P99: known(2 * seconds), BusBW: known(size / seconds)}
		if i == 0 {
			m.P99 = nil
		}
		for _, f := range m.Figures() {
			events = append(events, metrics.Event{Time: float64(i), Figure: &f})
		}
	}
	// An operation at one size has no fit.
	lone := collective.Measurement{Op: "broadcast", Bytes: 8, Iterations: 20, Seconds: known(1e-6)}
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
	if len(d.Result.Links) != 1 || d.Result.Links[0].Op != "all_reduce" || d.Result.Links[0].Sizes != 3 {
		t.Errorf("links %+v", d.Result.Links)
	}
	for _, f := range []Filter{{Study: "s"}, {Kind: "collective"}} {
		runs, _, err := s.Collectives(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) != 1 || len(runs[0].Measurements) != 4 || len(runs[0].Links) != 1 || runs[0].Backend() != "tcp" || runs[0].Workers != 2 {
			t.Errorf("%+v: %+v", f, runs)
		}
	}
	if runs, _, err := s.Collectives(t.Context(), Filter{Kind: "train"}); err != nil || runs != nil {
		t.Errorf("trainings measured %+v, %v", runs, err)
	}
	before := dump(t, s)
	if r := ingestRun(t, s, run, file); r.Changed {
		t.Error("the same again changed something")
	}
	if _, err := s.write.Exec("UPDATE result SET algorithm = 1; DELETE FROM link"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Recompute(t.Context()); err != nil || n != 1 {
		t.Errorf("%d computed again, %v", n, err)
	}
	if after := dump(t, s); after != before {
		t.Error(firstDifference(before, after))
	}
}
