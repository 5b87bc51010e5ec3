package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/fingerprint"
	"github.com/scalebench/scalebench/metrics/scaling"
)

// historyRun returns run number i of a small history, with batches 32, 64, 128, 256 in turn.
func historyRun(i int) metrics.Run {
	r := aRun()
	r.Study = []string{"alpha", "beta"}[i%2]
	r.Point = fmt.Sprintf("p%d", i)
	r.ID = fmt.Sprintf("%s/%s-r1-a1", r.Study, r.Point)
	r.Workers = 1 << (i % 3)
	r.CreatedUnix = 1000 + float64(i)
	r.Parameters = map[string]any{"workload.batch": int64(32 << (i % 4)), "workload.model": []string{"mlp", "cnn"}[i%2], "workload.momentum": 0.9, "seed": int64(i)}
	if i == 5 {
		r.Status = metrics.Failed
	}
	return r
}

func historyStore(t *testing.T) *Store {
	s := openStore(t)
	for i := range 12 {
		ingestRun(t, s, historyRun(i))
	}
	return s
}

func runNames(list []RunRow) string {
	var names []string
	for _, r := range list {
		names = append(names, strings.TrimSuffix(r.Point, "-r1-a1"))
	}
	return strings.Join(names, " ")
}

func TestRuns(t *testing.T) {
	s := historyStore(t)
	tests := []struct {
		filter Filter
		want   string
	}{
		{Filter{}, "p11 p10 p9 p8 p7 p6 p5 p4 p3 p2 p1 p0"},
		{Filter{Limit: 2}, "p11 p10"},
		{Filter{Study: "alpha", Limit: 3}, "p10 p8 p6"},
		{Filter{Workers: 4}, "p11 p8 p5 p2"},
		{Filter{Framework: "pytorch"}, ""},
		{Filter{Since: time.Unix(1009, 0)}, "p11 p10 p9"},
		{Filter{Statuses: []metrics.Status{metrics.Failed, metrics.Lost}}, "p5"},
		// As text, "128" and "256" come before "64".
		{Filter{Where: "workload.batch > 64"}, "p11 p10 p7 p6 p3 p2"},
		{Filter{Where: "workload.batch >= 64 AND workload.model = 'cnn' AND workers < 4"}, "p9 p7 p3 p1"},
		{Filter{Where: `"workload.batch" = 256 or study = 'alpha' and workload.batch=32`}, "p11 p8 p7 p4 p3 p0"},
		{Filter{Where: "1=0) OR (1=1"}, "error"},
		{Filter{Where: "seed IN (3, 4)"}, "p4 p3"},
		{Filter{Where: "max(workers, 3) = 4 and detail = ''"}, "p11 p8 p5 p2"},
		{Filter{Where: "run LIKE 'beta/%' AND workload.momentum BETWEEN 0.5 AND 1", Limit: 1}, "p11"},
		{Filter{Where: "workload.model = 'it''s -- ; not a comment'"}, ""},
		{Filter{Where: "throughput IS NULL", Study: "beta", Workers: 2}, "p7 p1"},
	}
	for _, test := range tests {
		list, err := s.Runs(t.Context(), test.filter)
		if (err != nil) != (test.want == "error") {
			t.Errorf("%+v: %v", test.filter, err)
		} else if got := runNames(list); err == nil && got != test.want {
			t.Errorf("%+v:\n got %s\nwant %s", test.filter, got, test.want)
		}
	}
}

