package store

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"strings"

	"github.com/scalebench/scalebench/metrics"
)

// ErrForgotten means that the requested run exists but a user has hidden it with Forget.
var ErrForgotten = errors.New("forgotten")

// Forget hides runs from all queries. runs are their names, "STUDY/POINT-r1-a1". Their data stays
// in the database, so that Restore can show them again. A name can be hidden before its run is
// stored. Like Ingest, Forget does not assign runs to curves; that is done by Arrange.
func (s *Store) Forget(ctx context.Context, runs []string) error {
	return s.ofRuns(ctx, runs, "INSERT INTO forgotten (name, study) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
}

// Restore reverses Forget.
func (s *Store) Restore(ctx context.Context, runs []string) error {
	return s.ofRuns(ctx, runs, "DELETE FROM forgotten WHERE name = ?1 AND study = ?2")
}

// ofRuns executes a statement for each run, with its name and its study as arguments.
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

// Forgotten returns the names of the runs of a study that are hidden; if study is "", of all
// studies.
func (s *Store) Forgotten(ctx context.Context, study string) ([]string, error) {
	list, err := column1[string](s.read.QueryContext(ctx, "SELECT name FROM forgotten WHERE study = ?1 OR ?1 = '' ORDER BY name", study))
	return list, explain(err)
}

// tagName matches valid tags, which can be used in conditions as tag:NAME.
var tagName = regexp.MustCompile(`^` + metrics.TagPattern)

// PutRemarks replaces the tags and notes of a run. The run need not be stored yet.
func (s *Store) PutRemarks(ctx context.Context, run string, r metrics.Remarks) error {
	if err := r.Check(); err != nil {
		return err
	}
	return s.withTx(ctx, func(tx *sql.Tx) error {
		for _, table := range []string{"tag", "remark"} {
			if _, err := tx.Exec("DELETE FROM "+table+" WHERE name = ?", run); err != nil {
				return err
			}
		}
		for _, tag := range r.Tags {
			if _, err := tx.Exec("INSERT INTO tag (name, tag) VALUES (?, ?)", run, tag); err != nil {
				return err
			}
		}
		if r.Note == "" {
			return nil
		}
		_, err := tx.Exec("INSERT INTO remark (name, text) VALUES (?, ?)", run, r.Note)
		return err
	})
}

// Remarks returns the tags and notes that users gave a run.
func (s *Store) Remarks(ctx context.Context, run string) (r metrics.Remarks, err error) {
	err = inTx(ctx, s.read, func(tx *sql.Tx) (err error) {
		r, err = remarks(ctx, tx, run)
		return err
	})
	return r, explain(err)
}

func remarks(ctx context.Context, tx *sql.Tx, run string) (r metrics.Remarks, err error) {
	if r.Tags, err = column1[string](tx.QueryContext(ctx, "SELECT tag FROM tag WHERE name = ? ORDER BY tag", run)); err != nil {
		return r, err
	}
	err = tx.QueryRowContext(ctx, "SELECT text FROM remark WHERE name = ?", run).Scan(&r.Note)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return r, err
}
