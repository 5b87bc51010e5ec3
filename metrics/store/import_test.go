package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-sqlite3"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/redact"
	"github.com/scalebench/scalebench/metrics/summary"
)

func importedRun() (metrics.Run, []metrics.Event, Source) {
	run := metrics.Run{Study: "old", Point: "i1", Kind: "train", Framework: "horovod", Workers: 4, Nodes: 1, Status: metrics.Done,
		Parameters: map[string]any{"platform": "cpu8", "workers": int64(4), "workload.targets": []any{0.5}}}
	spread := 4.9
	events := []metrics.Event{
		{Start: &metrics.Start{Format: metrics.FormatVersion, Writer: "rank", WorldSize: 4, Ranks: 4}},
		{Train: &metrics.Train{}},
		{Time: 1, Figure: &metrics.Figure{Name: "throughput", Value: 432.8, Unit: "samples/s", PlusMinus: &spread, PlusMinusIs: "1.96 σ",
			Note: "rank 0's rate times 4", File: "h.log", Line: 12}},
		{Time: 1, Figure: &metrics.Figure{Name: "busbw", Value: 1e9, Unit: "B/s", At: map[string]any{"bytes": 8.0}, File: "h.log", Line: 3}},
		{Time: 20, Evaluation: &metrics.Evaluation{Epoch: 1, Accuracy: 0.6}},
		{Time: 21, Stop: &metrics.Stop{Status: metrics.StopDone}},
	}
	return run, events, Source{Path: "/logs/h.log", SHA256: "abc", Format: "horovod-synthetic", Bytes: 100}
}

// Imported figures appear in queries, details and observations like our own measurements, and
// are marked as imported.
func TestImport(t *testing.T) {
	s := openStore(t)
	run, events, from := importedRun()
	report, err := importOne(t, s, run, events, from)
	if err != nil || !report.Changed || report.Run != "old/i1-r1-a1" {
		t.Fatalf("%+v, %v", report, err)
	}
	d, err := s.Show(t.Context(), report.Run)
	if err != nil {
		t.Fatal(err)
	}
	r := d.Result
	if r.Values["throughput"] != 432.8 || r.Why["throughput"] != "" || r.Steps != 0 {
		t.Errorf("%v (%v) of %d steps", r.Values, r.Why, r.Steps)
	}
	if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, "throughput is stated by a log, not measured here: rank 0's rate times 4; its ± is 1.96 σ") {
		t.Errorf("warnings: %s", all)
	}
	if len(d.Figures) != 2 || d.Figures[1].At["bytes"] != 8.0 || d.Source == nil || d.Source.SHA256 != "abc" {
		t.Errorf("figures %+v, source %+v", d.Figures, d.Source)
	}
	list, _, err := s.Observations(t.Context(), "old")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	o := list[0]
	if len(o.Evaluations) != 1 || o.Evaluations[0].Seconds != 20 || o.Evaluations[0].Samples != -1 || len(o.Targets()) != 1 || o.Values[o.Targets()[0].Time().Name] != 20 {
		t.Errorf("evaluations %+v, targets %+v", o.Evaluations, o.Values)
	}
	rows, err := s.Runs(t.Context(), Filter{Where: "platform = 'cpu8'"})
	if err != nil || len(rows) != 1 {
		t.Error(rows, err)
	}
	if got := value(t, s, "SELECT format, sha256 FROM imports"); got != "horovod-synthetic|abc" {
		t.Error("view imports:", got)
	}
	if got := value(t, s, "SELECT value, unit, plus_minus, source_line FROM figures WHERE name = 'throughput'"); got != "432.8|samples/s|4.9|12" {
		t.Error("view figures:", got)
	}
}

