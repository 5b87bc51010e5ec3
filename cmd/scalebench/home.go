package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

// runsHere is the folder of run folders where no study says which: --runs, else
// $SCALEBENCH_RUNS, else ./runs. It is absolute: batch scripts name it.
func (s *session) runsHere() (string, error) {
	return filepath.Abs(cmp.Or(s.runs, os.Getenv("SCALEBENCH_RUNS"), "runs"))
}

// folderOf is the run folder of a study that is given by its file: where it is
// by now, else where it would be made.
func (s *session) folderOf(ctx context.Context, st *study.Study, site *study.Site) (rundir.Study, error) {
	file, err := filepath.Abs(st.File)
	if err != nil {
		return "", err
	}
	runs, err := filepath.Abs(cmp.Or(s.runs, os.Getenv("SCALEBENCH_RUNS"), site.Runs, filepath.Join(filepath.Dir(file), "runs")))
	if err != nil {
		return "", err
	}
	folder := rundir.OpenStudy(runs, st.Name)
	// Of a study that was given as a command there is no file that says whether it
	// is the one of that name.
	another := func(its string) error {
		if exists(file) || its == "" || its == file {
			return nil
		}
		return &usageError{err: fmt.Errorf("study %s already exists, from %s", st.Name, its), hint: "Give this one another name with --name."}
	}
	switch its, err := folder.Identity(); {
	case err == nil && another(its.StudyFile) != nil:
		return "", another(its.StudyFile)
	case err == nil && !rundir.SameFile(its.StudyFile, file) && exists(its.StudyFile):
		return "", &usageError{err: fmt.Errorf("%s has the runs of another study %s, from %s", folder.Path(), st.Name, its.StudyFile),
			hint: "Give one of the two another name (study.name), or name another folder with --runs."}
	case err == nil:
		return folder, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", &usageError{err: err}
	}
	known := s.recorded(ctx, st.Name)
	if err := another(known.File); err != nil {
		return "", err
	}
	home := rundir.Study(known.Home)
	if !holds(home, known.ID) || exists(known.File) && !rundir.SameFile(known.File, file) {
		return folder, nil
	}
	if s.runs != "" {
		return "", &usageError{err: fmt.Errorf("the runs of study %s are in %s, not in %s", st.Name, home.Path(), folder.Path()),
			hint: "Leave --runs out, or move that folder first. In two folders the same runs would be started twice."}
	}
	s.tellHome(st.Name, home.Path())
	return home, nil
}

// tellHome says where a study's runs are, where that is not where one would look
// first: once.
func (s *session) tellHome(study, home string) {
	if s.told[home] {
		return
	}
	if s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[home] = true
	s.note("the runs of study %s are in %s", study, home)
}

// folderNamed finds the run folder of a study by its name: in --runs alone where
// that is given, else in $SCALEBENCH_RUNS or ./runs, else where the database has
// it.
func (s *session) folderNamed(ctx context.Context, name string) (rundir.Study, error) {
	runs, err := s.runsHere()
	if err != nil {
		return "", err
	}
	folder := rundir.OpenStudy(runs, name)
	if s.runs != "" || exists(folder.Plan()) {
		return folder, nil
	}
	if known := s.recorded(ctx, name); holds(rundir.Study(known.Home), known.ID) {
		s.tellHome(name, known.Home)
		return rundir.Study(known.Home), nil
	}
	return folder, nil
}

// find is the run folder of a study that is given by its file or its name.
func (s *session) find(ctx context.Context, arg string) (rundir.Study, error) {
	if filepath.Ext(arg) != ".toml" {
		return s.folderNamed(ctx, arg)
	}
	st, err := study.Load(arg, framework.ForStudy())
	if err != nil {
		return "", &usageError{err: err}
	}
	site := study.DefaultSite()
	if st.Site != "" {
		if site, err = study.LoadSite(st.Site); err != nil {
			return "", &usageError{err: err}
		}
	}
	return s.folderOf(ctx, st, site)
}

// siteOf returns the site file that is named, else the one that the study's file
// names, else the one that the study was last run or submitted with. The study goes by
// its file or its name; "" stands for all studies.
func (s *session) siteOf(ctx context.Context, arg, named string) (*study.Site, error) {
	load := func(path string) (*study.Site, error) {
		site, err := study.LoadSite(path)
		if err != nil {
			return nil, &usageError{err: err}
		}
		return site, nil
	}
	switch {
	case named != "":
		return load(named)
	case arg == "":
		return study.DefaultSite(), nil
	}
	folder, err := s.find(ctx, arg)
	if err != nil {
		return nil, err
	}
	plan, err := launcher.ReadPlan(folder)
	if err != nil {
		plan = &study.Plan{} // never run; or unreadable, as the command says that asks for it
	}
	file := arg
	if filepath.Ext(arg) != ".toml" {
		file = cmp.Or(plan.StudyFile, s.recorded(ctx, arg).File)
	}
	if st, err := study.Load(file, framework.ForStudy()); err == nil && st.Site != "" {
		return load(st.Site)
	}
	switch {
	case plan.SiteFile == "":
		return study.DefaultSite(), nil
	case exists(plan.SiteFile):
		return load(plan.SiteFile)
	}
	site, err := launcher.UsedSite(folder, plan)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return site, nil
}

// recorded is what the database knows of a study; nothing, where there is no
// database that can be asked.
func (s *session) recorded(ctx context.Context, name string) store.Study {
	db, err := s.openStore()
	if err != nil {
		return store.Study{}
	}
	defer db.Close()
	known, err := db.Study(ctx, name)
	if err != nil {
		return store.Study{}
	}
	return known
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return path != "" && err == nil
}