func TestWhereCannotDoHarm(t *testing.T) {
	s := historyStore(t)
	before := dump(t, s)
	other := t.TempDir() + "/other.sqlite"
	tests := map[string]string{ // expression to words of the error
		"1; DROP TABLE run":               "semicolon",
		"1) ; DELETE FROM run; --":        "without its (",
		"1=1 -- and":                      "comment",
		"1 /* */":                         "comment",
		"(1":                              "without its )",
		"1)":                              "without its (",
		"":                                "",
		"  ":                              "empty",
		"'abc":                            "closing '",
		`"abc`:                            `closing "`,
		`status = "done"`:                 "single quotes: 'done'",
		"workload.bath > 3":               "no run has a parameter workload.bath",
		"colour = 'red'":                  "no such column: colour",
		"workers >":                       "syntax error",
		"load_extension('x')":             "",
		"writefile('x', 'y')":             "no such function",
		"hex(randomblob(100000000)) = ''": "not authorized",
		"readfile('/etc/passwd') = ''":    "no such function",
		"workers = ?":                     `"?" does not belong`,
		"[workers] = 1":                   `"[" does not belong`,
		"exists (select * from pragma_database_list)":                                              "",
		"1 = (ATTACH '" + other + "' AS o)":                                                        "syntax error",
		"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n) > 0": "may only look",
	}
	for text, words := range tests {
		_, err := s.Runs(t.Context(), Filter{Where: text})
		if text == "" {
			if err != nil {
				t.Errorf("no expression: %v", err)
			}
			continue
		}
		var where *WhereError
		if !errors.As(err, &where) || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v; want a WhereError with %q", text, err, words)
		} else if !strings.Contains(err.Error(), "workload.batch") || !strings.Contains(err.Error(), "final_accuracy") {
			t.Errorf("%q: the error does not list the names: %v", text, err)
		}
	}
	if after := dump(t, s); after != before {
		t.Error("the database was changed")
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("another database was made")
	}
}

func TestWhereTimeLimit(t *testing.T) {
	s := openAt(t, t.TempDir()+"/db", Options{WhereLimit: 50 * time.Millisecond})
	for i := range 12 {
		ingestRun(t, s, historyRun(i))
	}
	began := time.Now()
	// 12¹⁰ rows, which take hours.
	_, err := s.Runs(t.Context(), Filter{Where: "(SELECT count(*) FROM runs a, runs b, runs c, runs d, runs e, runs f, runs g, runs h, runs i, runs j) < 0"})
	if err == nil || !strings.Contains(err.Error(), "longer than 50ms") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(began); d > time.Minute {
		t.Errorf("it was stopped after %s", d)
	}
}

func FuzzExpression(f *testing.F) {
	for _, seed := range []string{"workload.batch > 64", "1) OR (1", `"a""b" = 'it''s'`, "a.b.c(1)", "x'00'", "1e5 < 1.5", "'--' || ';'", "\x00", "é.ü = 1"} {
		f.Add(seed)
	}
	columns, keys := map[string]bool{"workers": true, "framework": true}, map[string]string{"workload.batch": parameterOf("workload.batch")}
	s, err := Open(f.TempDir()+"/db", Options{WhereLimit: 100 * time.Millisecond})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	if _, err := s.Ingest(context.Background(), aRun(), nil); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if clause, err := expression(text, columns, keys); err == nil {
			// Accepted expressions are balanced: no token closes the parenthesis around
			// them.
			depth := 0
			for rest := clause; rest != ""; {
				kind, token := scanToken(rest)
				if rest = rest[len(token):]; kind != "other" {
					continue
				}
				switch token {
				case "(":
					depth++
				case ")":
					depth--
				case ";", "--", "/*":
					t.Fatalf("%q lets %q through", text, token)
				}
				if depth < 0 {
					t.Fatalf("%q closes a parenthesis that is not its own", text)
				}
			}
		}
		// Every input gives an error, or rows that exist.
		list, err := s.Runs(t.Context(), Filter{Where: text})
		if err == nil && len(list) > 1 {
			t.Fatalf("%q: %d rows of 1", text, len(list))
		}
		if got := value(t, s, "SELECT count(*) FROM run"); got != "1" {
			t.Fatalf("%q: %s runs are left", text, got)
		}
	})
}

