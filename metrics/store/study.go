package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/metrics"
)

// A Study has what is known about a study besides its runs: which one its name means,
// and where its runs are.
type Study struct {
	ID   string
	Name string
	Home string // the study's run folder, absolute; "" where all of its runs were imported
	File string // the study file, likewise
}

// Imported reports whether the study is a name given to imported runs alone.
func (s Study) Imported() bool { return s.Home == "" }

// ErrOtherStudy means that the database has another study of that name.
var ErrOtherStudy = errors.New("the database has another study of that name")

// Study finds a study by its name. The error is ErrNotFound if there is no such study.
func (s *Store) Study(ctx context.Context, name string) (Study, error) {
	found := Study{Name: name}
	err := s.read.QueryRowContext(ctx, "SELECT id, home, file FROM study WHERE name = ?", name).Scan(&found.ID, &found.Home, &found.File)
	if errors.Is(err, sql.ErrNoRows) {
		return found, fmt.Errorf("study %q: %w", name, ErrNotFound)
	}
	return found, explain(err)
}

// PutStudy records a study, or that it has moved. A name that was only given to
// imported runs becomes the study's; the error is ErrOtherStudy where another
// study has it.
func (s *Store) PutStudy(ctx context.Context, study Study) error {
	return s.withTx(ctx, func(tx *sql.Tx) error {
		r, err := tx.Exec(`INSERT INTO study (name, id, home, file) VALUES (?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET id = excluded.id, home = excluded.home, file = excluded.file
			WHERE study.id = excluded.id OR study.home = ''`, study.Name, study.ID, study.Home, study.File)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return fmt.Errorf("study %q: %w", study.Name, ErrOtherStudy)
	})
}

// ofStudy makes sure that a run goes into its own study: two of one name would
// write over each other's runs.
func ofStudy(tx *sql.Tx, run metrics.Run) error {
	var id string
	err := tx.QueryRow("SELECT id FROM study WHERE name = ?", run.Study).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		_, err = tx.Exec("INSERT INTO study (name, id, home, file) VALUES (?, ?, '', '')", run.Study, run.StudyID)
		return err
	}
	if err == nil && id != run.StudyID {
		return fmt.Errorf("study %q: %w", run.Study, ErrOtherStudy)
	}
	return err
}

// importedInto is the id of the study that a run is imported into: the one of
// its name, or a new one.
func importedInto(tx *sql.Tx, name string) (id string, err error) {
	err = tx.QueryRow("SELECT id FROM study WHERE name = ?", name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return metrics.NewStudyID(), nil
	}
	return id, err
}
