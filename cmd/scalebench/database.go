package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/store"
)

// openStore opens the database for queries.
func (s *session) openStore() (*store.Store, error) {
	file, err := s.database()
	if err != nil {
		return nil, err
	}
	db, err := store.OpenReadOnly(file, store.Options{})
	if err != nil {
		return nil, storeError(err)
	}
	s.detail("database %s", db.Path())
	return db, nil
}

// openForWriting opens the database for a command that stores something. The database,
// and the files that SQLite keeps next to it, must be this user's or root's, and nobody
// else may be able to write to them: a database that somebody else created in /tmp would
// be theirs to change.
func openForWriting(file string) (*store.Store, error) {
	for _, path := range append(store.Files(file), file+".key") {
		err := trust.Check(path)
		var foreign *trust.Error
		if errors.As(err, &foreign) {
			return nil, &trust.Error{Path: foreign.Path, Reason: foreign.Reason, Remedy: "Name another database with --db FILE, in a folder that only you can write to"}
		}
		if err != nil {
			return nil, fmt.Errorf("database %s: %w: %w", file, store.ErrUnusable, err)
		}
	}
	return store.Open(file, store.Options{})
}

// findMeasure finds a measure by its name: a declared one, the time to a target,
// or one that a stored run's program or log reports. A value of a whole run that a
// program reports comes before a declared measure of places within runs.
func findMeasure(ctx context.Context, db *store.Store, name string) (measure.Measure, error) {
	m, unknown := measure.Find(name)
	if unknown == nil && m.At == "" {
		return m, nil
	}
	reported, err := db.Reported(ctx)
	if err != nil {
		return m, storeError(err)
	}
	known := measure.Names()
	for _, r := range reported {
		if r.Name == name {
			return r, nil
		}
		known = append(known, r.Name)
	}
	if unknown == nil {
		return m, nil
	}
	if len(reported) > 0 {
		unknown = fmt.Errorf("%w; or one that runs report: %s", unknown, strings.Join(known[len(known)-len(reported):], ", "))
	}
	return m, &usageError{err: unknown, hint: study.SpellingHint(name, known)}
}

// storeError marks what the user can put right: a name that is not stored, an
// expression that cannot be used, a file that is not the database.
func storeError(err error) error {
	var where *store.WhereError
	if errors.As(err, &where) {
		return &usageError{err: err}
	}
	for _, mine := range []error{store.ErrNotFound, store.ErrForgotten, store.ErrAmbiguous, store.ErrNotOurs, store.ErrNewer, store.ErrOlder, store.ErrUnusable, store.ErrPlaces, fs.ErrNotExist} {
		if errors.Is(err, mine) {
			return &usageError{err: err}
		}
	}
	return err
}
