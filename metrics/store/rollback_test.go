package store

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A process or host that dies within a transaction leaves a journal, and no process can read
// the file. The next command rolls it back, whether it reads or writes.
func TestJournalOfADeadProcess(t *testing.T) {
	network := true
	o := Options{NetworkFile: &network, LockWait: time.Second}
	path := filepath.Join(t.TempDir(), "db")
	s, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ingest(t.Context(), aRun(), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db := open(path, url.Values{"mode": {"rw"}, "_journal_mode": {"DELETE"}}, time.Second, nil)
	db.SetMaxOpenConns(1)
	defer db.Close()
	for _, statement := range []string{"PRAGMA cache_size = 2", "BEGIN IMMEDIATE", "CREATE TABLE late (x)",
		"INSERT INTO late WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 2000) SELECT zeroblob(500) FROM n"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, reads := range []bool{true, false} {
		left := filepath.Join(t.TempDir(), "db")
		for _, suffix := range []string{"", "-journal"} {
			text, err := os.ReadFile(path + suffix)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(left+suffix, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := inspect(left); err == nil {
			t.Fatal("the journal is not one that must be taken back")
		}
		open := Open
		if reads {
			open = OpenReadOnly
		}
		s, err := open(left, o)
		if err != nil {
			t.Errorf("reads %t: %v", reads, err)
			continue
		}
		var late, runs int
		if err := s.read.QueryRow("SELECT (SELECT count(*) FROM sqlite_schema WHERE name = 'late'), (SELECT count(*) FROM run)").Scan(&late, &runs); err != nil || late != 0 || runs != 1 {
			t.Errorf("reads %t: %d tables of the one that died, %d runs, %v", reads, late, runs, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
