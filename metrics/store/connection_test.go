package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs"

	"github.com/mattn/go-sqlite3"
)

// Each connection of a pool must have the pragmas, not just the first.
func TestPragmasOnEveryConnection(t *testing.T) {
	s := openStore(t)
	ctx := t.Context()
	var held []*sql.Conn
	for range 4 {
		c, err := s.read.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held = append(held, c)
	}
	for i, c := range held {
		// PRAGMAs are denied to these connections, so statements that must fail show the settings.
		for _, statement := range []string{"DELETE FROM every_run", "PRAGMA query_only = 0", "CREATE TEMP TABLE x (y)"} {
			if _, err := c.ExecContext(ctx, statement); err == nil {
				t.Errorf("reading connection %d executes %q", i, statement)
			}
		}
	}
	wide := open(s.path, map[string][]string{"mode": {"rw"}}, time.Second, nil)
	defer wide.Close()
	for i := range 4 {
		c, err := wide.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var keys, wait int
		if err := errors.Join(c.QueryRowContext(ctx, "PRAGMA foreign_keys").Scan(&keys), c.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&wait)); err != nil {
			t.Fatal(err)
		}
		if keys != 1 || wait != 1000 {
			t.Errorf("connection %d: foreign_keys = %d, busy_timeout = %d", i, keys, wait)
		}
	}
	if got := value(t, s, "PRAGMA foreign_keys"); got != "1" {
		t.Errorf("writing connection: foreign_keys = %s", got)
	}
}

func TestJournalByFileSystem(t *testing.T) {
	for network, want := range map[bool]string{false: "wal", true: "truncate"} {
		s := openAt(t, filepath.Join(t.TempDir(), "db"), Options{NetworkFile: &network})
		if got := value(t, s, "PRAGMA journal_mode"); got != want {
			t.Errorf("network = %t: journal_mode = %s, want %s", network, got, want)
		}
	}
}

func TestHostLock(t *testing.T) {
	network := true
	path := filepath.Join(t.TempDir(), "db")
	o := Options{NetworkFile: &network, LockWait: time.Millisecond}
	first := openAt(t, path, o)
	ingestRun(t, first, aRun())

	_, err := Open(path, o)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Fatalf("second writer: %v; want ErrLocked with the holder's process", err)
	}
	reader, err := OpenReadOnly(path, o)
	if err != nil {
		t.Fatalf("readers need no lock: %v", err)
	}
	reader.Close()

	// The holder has not renewed its lock for longer than the lease.
	old := time.Now().Add(-2 * sharedfs.LeaseTime)
	if err := os.Chtimes(path+".lock", old, old); err != nil {
		t.Fatal(err)
	}
	second, err := Open(path, o)
	if err != nil {
		t.Fatalf("a lapsed lock: %v", err)
	}
	run := aRun()
	run.Detail = "from a host that lost its lock"
	if _, err := first.Ingest(t.Context(), run, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("the one that lost the lock writes on: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := filepath.Glob(path + ".lock*")
	if err != nil || len(entries) != 1 || entries[0] != path+".lock" { // the lock file stays after its release
		t.Errorf("left behind: %v %v", entries, err)
	}

	writeFile(t, path+".lock", "damaged")
	if _, err := Open(path, o); !errors.Is(err, ErrLocked) {
		t.Errorf("a damaged lock that is fresh: %v", err)
	}
}

// Several processes may start at once on a file that is not there yet.
func TestOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "db")
	errs := make(chan error)
	const n = 6
	for range n {
		go func() {
			s, err := Open(path, Options{})
			if err == nil {
				err = s.Close()
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// A query in progress does not block a writer, and sees none of an unfinished transaction.
func TestReadersAndWriter(t *testing.T) {
	s := openStore(t)
	done := make(chan error)
	go func() {
		var err error
		for i := 0; i < 40 && err == nil; i++ {
			_, err = s.Ingest(context.Background(), historyRun(i), nil)
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
		list, err := s.Runs(t.Context(), Filter{Where: "workload.batch IS NULL"})
		if err != nil && !strings.Contains(err.Error(), "no run has a parameter") {
			t.Fatal(err)
		}
		if len(list) > 0 {
			t.Fatalf("%s was seen without its parameters", list[0].Run)
		}
	}
}

// The remedy for an SQLite error is added once, even if several callers explain it.
func TestExplainOnce(t *testing.T) {
	for _, test := range []struct {
		err  sqlite3.Error
		want string
	}{
		{sqlite3.Error{Code: sqlite3.ErrFull}, "no space left; what was stored before is unharmed"},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, SystemErrno: syscall.ENOSPC}, "no space left on device; what was stored before is unharmed"},
		{sqlite3.Error{Code: sqlite3.ErrBusy}, "try again when it is done"},
		{sqlite3.Error{Code: sqlite3.ErrCorrupt}, "the file is damaged"},
		{sqlite3.Error{Code: sqlite3.ErrReadonly}, "you must be able to write to"},
	} {
		err := explain(fmt.Errorf("database x: %w", explain(test.err)))
		if n := strings.Count(err.Error(), test.want); n != 1 {
			t.Errorf("%q is said %d times: %v", test.want, n, err)
		}
	}
}