func TestShowByPart(t *testing.T) {
	s := historyStore(t)
	for id, want := range map[string]string{"alpha/p0-r1-a1": "alpha/p0-r1-a1", "alpha/p0": "alpha/p0-r1-a1", "p3-r1-a1": "beta/p3-r1-a1"} {
		d, err := s.Show(t.Context(), id)
		if err != nil || d.Run.ID != want {
			t.Errorf("Show(%q): %v; want %s", id, err, want)
		}
	}
	if _, err := s.Show(t.Context(), "beta/p1"); err == nil || !strings.Contains(err.Error(), "beta/p11-r1-a1\n  beta/p1-r1-a1") {
		t.Errorf("ambiguous: %v", err)
	}
	// For a point with several runs, Show returns the newest and names the others.
	for i, attempt := range []string{"p7-r1-a2", "p7-r2-a1"} {
		r := historyRun(7)
		r.ID, r.CreatedUnix = "beta/"+attempt, 2000+float64(i)
		ingestRun(t, s, r)
	}
	d, err := s.Show(t.Context(), "beta/p7")
	if err != nil || d.Run.ID != "beta/p7-r2-a1" {
		t.Fatalf("a point: %v", err)
	}
	if diff := cmp.Diff([]string{"beta/p7-r1-a2", "beta/p7-r1-a1"}, d.Others); diff != "" {
		t.Errorf("the others: %s", diff)
	}
	if d, err := s.Show(t.Context(), "p7"); err != nil || d.Run.ID != "beta/p7-r2-a1" { // as check names it
		t.Errorf("a point without its study: %v", err)
	}
	if d, err := s.Show(t.Context(), "beta/p7-r1-a2"); err != nil || len(d.Others) > 0 {
		t.Errorf("a run: %v, with others", err)
	}
	if _, err := s.Show(t.Context(), "gamma"); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	if _, err := s.Show(t.Context(), ""); err == nil {
		t.Error("no name at all was found")
	}
}

func TestStudies(t *testing.T) {
	s := historyStore(t)
	got, err := s.Studies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"beta", "alpha"} // the newest run of beta is from 1011 s, of alpha from 1010 s
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// measured ingests a run with 20 equal steps of 1 s and the given samples per
// step and rank: its throughput is workers·samples.
func measured(t *testing.T, s *Store, study, point string, workers, repeat, attempt int, samples int64, change func(*metrics.Run)) {
	t.Helper()
	run := aRun()
	run.Study, run.Point, run.Workers, run.Repeat, run.Attempt = study, point, workers, repeat, attempt
	run.ID = fmt.Sprintf("%s/%s-r%d-a%d", study, point, repeat, attempt)
	run.Parameters = map[string]any{"workload.batch": int64(16), "workload.targets": []any{0.5, int64(1)}, "workers": int64(workers),
		"seed": int64(repeat), "workload.augment": true}
	if change != nil {
		change(&run)
	}
	var texts []string
	for rank := range workers {
		texts = append(texts, lines(start(rank, workers, 0), metrics.Event{Time: 1, Train: &metrics.Train{}},
			stepsEvent(21, metrics.Steps{Tick: 1, Duration: fill(20, 1), Samples: fill(20, samples)}),
			metrics.Event{Time: 22, Evaluation: &metrics.Evaluation{Epoch: 1, Step: 20, Accuracy: 0.75}},
			metrics.Event{Time: 22, Stop: &metrics.Stop{Status: metrics.StopDone}}))
	}
	ingestRun(t, s, run, writeRanks(t, t.TempDir(), texts)...)
}

