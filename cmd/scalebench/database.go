package main

import (
	"errors"
	"io/fs"

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

// storeError marks what the user can put right: a name that is not stored, an
// expression that cannot be used, a file that is not the database.
func storeError(err error) error {
	var where *store.WhereError
	if errors.As(err, &where) {
		return &usageError{err: err}
	}
	for _, mine := range []error{store.ErrNotFound, store.ErrAmbiguous, store.ErrNotOurs, store.ErrNewer, store.ErrOlder, store.ErrUnusable, fs.ErrNotExist} {
		if errors.Is(err, mine) {
			return &usageError{err: err}
		}
	}
	return err
}
