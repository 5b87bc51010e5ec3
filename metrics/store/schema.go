package store

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/mattn/go-sqlite3"
)

// applicationID identifies our databases in the header of an SQLite file: "scbn".
const applicationID = 0x7363626e

// schema creates the tables and views in an empty file.
//
//go:embed schema.sql
var schema string

// schemaVersion increases with every change of the schema. A file's user_version is the version
// with which it was created. Databases are not converted between versions, because they can be
// filled again by collecting and importing.
const schemaVersion = 25

// inspect reports whether the file is empty (has no schema yet). It does not change the file. The
// error says why a file cannot be used.
func inspect(path string) (empty bool, err error) {
	db := open(path, url.Values{"mode": {"ro"}}, 5*time.Second, nil)
	defer db.Close()
	var id, version, objects int
	// Read all in one transaction, because another process may be creating the schema.
	err = inTx(context.Background(), db, func(tx *sql.Tx) error {
		id, version, objects, err = marks(tx)
		return err
	})
	var e sqlite3.Error
	switch {
	case errors.As(err, &e) && e.Code == sqlite3.ErrNotADB:
		return false, fmt.Errorf("%s: %w, nor any other SQLite file; name another file with --db", path, ErrNotOurs)
	case err != nil:
		return false, fmt.Errorf("database %s: %w", path, err)
	}
	return usable(path, id, version, objects)
}

// marks returns a file's application ID, schema version and number of schema objects.
func marks(tx *sql.Tx) (id, version, objects int, err error) {
	err = errors.Join(
		tx.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&objects),
		tx.QueryRow("PRAGMA application_id").Scan(&id),
		tx.QueryRow("PRAGMA user_version").Scan(&version),
	)
	return id, version, objects, err
}

// usable reports whether a file with these numbers is empty (has no schema yet). The error says
// why the file cannot be used.
func usable(path string, id, version, objects int) (empty bool, err error) {
	switch {
	case id == 0 && version == 0 && objects == 0:
		return true, nil
	case id != applicationID:
		return false, fmt.Errorf("%s: %w but another program's SQLite file; name another file with --db", path, ErrNotOurs)
	case version > schemaVersion:
		return false, fmt.Errorf("%s: %w (schema %d, this one knows %d); use the newer scalebench, or another file with --db",
			path, ErrNewer, version, schemaVersion)
	case version < schemaVersion:
		return false, fmt.Errorf("%s: %w (schema %d, this one knows %d), left as it is; name a new file with --db, or move this one away, then `scalebench collect` and `scalebench import` again",
			path, ErrOlder, version, schemaVersion)
	}
	return false, nil
}

// rollback rolls back the transaction of a process or host that died during it, because no process
// can read the file until that is done. SQLite does it when a process writes. On a network file
// system, the journal may belong to a running writer on another host, whose SQLite locks are not
// visible here. So rollback first takes the lock for which that writer would have to be finished.
func rollback(path string, o Options) error {
	network, err := o.network(path)
	if err != nil {
		return fmt.Errorf("database %s: %w", path, err)
	}
	if network {
		l, err := takeLease(path+".lock", o.LockWait)
		if err != nil {
			return fmt.Errorf("database %s: %w", path, err)
		}
		defer l.Release()
	}
	db := open(path, url.Values{"mode": {"rw"}}, o.LockWait, nil)
	defer db.Close()
	var objects int
	if err := db.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&objects); err != nil {
		return fmt.Errorf("database %s: %w", path, explain(err))
	}
	return nil
}

// look is like inspect, but calls rollback first if that is needed.
func look(path string, o Options) (empty bool, err error) {
	empty, err = inspect(path)
	if e := (sqlite3.Error{}); errors.As(err, &e) && e.Code == sqlite3.ErrReadonly {
		if err := rollback(path, o); err != nil {
			return false, err
		}
		return inspect(path)
	}
	return empty, err
}

// makeSchema creates the schema in an empty file in one transaction. If the process dies during
// it, the file stays empty.
//
// It tries again until wait has passed: if two processes switch a new file to a write-ahead log
// at the same time, SQLite returns an error to one of them at once, to avoid a deadlock.
func (s *Store) makeSchema(ctx context.Context, wait time.Duration) error {
	for end := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		if err := s.tryMakeSchema(ctx); !errors.Is(err, ErrLocked) || time.Now().After(end) {
			return err
		}
	}
}

func (s *Store) tryMakeSchema(ctx context.Context) error {
	var unusable error // error that includes the path
	err := s.withTx(ctx, func(tx *sql.Tx) error {
		// Read inside the transaction, because another process, of any version, may have been
		// faster.
		id, version, objects, err := marks(tx)
		if err != nil {
			return err
		}
		var empty bool
		if empty, unusable = usable(s.path, id, version, objects); !empty {
			return unusable
		}
		_, err = tx.Exec(schema + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion))
		return err
	})
	if err != nil && unusable == nil {
		err = fmt.Errorf("database %s: %w", s.path, err)
	}
	return err
}