// Importing the same file again changes nothing, at any path. With other settings it is an
// error, or replaces the first import.
func TestImportAgain(t *testing.T) {
	s := openStore(t)
	run, events, from := importedRun()
	if _, err := importOne(t, s, run, events, from); err != nil {
		t.Fatal(err)
	}
	before := dump(t, s)
	from.Path = "/moved/h.log"
	if report, err := importOne(t, s, run, events, from); err != nil || report.Changed || report.Run != "old/i1-r1-a1" {
		t.Errorf("%+v, %v", report, err)
	}
	if got := dump(t, s); got != before {
		t.Error(firstDifference(before, got))
	}
	run.Parameters["platform"] = "cpu16"
	if _, err := importOne(t, s, run, events, from); !errors.Is(err, ErrImported) || !strings.Contains(err.Error(), "old/i1-r1-a1") {
		t.Error(err)
	}
	from.Replace = true
	if report, err := importOne(t, s, run, events, from); err != nil || !report.Changed {
		t.Errorf("%+v, %v", report, err)
	}
	if got := value(t, s, "SELECT count(*), max(value) FROM parameters WHERE key = 'platform'"); got != "1|cpu16" {
		t.Error(got)
	}
	from.SHA256 = "other"
	if report, err := importOne(t, s, run, events, from); err != nil || report.Run != "old/i1-r2-a1" {
		t.Errorf("another file is another repeat: %+v, %v", report, err)
	}
}

// A row may be imported into several studies, but only once into each.
func TestRowsOfSeveralStudies(t *testing.T) {
	s := openStore(t)
	run, events, from := importedRun()
	from.Format, from.Part, from.Rows, from.Origin = "csv", "row 1", "digest", from.SHA256
	for _, study := range []string{"table", "subset", "table", "subset"} {
		run.Study = study
		if report, err := importOne(t, s, run, events, from); err != nil || !strings.HasPrefix(report.Run, study+"/") {
			t.Errorf("%s: %+v, %v", study, report, err)
		}
	}
	if got := value(t, s, "SELECT group_concat(name || ' ' || runs, ', ') FROM (SELECT study AS name, count(*) AS runs FROM runs GROUP BY study ORDER BY study)"); got != "subset 1, table 1" {
		t.Error(got)
	}
}

func importOne(t *testing.T, s *Store, run metrics.Run, events []metrics.Event, from Source) (Report, error) {
	reports, err := importAll(t, s, Imported{Run: run, Events: slices.Values(events), From: from})
	if err != nil {
		return Report{}, err
	}
	return reports[0], nil
}

func importAll(t *testing.T, s *Store, list ...Imported) (reports []Report, err error) {
	runs := func(yield func(Imported, error) bool) {
		for _, i := range list {
			if !yield(i, nil) {
				return
			}
		}
	}
	err = s.Import(t.Context(), runs, func(r Report) { reports = append(reports, r) })
	return reports, err
}

// An import is stored completely or not at all, even if it is interrupted. The error then
// reports only the interrupt.
func TestImportIsAtomic(t *testing.T) {
	s := openStore(t)
	run := func(n int) Imported {
		r := metrics.Run{Study: "old", Point: fmt.Sprintf("i%d", n), Kind: "train", Framework: "x", Workers: n, Nodes: 1, Status: metrics.Done, Parameters: map[string]any{}}
		return Imported{Run: r, From: Source{Path: "/log", SHA256: strings.Repeat("a", 64), Part: fmt.Sprint(n), Format: "csv"}}
	}
	stored := func(want int) {
		t.Helper()
		if list, err := s.Runs(t.Context(), Filter{}); err != nil || len(list) != want {
			t.Errorf("%d runs are stored, want %d; %v", len(list), want, err)
		}
	}
	bad := run(2)
	bad.Run.Study = ""
	if _, err := importAll(t, s, run(1), bad); err == nil {
		t.Error("a run of no study is stored")
	}
	stored(0)
	ctx, cancel := context.WithCancelCause(t.Context())
	halfway := errors.New("halfway")
	err := s.withTx(ctx, func(tx *sql.Tx) error {
		if _, err := newImporting(ctx, s, tx).one(run(1)); err != nil {
			t.Error(err)
		}
		cancel(halfway)
		for ctx := t.Context(); ; { // database/sql ends the transaction by itself
			if _, err := tx.ExecContext(ctx, "SELECT 1"); err != nil {
				return err
			}
		}
	})
	if err != halfway {
		t.Errorf("%v; want the cause", err)
	}
	stored(0)
	if _, err := importAll(t, s, run(1), run(2)); err != nil {
		t.Error(err)
	}
	stored(2)
}

