package workspace

import (
	"context"
	"errors"
	"io/fs"
	"path"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics/store"
)

// A Repeat identifies one planned run: a point and the number of its repeat.
type Repeat struct {
	Point  string
	Repeat int
}

// Results are a study's good runs in the database, including runs whose folders were removed.
type Results struct {
	Done map[Repeat]bool
	Last map[Repeat]int               // number of the last attempt, good or not
	Made map[Repeat]map[string]string // the user's scripts and data: name to the first digits of the SHA-256

	Forgotten map[Repeat]bool // runs of which an attempt was forgotten
}

// Results reads a study's results from the database; without a database they are empty. Runs in the
// folder's trash count as forgotten, even if the database does not have that yet.
func (w *Workspace) Results(ctx context.Context, study string, folder rundir.Study) (Results, error) {
	r := Results{map[Repeat]bool{}, map[Repeat]int{}, map[Repeat]map[string]string{}, map[Repeat]bool{}}
	trash, err := folder.Forgotten()
	if err != nil {
		return r, err
	}
	gone := map[string]bool{}
	for _, a := range trash {
		gone[study+"/"+a.Run.Name()] = true
		r.forget(a)
	}
	file, err := w.Database()
	if err != nil {
		return r, err
	}
	db, err := store.OpenReadOnly(file, store.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, StoreError(err)
	}
	defer db.Close()
	return r, StoreError(r.read(ctx, db, study, gone))
}

// read adds the database's runs of a study; gone contains the names of runs in the trash.
func (r *Results) read(ctx context.Context, db *store.Store, study string, gone map[string]bool) error {
	rows, err := db.Runs(ctx, store.Filter{Study: study})
	if err != nil {
		return err
	}
	for _, row := range rows {
		at := Repeat{row.Point, row.Repeat}
		r.Last[at] = max(r.Last[at], row.Attempt)
		if row.Status.Good() && !gone[row.Run] {
			r.Done[at] = true
		}
	}
	names, err := db.Forgotten(ctx, study)
	if err != nil {
		return err
	}
	for _, n := range names {
		if a, ok := rundir.ParseName(path.Base(n)); ok {
			r.forget(a)
		}
	}
	made, err := db.MadeWith(ctx, study)
	for _, m := range made {
		r.Made[Repeat{m.Point, m.Repeat}] = m.Files
	}
	return err
}

func (r *Results) forget(a rundir.Attempt) {
	at := Repeat{a.Point, a.Repeat}
	r.Forgotten[at] = true
	r.Last[at] = max(r.Last[at], a.Number)
}
