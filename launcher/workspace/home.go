package workspace

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
	"github.com/scalebench/scalebench/metrics/store"
)

// RunsHere returns the folder for run folders if a study does not set one: Runs, else $SCALEBENCH_RUNS, else
// ./runs. It is absolute because batch scripts contain it.
func (w *Workspace) RunsHere() (string, error) {
	return filepath.Abs(cmp.Or(w.Runs, os.Getenv("SCALEBENCH_RUNS"), "runs"))
}

// FolderOf returns the folder of a study's runs. If it does not exist yet, FolderOf returns the
// path at which it would be created.
func (w *Workspace) FolderOf(ctx context.Context, st *study.Study, site *study.Site) (rundir.Study, error) {
	file, err := filepath.Abs(st.File)
	if err != nil {
		return "", err
	}
	runs, err := filepath.Abs(cmp.Or(w.Runs, os.Getenv("SCALEBENCH_RUNS"), site.Runs, filepath.Join(filepath.Dir(file), "runs")))
	if err != nil {
		return "", err
	}
	folder := rundir.OpenStudy(runs, st.Name)
	// Two different commands may give studies of the same name. Such studies have no file, so their
	// names must differ.
	another := func(its string) error {
		if Exists(file) || its == "" || its == file {
			return nil
		}
		return &Error{Err: fmt.Errorf("study %s already exists, from %s", st.Name, its), Hint: "Give this one another name with --name."}
	}
	switch its, err := folder.Identity(); {
	case err == nil && another(its.StudyFile) != nil:
		return "", another(its.StudyFile)
	case err == nil && !rundir.SameFile(its.StudyFile, file) && Exists(its.StudyFile):
		return "", &Error{Err: fmt.Errorf("%s has the runs of another study %s, from %s", folder.Path(), st.Name, its.StudyFile),
			Hint: "Give one of the two another name (study.name), or name another folder with --runs."}
	case err == nil:
		return folder, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", &Error{Err: err}
	}
	known := w.Recorded(ctx, st.Name)
	if err := another(known.File); err != nil {
		return "", err
	}
	home := rundir.Study(known.Home)
	if !holds(home, known.ID) || Exists(known.File) && !rundir.SameFile(known.File, file) {
		return folder, nil
	}
	if w.Runs != "" {
		return "", &Error{Err: fmt.Errorf("the runs of study %s are in %s, not in %s", st.Name, home.Path(), folder.Path()),
			Hint: "Leave --runs out, or move that folder first. In two folders the same runs would be started twice."}
	}
	w.Elsewhere(st.Name, home.Path())
	return home, nil
}

// FolderNamed finds the folder of a study's runs by the study's name: in Runs if that is
// set, else in $SCALEBENCH_RUNS or ./runs, else where the database has it.
func (w *Workspace) FolderNamed(ctx context.Context, name string) (rundir.Study, error) {
	runs, err := w.RunsHere()
	if err != nil {
		return "", err
	}
	folder := rundir.OpenStudy(runs, name)
	if w.Runs != "" || Exists(folder.Plan()) {
		return folder, nil
	}
	if known := w.Recorded(ctx, name); holds(rundir.Study(known.Home), known.ID) {
		w.Elsewhere(name, known.Home)
		return rundir.Study(known.Home), nil
	}
	return folder, nil
}

// Find returns the folder of a study's runs. arg is the path of the study file or the study's name.
func (w *Workspace) Find(ctx context.Context, arg string) (rundir.Study, error) {
	if filepath.Ext(arg) != ".toml" {
		return w.FolderNamed(ctx, arg)
	}
	st, err := study.Load(arg, framework.ForStudy())
	if err != nil {
		return "", &Error{Err: err}
	}
	site := study.DefaultSite()
	if st.Site != "" {
		if site, err = study.LoadSite(st.Site); err != nil {
			return "", &Error{Err: err}
		}
	}
	return w.FolderOf(ctx, st, site)
}

// SiteOf loads the site file named, else the site file that the study's file names, else the site
// file with which the study was last run or submitted. arg is the study's file or name. If it is ""
// and no site file is named, SiteOf returns the default site.
func (w *Workspace) SiteOf(ctx context.Context, arg, named string) (*study.Site, error) {
	load := func(path string) (*study.Site, error) {
		site, err := study.LoadSite(path)
		if err != nil {
			return nil, &Error{Err: err}
		}
		return site, nil
	}
	switch {
	case named != "":
		return load(named)
	case arg == "":
		return study.DefaultSite(), nil
	}
	folder, err := w.Find(ctx, arg)
	if err != nil {
		return nil, err
	}
	plan, err := launcher.PlanFiles(folder)
	if err != nil {
		plan = &study.Plan{} // never run, or unreadable, which the command will report
	}
	file := arg
	if filepath.Ext(arg) != ".toml" {
		file = cmp.Or(plan.StudyFile, w.Recorded(ctx, arg).File)
	}
	if st, err := study.Load(file, framework.ForStudy()); err == nil && st.Site != "" {
		return load(st.Site)
	}
	switch {
	case plan.SiteFile == "":
		return study.DefaultSite(), nil
	case Exists(plan.SiteFile):
		return load(plan.SiteFile)
	}
	site, err := launcher.UsedSite(folder, plan)
	if err != nil {
		return nil, &Error{Err: err}
	}
	return site, nil
}

// Recorded returns the database's record of a study. It is empty if the database cannot be read or
// does not have the study.
func (w *Workspace) Recorded(ctx context.Context, name string) store.Study {
	db, err := w.Open()
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

// Exists reports whether a path names something that exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return path != "" && err == nil
}

// holds reports whether a folder belongs to the study with that id.
func holds(folder rundir.Study, id string) bool {
	if folder == "" {
		return false
	}
	its, err := folder.Identity()
	return err == nil && its.ID == id
}

// errNotBegun returns an error that says that a study was never run in this folder, or that this user
// may not read it. Its hint lists the studies that were run.
func errNotBegun(folder rundir.Study, err error) error {
	if errors.Is(err, fs.ErrPermission) { // it may have been run
		return &Error{Err: fmt.Errorf("study %q cannot be read: %w", filepath.Base(folder.Path()), err)}
	}
	hint := "From another folder, give the study's file, or the folder of its runs with --runs DIR."
	if names, err := rundir.Studies(folder.Runs()); err == nil && len(names) > 0 {
		hint += " Studies here: " + strings.Join(names, ", ") + "."
	}
	why := fmt.Errorf("study %q has not been run or submitted: %w", filepath.Base(folder.Path()), err)
	if errors.Is(err, fs.ErrNotExist) {
		why = fmt.Errorf("study %q has not been run or submitted: there is no %s", filepath.Base(folder.Path()), folder.Path())
	}
	return &Error{Err: why, Hint: hint}
}