func TestObservations(t *testing.T) {
	s := openStore(t)
	failed := func(r *metrics.Run) { r.Status = metrics.Failed }
	measured(t, s, "s", "one", 1, 1, 1, 10, nil)
	measured(t, s, "s", "one", 1, 1, 2, 20, nil) // the later attempt counts
	measured(t, s, "s", "one", 1, 1, 3, 99, failed)
	measured(t, s, "s", "two", 2, 1, 1, 15, func(r *metrics.Run) { r.Job = &metrics.Job{ID: "77"} })
	measured(t, s, "other", "one", 1, 1, 1, 1, nil)

	// The second attempt completed the run, so nothing is missing.
	measured(t, s, "again", "one", 1, 1, 1, 10, failed)
	measured(t, s, "again", "one", 1, 1, 2, 10, nil)
	if obs, warnings, err := s.Observations(t.Context(), "again"); err != nil || len(obs) != 1 || len(warnings) != 0 {
		t.Errorf("%d runs, warnings %q, %v", len(obs), warnings, err)
	}
	got, warnings, err := s.Observations(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	observation := func(run, point, job string, workers int, throughput, endToEnd float64, samples int64) scaling.Observation {
		slowest := make([]int, workers) // equals count for the lowest rank
		slowest[0] = 20
		hosts := []string{"n0", "n1"}[:workers]
		none, print := 0, fingerprint.Print(nil)
		if workers == 1 { // one host
			print = fingerprint.Print{fingerprint.Interface: ""}
		}
		return scaling.Observation{CreatedUnix: 1.7e9, BeganUnix: 1.7e9, Hosts: hosts, Kind: "train", Epochs: &none, Fingerprint: print,
			Run: run, Study: "s", Point: point, Repeat: 1, Framework: "native", Workers: workers, Nodes: 1, Job: job,
			Parameters: map[string]any{"workload.batch": int64(16), "workload.targets": []any{0.5, int64(1)}, "workers": int64(workers),
				"seed": int64(1), "workload.augment": true, "framework": "native"},
			Values: map[string]float64{"throughput": throughput, "end_to_end": endToEnd, "train_seconds": 21, "init_seconds": 1,
				"step_p50": 1, "step_p95": 1, "step_p99": 1, "skew": 0, "final_accuracy": 0.75, "to_0.5": 21, "to_1": math.Inf(1)},
			Slowest: slowest, RankHosts: hosts,
			Evaluations: []scaling.Evaluation{{Seconds: 21, Epoch: 1, Step: 20, Samples: samples, Accuracy: 0.75}}}
	}
	want := []scaling.Observation{ // 20 steps of 20, of 2·15 samples, in 20 s and in 22 - 1 = 21 s
		observation("s/one-r1-a2", "one", "", 1, 20, 400.0/21, 400),
		observation("s/two-r1-a1", "two", "77", 2, 30, 600.0/21, 600),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"left out 1 run without a result: 1 failed",
		"left out 1 run: a later attempt at the same repeat is done"}, warnings); diff != "" {
		t.Error(diff)
	}
	if _, _, err := s.Observations(t.Context(), "none"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "again, other, s") {
		t.Errorf("unknown study: %v", err)
	}
}

