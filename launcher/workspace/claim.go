package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

// Claim reserves a folder for the runs of a study, before anything else is written there,
// and records the folder in the database. If another study has the folder or the name, the
// error names that study.
func (w *Workspace) Claim(ctx context.Context, st *study.Study, plan *study.Plan, folder rundir.Study) error {
	file, err := filepath.Abs(st.File)
	if err != nil {
		return err
	}
	known := w.Recorded(ctx, st.Name)
	its, err := folder.Identity()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &Error{Err: err}
	}
	if errors.Is(err, fs.ErrNotExist) {
		// Without identity.json, the plan still names the study that the folder belongs to.
		if plan, err := launcher.ReadPlan(folder); err == nil && plan.StudyFile != "" && !rundir.SameFile(plan.StudyFile, file) && Exists(plan.StudyFile) {
			return &Error{Err: fmt.Errorf("%s has no identity.json, and its plan.json belongs to another study %s, from %s", folder.Path(), st.Name, plan.StudyFile),
				Hint: fmt.Sprintf("`scalebench run %s` writes identity.json again. Or give this study another name (study.name) or another folder (--runs).", plan.StudyFile)}
		}
		its = rundir.Identity{ID: metrics.NewStudyID(), Name: st.Name, StudyFile: file}
		switch {
		case known.ID == "":
		case known.Imported():
			w.Note("study %s has imported runs in the database; the new runs join them", st.Name)
			its.ID = known.ID
		case rundir.SameFile(known.File, file):
			its.ID = known.ID // the run folders of this study were removed
		case !Exists(known.File) && !Exists(known.Home) && w.knowsPoints(ctx, st, plan, folder):
			w.Note("study %s belonged to %s; that file and its run folders are gone, so its results count as this study's", st.Name, known.File)
			its.ID = known.ID
		default:
			return otherStudy(known)
		}
		its, err = launcher.Claim(folder, its)
	}
	if err != nil {
		return err
	}
	if !rundir.SameFile(its.StudyFile, file) && its.StudyFile != file {
		w.Note("the file of study %s has moved from %s to %s", st.Name, its.StudyFile, file)
		its.StudyFile = file
		if err := folder.Move(its); err != nil {
			return err
		}
	}
	if closed := closedFolder(folder.Path()); closed != "" && st.Share == study.ShareGroup {
		w.Warn("share = \"group\", but no group may enter %s: `chmod g+rx %s`", closed, ShellQuote(closed))
	}
	if known == (store.Study{ID: its.ID, Name: its.Name, Home: folder.Path(), File: its.StudyFile}) {
		return nil
	}
	path, err := w.Database()
	if err != nil {
		return err
	}
	db, err := openForWriting(path)
	if err == nil {
		defer db.Close()
		err = w.Register(ctx, db, folder, its)
	}
	var mine *Error
	var foreign *trust.Error
	if err != nil && !errors.As(err, &mine) && !errors.As(err, &foreign) {
		w.Warn("study %s could not be added to the database (%v); `scalebench collect` adds it later", st.Name, err)
		return nil
	}
	return err
}

// Register records the folder of a study's runs in the database.
func (w *Workspace) Register(ctx context.Context, db *store.Store, folder rundir.Study, its rundir.Identity) error {
	known, err := db.Study(ctx, its.Name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return StoreError(err)
	}
	home := rundir.Study(known.Home)
	switch is := (store.Study{ID: its.ID, Name: its.Name, Home: folder.Path(), File: its.StudyFile}); {
	case known == is:
		return nil
	case known.ID == its.ID && home != folder && holds(home, its.ID) && !home.Same(folder):
		return &Error{Err: fmt.Errorf("%s is a copy of %s, which is in the database already", folder.Path(), home.Path()),
			Hint: "Use one or the other: with both, the runs of one would replace the runs of the other. --db names another database."}
	case known.ID == its.ID && home != "" && !Exists(known.Home):
		w.Note("the runs of study %s have moved from %s to %s", its.Name, known.Home, folder.Path())
		fallthrough
	default:
		err = db.PutStudy(ctx, is)
	}
	if errors.Is(err, store.ErrOtherStudy) {
		return otherStudy(known)
	}
	return StoreError(err)
}

// otherStudy returns an error: another study already has this name.
func otherStudy(known store.Study) error {
	return &Error{Err: fmt.Errorf("the database has another study %s, from %s, with runs in %s", known.Name, known.File, known.Home),
		Hint: "Give one of the two another name (study.name), or name another database with --db."}
}

// knowsPoints reports whether the database has a good result for at least one run of the
// plan.
func (w *Workspace) knowsPoints(ctx context.Context, st *study.Study, plan *study.Plan, folder rundir.Study) bool {
	stored, err := w.Results(ctx, st.Name, folder)
	if err != nil {
		return false
	}
	for _, p := range plan.Points {
		if stored.Done[p.Point.Run()] {
			return true
		}
	}
	return false
}

// closedFolder returns the first folder from path upwards that only its owner may enter; "" if there is none.
func closedFolder(path string) string {
	path, err := filepath.Abs(path)
	for err == nil {
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o011 == 0 {
			return path
		}
		if path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	return ""
}
