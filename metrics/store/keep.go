package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// ErrForgotten: what was asked for is there, and a person has had it forgotten.
var ErrForgotten = errors.New("forgotten")

// Forget takes runs out of everything that is asked of the database, by their
// names, "STUDY/POINT-r1-a1". What is stored of them stays, for Restore; a run
// that is stored again, or for the first time, stays forgotten. Like Ingest it
// leaves the curves to Arrange.
func (s *Store) Forget(ctx context.Context, runs []string) error {
	return s.ofRuns(ctx, runs, "INSERT INTO forgotten (name, study) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
}

// Restore brings back what Forget took out.
func (s *Store) Restore(ctx context.Context, runs []string) error {
	return s.ofRuns(ctx, runs, "DELETE FROM forgotten WHERE name = ?1 AND study = ?2")
}

// ofRuns executes a statement with each run's name and study.
func (s *Store) ofRuns(ctx context.Context, runs []string, statement string) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		changed := map[string]bool{}
		for _, run := range runs {
			study, _, _ := strings.Cut(run, "/")
			r, err := tx.Exec(statement, run, study)
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil {
				return err
			} else if n > 0 && !changed[study] {
				changed[study] = true
				if err := disarrange(tx, study); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Forgotten are the names of a study's forgotten runs; of all studies' for "".
func (s *Store) Forgotten(ctx context.Context, study string) ([]string, error) {
	list, err := column1[string](s.read.QueryContext(ctx, "SELECT name FROM forgotten WHERE study = ?1 OR ?1 = '' ORDER BY name", study))
	return list, explain(err)
}
