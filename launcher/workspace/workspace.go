// Package workspace finds where a user's studies are kept: the folder of a study's runs, which it claims for
// one study, and the database with the results. It collects runs into the database, and removes from it those
// that the user wants to forget. Import turns other programs' logs and tables into runs (import*.go). A Tariff
// computes what runs and plans cost at a site file's prices (price*.go); package cost defines a price. The
// package prints nothing: callers pass functions that receive notes and warnings.
package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/store"
)

// A Workspace is one user's view of studies: the folders and the database that the
// options and the environment name. All functions must be set.
type Workspace struct {
	Runs string // folder of the run folders as given by an option; "" for the default
	DB   string // file of the database as given by an option; "" for the default

	Version string // of scalebench, for the records of attempts

	Note func(format string, a ...any) // receives a message with information for the user
	Warn func(format string, a ...any) // receives a message about a problem that does not stop the command
	// WarnOf receives warnings that may occur many times, such as once per run. Their Kind groups
	// them.
	WarnOf func([]Warning)
	// Detail receives a message that is only printed with -v.
	Detail func(format string, a ...any)
	// Whole calls a function that must not be interrupted: an interrupt (Ctrl-C) takes effect when
	// the function has returned.
	Whole func(func())
	// Hold is called before work that an interrupt must not simply kill: from then on the command
	// ends in an orderly way.
	Hold func()
	// Elsewhere is called if a study's runs are not in the default folder, with their folder home.
	Elsewhere func(study, home string)
}

// A Warning is a warning of a kind that may occur many times.
type Warning struct {
	Kind string // begins with a noun in the singular: "run that cannot be read"
	Text string
	Ask  string // what to ask the owner of the path; "" if nothing
}

// Database returns the file of the database: DB, else $SCALEBENCH_DB, else a file in the
// user's data folder.
func (w *Workspace) Database() (string, error) {
	if db := cmp.Or(w.DB, os.Getenv("SCALEBENCH_DB")); db != "" {
		return db, nil
	}
	data, err := dataHome()
	if err != nil {
		return "", err
	}
	return filepath.Join(data, "scalebench", "scalebench.db"), nil
}

// dataHome returns the user's data folder of the XDG Base Directory Specification,
// which makes a relative $XDG_DATA_HOME invalid.
func dataHome() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", &Error{Err: fmt.Errorf("no place for the database: %w", err), Hint: "Name it with --db FILE or $SCALEBENCH_DB."}
	}
	return filepath.Join(home, ".local", "share"), nil
}

// Open opens the database for queries.
func (w *Workspace) Open() (*store.Store, error) {
	file, err := w.Database()
	if err != nil {
		return nil, err
	}
	db, err := store.OpenReadOnly(file, store.Options{})
	if err != nil {
		return nil, StoreError(err)
	}
	w.Detail("database %s", db.Path())
	return db, nil
}

// openForWriting opens the database of a command that stores something. The database
// and the files that SQLite keeps next to it must belong to this user or root, and only
// the owner may be able to write to them: the creator of a database in /tmp could
// otherwise change it.
func openForWriting(file string) (*store.Store, error) {
	for _, path := range append(store.Files(file), file+".key") {
		err := trust.Check(path)
		if foreign, ok := errors.AsType[*trust.Error](err); ok {
			return nil, &trust.Error{Path: foreign.Path, Reason: foreign.Reason, Remedy: "Name another database with --db FILE, in a folder that only you can write to"}
		}
		if err != nil {
			return nil, fmt.Errorf("database %s: %w: %w", file, store.ErrUnusable, err)
		}
	}
	return store.Open(file, store.Options{})
}

// StoreError wraps an error of the store in an Error if the user can correct the cause: an unknown
// name, an invalid expression, a file that is not the database. It returns other errors unchanged.
func StoreError(err error) error {
	if _, ok := errors.AsType[*store.WhereError](err); ok {
		return &Error{Err: err}
	}
	for _, mine := range []error{store.ErrNotFound, store.ErrForgotten, store.ErrAmbiguous, store.ErrNotOurs, store.ErrNewer, store.ErrOlder, store.ErrUnusable, store.ErrPlaces, fs.ErrNotExist} {
		if errors.Is(err, mine) {
			return &Error{Err: err}
		}
	}
	return err
}
