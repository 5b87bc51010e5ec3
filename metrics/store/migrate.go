package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"
)

// applicationID marks a database as ours in SQLite's file header: "scbn".
const applicationID = 0x7363626e

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are the steps from an empty file to the current schema; the
// database's user_version is how many of them it has been through.
var migrations = readMigrations()

func readMigrations() []string {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		panic("store: no embedded migrations") // the build is broken, no input can cause it
	}
	slices.Sort(names)
	var list []string
	for i, name := range names {
		text, err := migrationFiles.ReadFile(name)
		if err != nil || !strings.HasPrefix(name, fmt.Sprintf("migrations/%04d_", i+1)) {
			panic("store: migrations are not numbered 0001, 0002, …: " + name)
		}
		list = append(list, string(text))
	}
	return list
}

// inspect reads which schema the file has, 0 for an empty one, without
// changing it. The error says what is wrong with a file that is not ours.
func inspect(path string) (version int, err error) {
	db := open(path, url.Values{"mode": {"ro"}}, 5*time.Second, nil)
	defer db.Close()
	var id, objects int
	// In one transaction: another process may be making the schema just now.
	err = inTx(context.Background(), db, func(tx *sql.Tx) error {
		return errors.Join(
			tx.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&objects),
			tx.QueryRow("PRAGMA application_id").Scan(&id),
			tx.QueryRow("PRAGMA user_version").Scan(&version),
		)
	})
	var e sqlite3.Error
	switch {
	case errors.As(err, &e) && e.Code == sqlite3.ErrNotADB:
		return 0, fmt.Errorf("%s: %w, nor any SQLite file; name another one with --db", path, ErrNotOurs)
	case err != nil:
		return 0, fmt.Errorf("database %s: %w", path, err)
	case id == 0 && version == 0 && objects == 0:
		return 0, nil
	case id != applicationID:
		return 0, fmt.Errorf("%s: %w but another program's SQLite file; name another one with --db", path, ErrNotOurs)
	case version > len(migrations):
		return 0, fmt.Errorf("database %s: %w (schema %d, this one knows %d); use the newer scalebench, or another file with --db",
			path, ErrNewer, version, len(migrations))
	}
	return version, nil
}

// rollback takes back the transaction of a process, or a host, that ended within
// it, as SQLite does at the first write. Until then such a file can be read by
// nobody. On a network file system the journal may be a living writer's on
// another host, whose locks are not seen here: so it is waited for.
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

// look is inspect, after a rollback where one is due.
func look(path string, o Options) (version int, err error) {
	version, err = inspect(path)
	if e := (sqlite3.Error{}); errors.As(err, &e) && e.Code == sqlite3.ErrReadonly {
		if err := rollback(path, o); err != nil {
			return 0, err
		}
		return inspect(path)
	}
	return version, err
}

// migrate brings the schema up to date, in one transaction: a process that dies
// meanwhile leaves the schema that was there, or none.
func (s *Store) migrate(ctx context.Context) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		// Read inside the transaction: another process may have been faster.
		var version int
		if err := tx.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
			return err
		}
		if version >= len(migrations) {
			return nil
		}
		for i, migration := range migrations[version:] {
			if _, err := tx.Exec(migration); err != nil {
				return fmt.Errorf("migration %d: %w", version+i+1, err)
			}
		}
		_, err := tx.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(migrations)))
		return err
	})
}
