package store

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// said ingests a finished run of one rank that only reports figures.
func said(t *testing.T, s *Store, kind, point string, workers int, figures ...metrics.Figure) {
	t.Helper()
	run := aRun()
	run.Kind, run.Point, run.Workers, run.Parameters = kind, point, workers, map[string]any{"workload.requests": int64(100)}
	run.ID = "s/" + point + "-r1-a1"
	text := lines(start(0, 1, 0))
	for _, f := range figures {
		text += lines(metrics.Event{Figure: &f})
	}
	ingestRun(t, s, run, rankFile(t, t.TempDir(), 0, 0, text+lines(metrics.Event{Time: 1, Stop: &metrics.Stop{Status: metrics.StopDone}})))
}

// A new measure needs only its declaration: it is then stored, in the view, found by its
// name, and has a curve.
func TestOneLineDeclaresAMeasure(t *testing.T) {
	t.Cleanup(measure.Declare("serve", measure.Measure{Name: "p99_latency", Title: "p99 latency", Unit: "s", Better: measure.Lower, Show: measure.Seconds}))
	s := openStore(t)
	said(t, s, "serve", "one", 1, metrics.Figure{Name: "p99_latency", Unit: "s", Value: 0.5})
	said(t, s, "serve", "two", 2, metrics.Figure{Name: "p99_latency", Unit: "s", Value: 0.4})
	if diff := cmp.Diff([]string{"1|p99_latency|s|lower|0.5|<nil>|<nil>|1", "2|p99_latency|s|lower|0.4|<nil>|<nil>|1"},
		table(t, s, `SELECT workers, measure, unit, better, value, reached, why, counts FROM "values" ORDER BY workers`)); diff != "" {
		t.Error(diff)
	}
	obs, _, err := s.Observations(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	curves, err := scaling.Analyse(obs, scaling.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Half a second over 0.4 s.
	if g := curves[0].Points[1].Of("p99_latency").Gain(); g == nil || g.Value != 1.25 {
		t.Errorf("%+v", g)
	}
	if points, _, err := s.History(t.Context(), Filter{}, find(t, "p99_latency")); err != nil || len(points) != 2 {
		t.Errorf("%+v, %v", points, err)
	}
	if rows, err := s.Runs(t.Context(), Filter{Where: "p99_latency < 0.45"}, find(t, "p99_latency")); err != nil || len(rows) != 1 || *rows[0].Values[0] != 0.4 {
		t.Errorf("%+v, %v", rows, err)
	}
}

// A value that a program reports becomes a measure of its name. Values in two units are two
// measures, which curves, lists and conditions keep apart.
func TestReportedMeasures(t *testing.T) {
	s := openStore(t)
	said(t, s, "train", "one", 1, metrics.Figure{Name: "tokens", Unit: "tokens/s", Value: 7})
	said(t, s, "train", "two", 2, metrics.Figure{Name: "tokens", Unit: "1/s", Value: 9}, metrics.Figure{Name: "loss", Value: 3})
	said(t, s, "train", "three", 4, metrics.Figure{Name: "loss", Value: 3}, metrics.Figure{Name: "loss", Value: 4})
	reported, err := s.Reported(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range reported {
		names = append(names, m.Name+" in "+m.Unit)
	}
	if diff := cmp.Diff([]string{"loss in ", "tokens (1/s) in 1/s", "tokens (tokens/s) in tokens/s"}, names); diff != "" {
		t.Error(diff)
	}
	obs, _, err := s.Observations(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	var values []map[string]float64
	for _, o := range obs {
		values = append(values, o.Values)
	}
	if diff := cmp.Diff([]map[string]float64{{"tokens (tokens/s)": 7}, {"tokens (1/s)": 9, "loss": 3}, {}}, values); diff != "" {
		t.Error(diff)
	}
	if why := obs[2].Why["loss"]; why == "" {
		t.Error("stated twice, and no reason")
	}
	if points, _, err := s.History(t.Context(), Filter{}, reported[2]); err != nil || len(points) != 1 || points[0].Samples[0].Value != 7 {
		t.Errorf("%+v, %v", points, err)
	}
	if rows, err := s.Runs(t.Context(), Filter{Where: `"tokens (tokens/s)" = 7 AND loss IS NULL`}); err != nil || runNames(rows) != "one" {
		t.Errorf("%s, %v", runNames(rows), err)
	}
}

// A missed target differs from an unknown time, and is not stored as an infinity, which
// JSON cannot represent.
func TestMissedTargets(t *testing.T) {
	s := openStore(t)
	measured(t, s, "s", "one", 1, 1, 1, 10, nil) // reaches 0.5 at 21 s, and never 1
	want := []string{"to_0.5|21|1", "to_1|<nil>|0"}
	if diff := cmp.Diff(want, table(t, s, `SELECT measure, value, reached FROM "values" WHERE reached IS NOT NULL ORDER BY measure`)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"0.5|21|1", "1|<nil>|0"}, table(t, s, "SELECT target, seconds, reached FROM time_to_accuracy ORDER BY target")); diff != "" {
		t.Error(diff)
	}
	if text := value(t, s, `SELECT json_group_array(value) FROM "values"`); !json.Valid([]byte(text)) {
		t.Error(text)
	}
}

// The view curves has a speedup only for measures whose ratio to a base is one: 12/4 tokens/s, and 8 s/2 s, but no
// share of errors, although lower is better.
func TestCurvesViewSpeedups(t *testing.T) {
	s := openStore(t)
	for workers, v := range map[int][3]float64{1: {4, 8, 0.02}, 2: {12, 2, 0.01}} {
		said(t, s, "train", fmt.Sprint("w", workers), workers, metrics.Figure{Name: "tokens", Unit: "tokens/s", Better: "higher", Value: v[0]},
			metrics.Figure{Name: "took", Unit: "s", Better: "lower", Value: v[1]}, metrics.Figure{Name: "errors", Better: "lower", Value: v[2]})
	}
	if err := s.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"errors|<nil>", "tokens|3", "took|4"}, table(t, s, "SELECT measure, speedup FROM curves WHERE at = 2 AND measure IN ('errors', 'took', 'tokens') ORDER BY measure")); diff != "" {
		t.Error(diff)
	}
}