func TestScalingView(t *testing.T) {
	s := openStore(t)
	for repeat, samples := range []int64{10, 20, 40} {
		measured(t, s, "s", "one", 1, repeat+1, 1, samples, nil)
	}
	for repeat, samples := range []int64{15, 25} {
		measured(t, s, "s", "two", 2, repeat+1, 1, samples, nil)
	}
	batch := func(r *metrics.Run) { r.Parameters["workload.batch"] = int64(64) }
	measured(t, s, "s", "two64", 2, 1, 1, 100, batch)
	measured(t, s, "s", "bad", 1, 9, 1, 1000, func(r *metrics.Run) { r.Status = metrics.Failed })

	if err := s.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}

	// batch 16: 10, 20, 40 with one worker: median 20, harmonic mean
	// 3/(1/10 + 1/20 + 1/40) = 3/0.175 = 17.142857; 30 and 50 with two: median
	// 40, harmonic mean 2/(1/30 + 1/50) = 37.5, speedup 40/20 = 2.
	// batch 64: 200 with two, its own base.
	view := `SELECT series, workers, runs, throughput_median, round(throughput_mean, 6), throughput_min, throughput_max, speedup, base_workers
		FROM scaling WHERE study = 's' ORDER BY series, workers`
	want := []string{
		"native batch=16|1|3|20|17.142857|10|40|1|1",
		"native batch=16|2|2|40|37.5|30|50|2|1",
		"native batch=64|2|1|200|200|200|200|1|2",
	}
	if diff := cmp.Diff(want, table(t, s, view)); diff != "" {
		t.Error(diff)
	}

	// A planned base without runs is reported as missing, and not replaced by the next count.
	point := func(name string, workers, batch int64) scaling.Planned {
		return scaling.Planned{Point: name, Framework: "native", Workers: int(workers), Parameters: map[string]any{"workload.augment": true, "framework": "native",
			"workload.batch": batch, "workers": workers, "seed": int64(1), "workload.targets": []any{0.5, int64(1)}}}
	}
	plan := []scaling.Planned{point("one", 1, 16), point("one64", 1, 64), point("two", 2, 16), point("two64", 2, 64)}
	if err := s.SetPlanned(t.Context(), "s", plan); err != nil {
		t.Fatal(err)
	}
	if err := s.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	want[2] = "native batch=64|2|1|200|200|200|200|<nil>|1"
	if diff := cmp.Diff(want, table(t, s, view)); diff != "" {
		t.Error(diff)
	}
	if got, err := s.Planned(t.Context(), "s"); err != nil || cmp.Diff(plan, got) != "" {
		t.Error(cmp.Diff(plan, got), err)
	}

	// Another time limit does not start a new curve; another CPU does, with its one-worker
	// runs as base.
	measured(t, s, "s", "two64", 2, 2, 1, 150, func(r *metrics.Run) { batch(r); r.Parameters["resources.time"] = "2h" })
	recorded(t, s, "cpus", "one", 1, 1000, "Xeon", "")
	recorded(t, s, "cpus", "one", 2, 1000, "EPYC", "")
	if err := s.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	want[2] = "native batch=64|2|2|250|240|200|300|<nil>|1" // 2/(1/200 + 1/300) = 240
	if diff := cmp.Diff(want, table(t, s, view)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"native cpu=EPYC|1|1", "native cpu=Xeon|1|1"}, table(t, s, "SELECT series, runs, speedup FROM scaling WHERE study = 'cpus' ORDER BY series")); diff != "" {
		t.Error(diff)
	}
	// Points that are no longer in the study are not in the view, as in the command.
	if err := s.SetPlanned(t.Context(), "s", plan[1:]); err != nil {
		t.Fatal(err)
	}
	if err := s.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"native batch=16|2|2", "native batch=64|2|2"}, table(t, s, "SELECT series, workers, runs FROM scaling WHERE study = 's' ORDER BY series")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"one|0|3", "two|1|2", "two64|1|2"}, table(t, s, "SELECT point, counts, count(*) FROM throughput WHERE study = 's' AND status = 'done' GROUP BY point ORDER BY point")); diff != "" {
		t.Error(diff)
	}
	if err := s.SetPlanned(t.Context(), "s", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Arrange(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := table(t, s, view); len(got) != 3 || got[2] != "native batch=64|2|2|250|240|200|300|1|2" {
		t.Errorf("without a plan: %q", got)
	}
}

func TestViewsCount(t *testing.T) {
	s := openStore(t)
	for repeat := range 6 {
		measured(t, s, "s", "one", 1, repeat+1, 1, 10, nil)
	}
	measured(t, s, "s", "bad", 1, 9, 1, 1000, func(r *metrics.Run) { r.Status = metrics.Failed })
	if got := table(t, s, "SELECT target, count(*), sum(reached), min(seconds) FROM time_to_accuracy WHERE counts GROUP BY target"); cmp.Diff([]string{"0.5|6|6|21", "1|6|0|<nil>"}, got) != "" {
		t.Errorf("time to accuracy: %q", got)
	}
	if got := value(t, s, "SELECT count(*) FROM throughput WHERE counts"); got != "6" {
		t.Errorf("%s runs count, want 6", got)
	}
}

// A run has its curve's name. A failed run gets it from other runs of its
// point.
func TestSeriesNames(t *testing.T) {
	s := openStore(t)
	run := aRun()
	names := func() []string {
		t.Helper()
		if err := s.Arrange(t.Context()); err != nil {
			t.Fatal(err)
		}
		return table(t, s, "SELECT run, series FROM runs ORDER BY run")
	}
	ingestRun(t, s, run)
	if diff := cmp.Diff([]string{"s/p2-r1-a1|native"}, names()); diff != "" {
		t.Error(diff)
	}
	run.ID, run.Repeat, run.Status = "s/p2-r2-a1", 2, metrics.Failed
	ingestRun(t, s, run)
	// Another number of workers is the same series, another model is not.
	run.ID, run.Point, run.Repeat, run.Status, run.Workers, run.Parameters["workers"] = "s/p4-r1-a1", "p4", 1, metrics.Done, 4, int64(4)
	ingestRun(t, s, run)
	run.ID, run.Point, run.Parameters["workload.model"] = "s/q-r1-a1", "q", "cnn"
	ingestRun(t, s, run)
	run.ID, run.Point, run.Status = "s/z-r1-a1", "z", metrics.Failed
	ingestRun(t, s, run)
	if diff := cmp.Diff([]string{"s/p2-r1-a1|native model=mlp", "s/p2-r2-a1|native model=mlp", "s/p4-r1-a1|native model=mlp", "s/q-r1-a1|native model=cnn", "s/z-r1-a1|<nil>"}, names()); diff != "" {
		t.Error(diff)
	}
}
