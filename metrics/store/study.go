package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/scalebench/scalebench/metrics"
)

// A Study has the stored data about a study apart from its runs: its identity, and the location of
// its runs.
type Study struct {
	ID   string
	Name string
	Home string // absolute path of the study's run folder; "" if all its runs were imported
	File string // absolute path of the study file; "" if all its runs were imported
}

// Imported reports whether the study is only a name that was given to imported runs.
func (s Study) Imported() bool { return s.Home == "" }

// ErrOtherStudy means that the database has another study with this name.
var ErrOtherStudy = errors.New("the database has another study of that name")

// Study returns the study with this name. The error is ErrNotFound if it does not exist.
func (s *Store) Study(ctx context.Context, name string) (Study, error) {
	found := Study{Name: name}
	err := s.read.QueryRowContext(ctx, "SELECT id, home, file FROM study WHERE name = ?", name).Scan(&found.ID, &found.Home, &found.File)
	if errors.Is(err, sql.ErrNoRows) {
		return found, fmt.Errorf("study %q: %w", name, ErrNotFound)
	}
	return found, explain(err)
}

// PutStudy stores a study, or its new location. If the name was so far only given to imported
// runs, the study takes it over. The error is ErrOtherStudy if another study has the name.
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

// ofStudy returns an error if a run's study is not the stored study of that name, because two
// studies with the same name would overwrite each other's runs. If none of that name is stored,
// it stores it.
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

// importedInto returns the ID of the study into which a run is imported: the ID of the study with
// this name, or a new one.
func importedInto(tx *sql.Tx, name string) (id string, err error) {
	err = tx.QueryRow("SELECT id FROM study WHERE name = ?", name).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return metrics.NewStudyID(), nil
	}
	return id, err
}
