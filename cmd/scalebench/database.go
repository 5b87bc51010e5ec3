package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/scalebench/scalebench/launcher/spelling"
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
	return m, &usageError{err: unknown, hint: spelling.Hint(name, known)}
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
