// Package store keeps all runs permanently in a single SQLite file: what was requested, what the
// processes reported, and the results. SQL is used only in this package.
//
// Only one process, on a login node, writes at a time (Ingest); others may read meanwhile.
// Reading is incremental: event files are read from where the last reading stopped. Each run is
// stored in one transaction, and storing it again changes nothing. An invalid line is stored as a
// bad line with its file and number, and does not affect valid lines.
//
// Users can rely on the views in docs/store.md, but not on the tables. The store does not depend
// on run folders, on Slurm, or on how runs are started.
package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// These errors are for callers to distinguish. They are wrapped with the path and a remedy.
var (
	ErrNotOurs   = errors.New("not a scalebench database")
	ErrNewer     = errors.New("database of a newer scalebench")
	ErrOlder     = errors.New("database of an older scalebench")
	ErrLocked    = errors.New("database is locked")
	ErrUnusable  = errors.New("database cannot be used") // its mode, owner or content is wrong
	ErrAmbiguous = errors.New("it matches several runs")
	ErrReadOnly  = errors.New("database was opened for reading only")
)

// Options configure how a store is opened. The zero value is valid.
type Options struct {
	Now         func() time.Time // nil: time.Now
	LockWait    time.Duration    // longest wait for another writer; 0: 10 seconds
	WhereLimit  time.Duration    // time limit of a query with a user's condition; 0: 10 seconds
	NetworkFile *bool            // the file is on a network file system; nil: ask the kernel
}

// A Store is an open database. It is safe for concurrent use.
type Store struct {
	path    string
	now     func() time.Time
	limit   time.Duration
	write   *sql.DB         // a single connection; nil if read-only
	read    *sql.DB         // read-only connections
	lease   *sharedfs.Lease // nil on a local file system
	network bool
	digests digests
}

// Open opens the database at path for reading and writing. It creates the file and its
// folder if they are missing, accessible only to the user.
func Open(path string, o Options) (*Store, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("database %s: %w: %w", path, ErrUnusable, err)
	}
	s := &Store{path: path, now: o.Now, limit: o.WhereLimit}
	s.digests.path, s.digests.make = path, true
	if s.network, err = o.network(path); err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	// Look at the file before setting anything, so that another program's file stays unchanged.
	if _, err := look(path, o); err != nil {
		return nil, err
	}
	if s.network {
		if s.lease, err = takeLease(path+".lock", o.LockWait); err != nil {
			return nil, fmt.Errorf("database %s: %w", path, err)
		}
	}
	journal := "WAL"
	if s.network {
		// A write-ahead log needs memory that all processes which open the file share, which
		// network file systems do not provide. The rollback journal is truncated and not removed:
		// if the reply to a removal is lost, the removal is repeated and fails, and the
		// transaction with it.
		journal = "TRUNCATE"
	}
	s.write = open(path, url.Values{
		"mode":          {"rw"},
		"_txlock":       {"immediate"},
		"_journal_mode": {journal},
		"_synchronous":  {"FULL"},
		// Overwrite deleted content in the file.
		"_secure_delete": {"on"},
		// Preparing a statement takes longer than executing it; there are about seventy.
		"_stmt_cache_size": {"128"},
		"_cache_size":      {fmt.Sprint(-cacheKiB)},
	}, o.LockWait, nil)
	s.write.SetMaxOpenConns(1) // further connections would only wait for each other
	if err := s.makeSchema(context.Background(), o.LockWait); err != nil {
		s.Close()
		return nil, err
	}
	s.read = openForReading(path, o.LockWait)
	return s, nil
}

// OpenReadOnly opens an existing database for queries. It needs no lock and changes
// nothing.
func OpenReadOnly(path string, o Options) (*Store, error) {
	o = o.withDefaults()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("database %s: %w; `scalebench collect` creates it from the run folders", path, fs.ErrNotExist)
	}
	if err == nil {
		err = regularFiles(path)
	}
	if err != nil {
		return nil, fmt.Errorf("database %s: %w: %w", path, ErrUnusable, err)
	}
	empty, err := look(path, o)
	if err != nil {
		return nil, err
	}
	if empty { // another command died, or is running, before it created the schema
		return nil, fmt.Errorf("database %s: empty, as if the %w; `scalebench collect` fills it from the run folders", path, fs.ErrNotExist)
	}
	s := &Store{path: path, now: o.Now, limit: o.WhereLimit, read: openForReading(path, o.LockWait)}
	s.digests.path = path
	return s, nil
}

// Path returns the absolute path of the database file.
func (s *Store) Path() string { return s.path }

// Close closes the database and releases the lock.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.lease != nil {
		errs = append(errs, s.lease.Release())
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.LockWait == 0 {
		o.LockWait = 10 * time.Second
	}
	if o.WhereLimit == 0 {
		o.WhereLimit = 10 * time.Second
	}
	return o
}

