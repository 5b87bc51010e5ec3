package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics"
)

// noon is the time on the clock of every test store.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func openStore(t testing.TB) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "db.sqlite"), Options{})
}

func openAt(t testing.TB, path string, o Options) *Store {
	t.Helper()
	o.Now = func() time.Time { return noon }
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// lines returns events in the format of an event file.
func lines(events ...metrics.Event) string {
	var b strings.Builder
	for _, e := range events {
		text, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}

func start(rank, world, restart int) metrics.Event {
	return metrics.Event{Start: &metrics.Start{Format: 1, Unix: 1.7e9 + float64(rank), Writer: "rank", Framework: "native",
		Rank: rank, WorldSize: world, LocalRank: rank, Restart: restart, Host: fmt.Sprintf("n%d", rank), PID: 100 + rank}}
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rankFile writes a rank's event file.
func rankFile(t testing.TB, dir string, rank, restart int, text string) metrics.EventFile {
	t.Helper()
	f := metrics.EventFile{Path: filepath.Join(dir, fmt.Sprintf("rank-%05d-%d.jsonl", rank, restart)), Writer: "rank", Rank: rank, Restart: restart}
	writeFile(t, f.Path, text)
	return f
}

func aRun() metrics.Run {
	return metrics.Run{ID: "s/p2-r1-a1", Study: "s", Point: "p2", Repeat: 1, Attempt: 1, Kind: "train", Framework: "native",
		Workers: 2, Nodes: 1, Status: metrics.Done, Dir: "/runs/s/p2-r1-a1", CreatedUnix: 1.7e9,
		Parameters: map[string]any{"workload.batch": int64(16), "workload.targets": []any{0.5, 0.95}, "workers": int64(2),
			"workload.learning_rate": 0.1, "workload.augment": true, "workload.model": "mlp"}}
}

func ingestRun(t testing.TB, s *Store, run metrics.Run, files ...metrics.EventFile) Report {
	t.Helper()
	r, err := s.Ingest(t.Context(), run, files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// value returns the single value of a query as text.
func value(t testing.TB, s *Store, query string, args ...any) string {
	t.Helper()
	rows := table(t, s, query, args...)
	if len(rows) != 1 {
		t.Fatalf("%s: %d rows, want 1", query, len(rows))
	}
	return rows[0]
}

// table returns the result of a query, one text per row.
func table(t testing.TB, s *Store, query string, args ...any) []string {
	t.Helper()
	db := s.write
	if db == nil {
		db = s.read
	}
	return tableOf(t, db, query, args...)
}

func tableOf(t testing.TB, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		text := make([]string, len(values))
		for i, v := range values {
			text[i] = fmt.Sprint(v)
		}
		list = append(list, strings.Join(text, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// dump returns everything that the database has about its runs: every table, without data
// from the file system.
func dump(t testing.TB, s *Store) string {
	t.Helper()
	var b strings.Builder
	for _, name := range table(t, s, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name") {
		query := "SELECT * FROM " + name
		if name == "event_file" {
			query = "SELECT id, run, writer, rank, restart, head, head_size, offset, line, started, world_size, host, pid, environment, steps_time FROM event_file"
		}
		switch name { // measures are numbered in order of arrival
		case "measure":
			query = "SELECT name, unit, title, better, reported, target FROM measure WHERE id IN (SELECT measure FROM value)"
		case "value":
			query = "SELECT v.run, m.name, m.unit, v.value, v.missed, v.why FROM value v JOIN measure m ON m.id = v.measure"
		}
		for _, row := range slices.Sorted(slices.Values(table(t, s, query))) {
			fmt.Fprintf(&b, "%s: %s\n", name, row)
		}
	}
	return b.String()
}

func TestOpenMakesAPrivateFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "with ? and % and #.sqlite")
	s := openAt(t, path, Options{})
	for p, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", p, got, want)
		}
	}
	if got, want := value(t, s, "PRAGMA user_version"), fmt.Sprint(schemaVersion); got != want {
		t.Errorf("user_version = %s, want %s", got, want)
	}
}

func TestOpenEmptyFileAndAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	writeFile(t, path, "")
	s := openAt(t, path, Options{})
	ingestRun(t, s, aRun())
	before := dump(t, s)
	again := openAt(t, path, Options{})
	if after := dump(t, again); after != before {
		t.Errorf("opening again changed the database:\n%s\nbefore:\n%s", after, before)
	}
	reader, err := OpenReadOnly(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if rows, err := reader.Runs(t.Context(), Filter{}); err != nil || len(rows) != 1 {
		t.Errorf("reading only: %d runs, error %v", len(rows), err)
	}
	if _, err := reader.Ingest(t.Context(), aRun(), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("ingest into a store opened for reading: %v", err)
	}
}

// newDatabase makes an SQLite file with the given statements.
func newDatabase(t *testing.T, statements string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.sqlite")
	if err := create(path); err != nil {
		t.Fatal(err)
	}
	db := open(path, map[string][]string{"mode": {"rw"}}, time.Second, nil)
	defer db.Close()
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenRefusesOtherUsersFiles(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage")
	writeFile(t, garbage, strings.Repeat("these are my notes. ", 100))
	tests := []struct {
		name, path string
		want       error
		words      string
	}{
		{"newer", newDatabase(t, fmt.Sprintf("CREATE TABLE x (y); PRAGMA application_id = %d; PRAGMA user_version = 999", applicationID)),
			ErrNewer, "schema 999"},
		{"older", newDatabase(t, fmt.Sprintf("CREATE TABLE run (id); PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion-1)),
			ErrOlder, "`scalebench collect`"},
		{"foreign", newDatabase(t, "CREATE TABLE x (y)"), ErrNotOurs, "another program's"},
		{"foreign with an id", newDatabase(t, "PRAGMA application_id = 7; PRAGMA user_version = 1"), ErrNotOurs, "--db"},
		{"no database", garbage, ErrNotOurs, "--db"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before, err := os.ReadFile(test.path)
			if err != nil {
				t.Fatal(err)
			}
			for name, open := range map[string]func(string, Options) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
				_, err := open(test.path, Options{})
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.words) || !strings.Contains(err.Error(), test.path) {
					t.Errorf("%s: %v; want %v with %q and the path", name, err, test.want, test.words)
				}
			}
			after, err := os.ReadFile(test.path)
			if err != nil {
				t.Fatal(err)
			}
			if string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
	if _, err := OpenReadOnly(filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	empty := newDatabase(t, "") // as left by a collect that was killed early
	if _, err := OpenReadOnly(empty, Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty database, for reading: %v", err)
	}
	if _, err := Open(t.TempDir(), Options{}); err == nil {
		t.Error("a folder was opened as a database")
	}
}

func TestIngestEndsWithContext(t *testing.T) {
	s := openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Ingest(ctx, aRun(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if got := value(t, s, "SELECT count(*) FROM run"); got != "0" {
		t.Errorf("%s runs stored", got)
	}
}