// holds reports whether a folder has the runs of the study of that id.
func holds(folder rundir.Study, id string) bool {
	if folder == "" {
		return false
	}
	its, err := folder.Identity()
	return err == nil && its.ID == id
}

// claim makes the folder of a study's runs its own, before anything is written
// there, and records it in the database. The error says which other study has
// the folder or the name.
func (s *session) claim(ctx context.Context, w *work) error {
	s.hold()
	file, err := filepath.Abs(w.study.File)
	if err != nil {
		return err
	}
	known := s.recorded(ctx, w.study.Name)
	its, err := w.folder.Identity()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &usageError{err: err}
	}
	if errors.Is(err, fs.ErrNotExist) {
		// Without its identity a folder still tells by its plan whose runs it has.
		if plan, err := launcher.ReadPlan(w.folder); err == nil && plan.StudyFile != "" && !rundir.SameFile(plan.StudyFile, file) && exists(plan.StudyFile) {
			return &usageError{err: fmt.Errorf("%s has no identity.json, and its plan.json belongs to another study %s, from %s", w.folder.Path(), w.study.Name, plan.StudyFile),
				hint: fmt.Sprintf("`scalebench run %s` writes identity.json again. Or give this study another name (study.name) or another folder (--runs).", plan.StudyFile)}
		}
		its = rundir.Identity{ID: metrics.NewStudyID(), Name: w.study.Name, StudyFile: file}
		switch {
		case known.ID == "":
		case known.Imported():
			s.note("study %s has imported runs in the database; the new runs join them", w.study.Name)
			its.ID = known.ID
		case rundir.SameFile(known.File, file):
			its.ID = known.ID // its run folders were removed
		case !exists(known.File) && !exists(known.Home) && s.knowsPoints(ctx, w):
			s.note("study %s belonged to %s; that file and its run folders are gone, so its results count as this study's", w.study.Name, known.File)
			its.ID = known.ID
		default:
			return s.otherStudy(known)
		}
		its, err = launcher.Claim(w.folder, its)
	}
	if err != nil {
		return err
	}
	if !rundir.SameFile(its.StudyFile, file) && its.StudyFile != file {
		s.note("the file of study %s has moved from %s to %s", w.study.Name, its.StudyFile, file)
		its.StudyFile = file
		if err := w.folder.Move(its); err != nil {
			return err
		}
	}
	if known == (store.Study{ID: its.ID, Name: its.Name, Home: w.folder.Path(), File: its.StudyFile}) {
		return nil
	}
	path, err := s.database()
	if err != nil {
		return err
	}
	db, err := openForWriting(path)
	if err == nil {
		defer db.Close()
		err = s.register(ctx, db, w.folder, its)
	}
	var mine *usageError
	var foreign *trust.Error
	if err != nil && !errors.As(err, &mine) && !errors.As(err, &foreign) {
		s.warn("study %s is not in the database yet; `scalebench collect` adds it: %v", w.study.Name, err)
		return nil
	}
	return err
}

// register records in the database which study a folder has the runs of, and
// where it is.
func (s *session) register(ctx context.Context, db *store.Store, folder rundir.Study, its rundir.Identity) error {
	known, err := db.Study(ctx, its.Name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return storeError(err)
	}
	home := rundir.Study(known.Home)
	switch is := (store.Study{ID: its.ID, Name: its.Name, Home: folder.Path(), File: its.StudyFile}); {
	case known == is:
		return nil
	case known.ID == its.ID && home != folder && holds(home, its.ID) && !home.Same(folder):
		return &usageError{err: fmt.Errorf("%s is a copy of %s, which is in the database already", folder.Path(), home.Path()),
			hint: "Use one or the other: with both, the runs of one would replace the runs of the other. --db names another database."}
	case known.ID == its.ID && home != "" && !exists(known.Home):
		s.note("the runs of study %s have moved from %s to %s", its.Name, known.Home, folder.Path())
		fallthrough
	default:
		err = db.PutStudy(ctx, is)
	}
	if errors.Is(err, store.ErrOtherStudy) {
		return s.otherStudy(known)
	}
	return storeError(err)
}

// otherStudy is the error that a name is taken.
func (s *session) otherStudy(known store.Study) error {
	return &usageError{err: fmt.Errorf("the database has another study %s, from %s, with runs in %s", known.Name, known.File, known.Home),
		hint: "Give one of the two another name (study.name), or name another database with --db."}
}

// knowsPoints reports whether the database has a run of one of the study's points.
func (s *session) knowsPoints(ctx context.Context, w *work) bool {
	stored, err := s.stored(ctx, w)
	if err != nil {
		return false
	}
	for _, p := range w.plan.Points {
		if stored.done[planned{p.Point.ID, p.Point.Repeat}] {
			return true
		}
	}
	return false
}

// notBegun is the error that a study has no runs in a folder.
func notBegun(folder rundir.Study, err error) error {
	hint := "From another folder, give the study's file, or the folder of its runs with --runs DIR."
	if names, err := rundir.Studies(folder.Runs()); err == nil && len(names) > 0 {
		hint += " Studies here: " + strings.Join(names, ", ") + "."
	}
	why := fmt.Errorf("study %q has not been run or submitted: %w", filepath.Base(folder.Path()), err)
	if errors.Is(err, fs.ErrNotExist) {
		why = fmt.Errorf("study %q has not been run or submitted: there is no %s", filepath.Base(folder.Path()), folder.Path())
	}
	return &usageError{err: why, hint: hint}
}