// Imports of 33 and of 353 runs prepare the same statements, each once for
// single rows and once for batches.
func TestImportPreparesOnce(t *testing.T) {
	prepared := func(n int) (count int) {
		s := openStore(t)
		c, err := s.write.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Raw(func(c any) error {
			c.(*sqlite3.SQLiteConn).RegisterAuthorizer(func(int, string, string, string) int { // SQLite calls this while it prepares a statement
				count++
				return sqlite3.SQLITE_OK
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		run, events, from := importedRun()
		var list []Imported
		for i := range n {
			from.Part = fmt.Sprint(i)
			list = append(list, Imported{Run: run, Events: slices.Values(events), From: from})
		}
		if _, err := importAll(t, s, list...); err != nil {
			t.Fatal(err)
		}
		return count
	}
	few, many := prepared(rowsTogether+1), prepared(11*rowsTogether+1)
	if few == 0 || few != many {
		t.Errorf("SQLite prepared %d steps for few runs, %d for many", few, many)
	}
}

// Runs are read one at a time: each is stored before the next one is read.
func TestImportStreamsRuns(t *testing.T) {
	s := openStore(t)
	run, events, from := importedRun()
	given, told := 0, 0
	err := s.Import(t.Context(), func(yield func(Imported, error) bool) {
		for ; given < 50; given++ {
			if told != given {
				t.Errorf("run %d is asked for when %d are stored", given+1, told)
			}
			from.Part = fmt.Sprint(given)
			if !yield(Imported{Run: run, Events: slices.Values(events), From: from}, nil) {
				return
			}
		}
	}, func(Report) { told++ })
	if err != nil || told != 50 {
		t.Errorf("%d runs, %v", told, err)
	}
	// An error of the caller's iterator rolls back everything.
	broken := errors.New("broken")
	from.SHA256 = "other"
	if err := s.Import(t.Context(), func(yield func(Imported, error) bool) {
		_ = yield(Imported{Run: run, Events: slices.Values(events), From: from}, nil) && yield(Imported{}, broken)
	}, nil); err != broken {
		t.Errorf("%v; want the error of the runs", err)
	}
	if got := value(t, s, "SELECT count(*) FROM run"); got != "50" {
		t.Errorf("%s runs are stored, want 50", got)
	}
}

// A forgotten run stays forgotten when its log is imported again, and its name is not
// reused. Restoring it brings back everything that was stored.
func TestForgetImported(t *testing.T) {
	s := openStore(t)
	ctx := t.Context()
	again := func(sha256 string) (Report, error) {
		run, events, from := importedRun()
		from.SHA256 = sha256
		return importOne(t, s, run, events, from)
	}
	first, err := again("abc")
	if err != nil {
		t.Fatal(err)
	}
	before := value(t, s, "SELECT group_concat(run || throughput) FROM runs")
	if err := s.Forget(ctx, []string{first.Run}); err != nil {
		t.Fatal(err)
	}
	if _, err := again("abc"); err != nil {
		t.Fatal(err)
	}
	if got := value(t, s, "SELECT count(*) FROM runs"); got != "0" {
		t.Errorf("%s runs, want none", got)
	}
	for _, view := range []string{"parameters", `"values"`, "throughput", "evaluations", "steps", "fingerprints", "figures", "scaling", "curves"} {
		if got := value(t, s, "SELECT count(*) FROM "+view); got != "0" {
			t.Errorf("view %s has %s rows of a forgotten run", view, got)
		}
	}
	second, err := again("def")
	if err != nil || second.Run == first.Run {
		t.Errorf("another run is %s, %v", second.Run, err)
	}
	if err := s.Forget(ctx, []string{second.Run}); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(ctx, []string{first.Run}); err != nil {
		t.Fatal(err)
	}
	if got := value(t, s, "SELECT group_concat(run || throughput) FROM runs"); got != before {
		t.Errorf("restored: %s, want %s", got, before)
	}
	if got, err := s.Forgotten(ctx, ""); err != nil || len(got) != 1 || got[0] != second.Run {
		t.Errorf("forgotten: %v, %v", got, err)
	}
}

// Building a run's input from its events gives the same as reading them back.
func TestStated(t *testing.T) {
	s := openStore(t)
	spread := 0.5
	start := metrics.Event{Start: &metrics.Start{Format: metrics.FormatVersion, Writer: "rank", WorldSize: 4, Ranks: 4, Host: "h"}}
	rate := metrics.Figure{Name: "throughput", Value: 0.1 + 0.2, Unit: "samples/s", Reduce: "median", Of: 3, PlusMinus: &spread, PlusMinusIs: "σ", Note: "with password=hunter2", File: "t.csv", Line: 7}
	placed := metrics.Figure{Name: "busbw", Value: 1e9, Unit: "B/s", Better: "higher", At: map[string]any{"bytes": 8.0, "op": "all_reduce"}}
	note := metrics.Event{Note: &metrics.Note{Text: "of --token s3cr3tvalue"}}
	for name, c := range map[string]struct {
		events []metrics.Event
		read   bool // back
	}{
		"a row":       {[]metrics.Event{start, {Figure: &rate}}, false},
		"places":      {[]metrics.Event{start, {Time: 1, Figure: &rate}, {Figure: &placed}}, false},
		"notes":       {[]metrics.Event{start, note, {Note: &metrics.Note{Text: "another"}}, note}, false},
		"an end":      {[]metrics.Event{start, {Figure: &rate}, {Time: 3, Stop: &metrics.Stop{Status: metrics.StopFailed, Cause: "c", Steps: 4}}}, false},
		"nothing":     {[]metrics.Event{start}, false},
		"training":    {[]metrics.Event{start, {Time: 2, Train: &metrics.Train{DataSHA256: "d"}}, {Time: 9, Epoch: &metrics.Epoch{Epoch: 1, Step: 10}}, {Time: 19, Epoch: &metrics.Epoch{Epoch: 2, Step: 20}}}, false},
		"evaluations": {[]metrics.Event{start, {Train: &metrics.Train{}}, {Time: 7, Evaluation: &metrics.Evaluation{Epoch: 2, Accuracy: 0.6}}, {Time: 5, Evaluation: &metrics.Evaluation{Epoch: 1, Accuracy: 0.5, Loss: &spread}}}, false},
		"steps":       {[]metrics.Event{start, {Steps: &metrics.Steps{Tick: 1, Duration: []int64{1}, Samples: []int64{1}}}}, true},
		"environment": {[]metrics.Event{start, {Environment: &metrics.Environment{Kernel: "6"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			run, _, from := importedRun()
			run.Point, from.Part = "p", name
			run.Parameters = map[string]any{"resources.device": "gpu", "workload.batch_norm": "sync", "lr": 0.1, "workload.targets": []any{0.5, int64(1), "x"}}
			report, err := importOne(t, s, run, c.events, from) // hides secrets in events
			if err != nil {
				t.Fatal(err)
			}
			got := stated(run, slices.Values(c.events))
			if c.read {
				if got != nil {
					t.Fatalf("%+v", got)
				}
				return
			}
			var want *summary.Input
			if err := s.withTx(t.Context(), func(tx *sql.Tx) error {
				var id int64
				if err := tx.QueryRow("SELECT id FROM run WHERE name = ?", report.Run).Scan(&id); err != nil {
					return err
				}
				want, _, err = newIngest(t.Context(), tx, id, &Report{}, hiders{redact.Text, redact.Text}, catalogue{}, direct{tx}).summaryInput()
				return err
			}); err != nil {
				t.Fatal(err)
			}
			all := cmp.Options{cmp.AllowUnexported(summary.Input{}), cmp.Transformer("places", (*measure.Places).List)}
			if diff := cmp.Diff(want, got, all); diff != "" {
				t.Errorf("-read back +stated\n%s", diff)
			}
		})
	}
}

// Runs of one file are recognised at any position in it, also within one import, whose rows
// wait to be stored together.
func TestImportTwiceAtOnce(t *testing.T) {
	s := openStore(t)
	var list []Imported
	add := func(path, sha string, part int) {
		run, events, from := importedRun()
		from.Path, from.SHA256, from.Part = path, sha, fmt.Sprint(part)
		list = append(list, Imported{Run: run, Events: slices.Values(events), From: from})
	}
	for i := range 2*rowsTogether + 1 {
		add("/a", "aa", i)
	}
	add("/a", "aa", 3)   // already stored; the following ones wait
	add("/a", "aa", 500) // waits
	add("/a", "aa", 500)
	add("/b", "aa", 7) // the same file elsewhere
	add("/b", "bb", 7)
	add("/a", "aa", 64)
	reports, err := importAll(t, s, list...)
	if err != nil {
		t.Fatal(err)
	}
	var changed []bool
	for _, r := range reports[2*rowsTogether+1:] {
		changed = append(changed, r.Changed)
	}
	if diff := cmp.Diff([]bool{false, true, false, false, true, false}, changed); diff != "" {
		t.Errorf("stored: -want +got\n%s", diff)
	}
	if got := value(t, s, "SELECT count(*), count(DISTINCT repeat), max(repeat) FROM run"); got != "67|67|67" {
		t.Error(got)
	}
	before := dump(t, s)
	if reports, err = importAll(t, s, list...); err != nil || slices.ContainsFunc(reports, func(r Report) bool { return r.Changed }) {
		t.Error("again:", reports, err)
	}
	if got := dump(t, s); got != before {
		t.Error(firstDifference(before, got))
	}
}

// Waiting rows are all stored in order with few statements, which makes an import of a
// million runs feasible.
func TestBulk(t *testing.T) {
	s := openStore(t)
	for _, n := range []int{0, 1, rowsTogether, 3*rowsTogether + 2} {
		if err := s.withTx(t.Context(), func(tx *sql.Tx) error {
			if _, err := tx.Exec("CREATE TEMP TABLE parent (id INTEGER PRIMARY KEY, name TEXT); CREATE TEMP TABLE child (of INTEGER REFERENCES parent, n INTEGER);" +
				"INSERT INTO parent (id, name) VALUES (41, 'before')"); err != nil {
				return err
			}
			b := newBulk(tx)
			counted := &countedExec{tx: tx}
			b.exec = counted
			for i := range n {
				id, err := b.numbered("parent", "INSERT INTO parent (id, name) VALUES (?, ?)", fmt.Sprint(i))
				if err != nil || id != int64(42+i) {
					t.Fatal(id, err)
				}
				for range 2 {
					if err := b.insert("INSERT INTO child (of, n) VALUES (?, ?) ON CONFLICT DO NOTHING", id, i); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := b.flush(); err != nil {
				t.Fatal(err)
			}
			// The run's own row and two rows of details each: as many statements as
			// there are whole batches, and one for each row that is left.
			if want := n/rowsTogether + n%rowsTogether + 2*n/rowsTogether + 2*n%rowsTogether; counted.n != want {
				t.Errorf("%d rows: %d statements, want %d", n, counted.n, want)
			}
			var got string
			if err := tx.QueryRow("SELECT count(*) || ' ' || sum(name = n AND id = 42 + n) FROM child JOIN parent ON id = of").Scan(&got); n > 0 && (err != nil || got != fmt.Sprint(2*n, 2*n)) {
				t.Errorf("%d rows: %s, %v", n, got, err)
			}
			_, err := tx.Exec("DROP TABLE child; DROP TABLE parent")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// countedExec counts statements.
type countedExec struct {
	tx *sql.Tx
	n  int
}

func (c *countedExec) Exec(query string, args ...any) (sql.Result, error) {
	c.n++
	return c.tx.Exec(query, args...)
}
