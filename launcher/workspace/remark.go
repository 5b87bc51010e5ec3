package workspace

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

// Remark applies change to the tags and the note of each run that arg selects, in the run folders
// and in the database. It returns the number of selected runs.
func (w *Workspace) Remark(ctx context.Context, arg string, change func(*metrics.Remarks)) (int, error) {
	s, err := w.Select(ctx, arg)
	if err != nil {
		return 0, err
	}
	release, err := s.lease(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	names, folders, err := s.remarkable()
	if err != nil {
		return 0, err
	}
	if len(names) == 0 {
		return 0, &Error{Err: fmt.Errorf("there is no run %q", arg), Hint: "`scalebench status` and `scalebench runs` list the runs."}
	}
	file, err := w.Database()
	if err != nil {
		return 0, err
	}
	var db *store.Store // nil if there is no database yet; collect will read the folders
	if Exists(file) {
		if db, err = openForWriting(file); err != nil {
			return 0, StoreError(err)
		}
		defer db.Close()
	}
	for _, id := range names {
		if err := w.remark(ctx, db, id, folders[id], change); err != nil {
			return 0, err
		}
	}
	return len(names), nil
}

// remarkable returns the names of the selected runs, and by name the folders of the runs that
// still have a folder.
func (s *Selection) remarkable() (names []string, folders map[string]rundir.Folder, err error) {
	folders = map[string]rundir.Folder{}
	if Exists(s.Folder.Path()) {
		attempts, err := s.Folder.Attempts()
		if err != nil {
			return nil, nil, err
		}
		for _, a := range attempts {
			if id := s.id(a); s.has(id) {
				folders[id] = a.Run
				names = append(names, id)
			}
		}
	}
	for _, id := range s.stored {
		if s.has(id) && !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	return names, folders, nil
}

// remark changes one run's tags and note. folder is "" for a run without a folder, and db is nil without
// a database.
func (w *Workspace) remark(ctx context.Context, db *store.Store, id string, folder rundir.Folder, change func(*metrics.Remarks)) error {
	var said metrics.Remarks
	known := false
	var err error
	if folder != "" {
		if said, known, err = launcher.Remarks(folder); err != nil {
			return &Error{Err: err}
		}
	}
	if !known && db != nil {
		if said, err = db.Remarks(ctx, id); err != nil {
			return StoreError(err)
		}
	}
	change(&said)
	if err := said.Check(); err != nil {
		return &Error{Err: fmt.Errorf("%s: %w", id, err)}
	}
	if folder != "" {
		switch err := launcher.Remark(folder, said); {
		case os.IsPermission(err):
			w.Warn("you may not write to %s: the change is only in your database", folder.Path())
		case err != nil:
			return err
		}
	}
	if db == nil {
		return nil
	}
	return StoreError(db.PutRemarks(ctx, id, said))
}