func (o Options) network(path string) (bool, error) {
	if o.NetworkFile != nil {
		return *o.NetworkFile, nil
	}
	return onNetwork(filepath.Dir(path))
}

// create creates an empty database file that only the user can read. It does not open an existing
// file, because closing it would release the locks that SQLite holds for this process.
func create(path string) error {
	if err := regularFiles(path); err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Files returns the paths of a database and of the files next to it: SQLite's write-ahead log,
// shared memory and journal, and the lock file.
func Files(path string) []string {
	return []string{path, path + "-wal", path + "-shm", path + "-journal", path + ".lock"}
}

// regularFiles returns an error if the database, or a file that SQLite keeps next to it, is not a
// regular file. It does not follow symbolic links for the latter. Opening a FIFO would block.
// SQLite trusts a log or journal that it finds, so these must also belong to the database's
// owner, to this user or to root.
func regularFiles(path string) error {
	main, err := os.Stat(path)
	if err == nil && !main.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	for _, file := range []string{path + "-wal", path + "-shm", path + "-journal"} {
		info, err := os.Lstat(file)
		switch {
		case err != nil:
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", file)
		case main == nil && owner(info) != os.Geteuid() && owner(info) != 0,
			main != nil && !slices.Contains([]int{owner(main), os.Geteuid(), 0}, owner(info)):
			return fmt.Errorf("%s belongs to user %d, not to the owner of the database; have it removed, or move the database to a folder that only you can write to", file, owner(info))
		}
	}
	return nil
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// connector opens connections with a hook. It does not need a driver that is registered globally.
type connector struct {
	dsn    string
	driver *sqlite3.SQLiteDriver
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c connector) Driver() driver.Driver                        { return c.driver }

// open returns a pool of connections. Settings for every connection must be in the DSN, because a
// PRAGMA that is sent through the pool reaches only one connection.
func open(path string, q url.Values, wait time.Duration, hook func(*sqlite3.SQLiteConn) error) *sql.DB {
	q.Set("_foreign_keys", "on")
	q.Set("_busy_timeout", fmt.Sprint(wait.Milliseconds()))
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return sql.OpenDB(connector{u.String(), &sqlite3.SQLiteDriver{ConnectHook: hook}})
}

func openForReading(path string, wait time.Duration) *sql.DB {
	db := open(path, url.Values{"mode": {"ro"}, "_query_only": {"on"}}, wait, restrict)
	db.SetMaxOpenConns(4)
	return db
}

// cacheKiB is the size of the writer's page cache; sparingKiB is its size while a table is read
// once from end to end. Sorting uses the same amount of memory again.
const (
	cacheKiB   = 64 << 10
	sparingKiB = 32 << 10
)

func setCache(tx *sql.Tx, kib int) error {
	_, err := tx.Exec(fmt.Sprintf("PRAGMA cache_size = %d", -kib))
	return err
}

// withTx calls f in a transaction on the connection for writing. It rolls back if f returns an
// error or panics, or if ctx ends.
func (s *Store) withTx(ctx context.Context, f func(*sql.Tx) error) error {
	if s.write == nil {
		return ErrReadOnly
	}
	if s.lease != nil {
		if err := locked(s.lease.Check()); err != nil {
			return err
		}
	}
	return inTx(ctx, s.write, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return s.digests.err // without a key, all secrets would look equal
	})
}

// inTx calls f in a transaction of db, so that several queries see the same state.
func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return explain(err)
	}
	defer tx.Rollback() // no effect after Commit
	if err = f(tx); err == nil {
		err = tx.Commit()
	}
	if err != nil && ctx.Err() != nil { // when ctx ends the transaction, f gets various errors
		return context.Cause(ctx)
	}
	return explain(err)
}

// explained is an SQLite error to which a remedy was added.
type explained struct{ error }

func (e explained) Unwrap() error { return e.error }

// explain adds a remedy to an error of SQLite, unless it has one already.
func explain(err error) error {
	var e sqlite3.Error
	var done explained
	if !errors.As(err, &e) || errors.As(err, &done) {
		return err
	}
	return explained{explanation(err, e)}
}

func explanation(err error, e sqlite3.Error) error {
	switch e.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return fmt.Errorf("%w by another process that is writing; try again when it is done (%v)", ErrLocked, err)
	case sqlite3.ErrCantOpen, sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return fmt.Errorf("%w: %w: you must be able to write to the file and its folder, even for queries, while it has a -wal file next to it", ErrUnusable, err)
	case sqlite3.ErrFull:
		return fmt.Errorf("%w: no space left; what was stored before is unharmed", err)
	case sqlite3.ErrIoErr:
		if e.SystemErrno == syscall.ENOSPC || e.SystemErrno == syscall.EDQUOT {
			return fmt.Errorf("%w; what was stored before is unharmed", err)
		}
	case sqlite3.ErrCorrupt:
		return fmt.Errorf("%w: %w: the file is damaged; move it away and run `scalebench collect` to rebuild it from the run folders", ErrUnusable, err)
	}
	return err
}
