package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/metrics/number"
)

// work is a study as a command is to carry it out.
type work struct {
	study  *study.Study
	site   *study.Site
	plan   *study.Plan
	folder rundir.Study
	frozen bool // study and site are as they were when last run, not as in their files
	// overridden: the frozen study is not the file's, but one that keys from the command
	// line defined.
	overridden bool
	// The study without the command line's keys, and its plan; nil where there is no file
	// or it cannot be planned.
	file     *study.Study
	filePlan *study.Plan
	given    cluster.NamedFile
}

func siteFlag(path *string) cli.Flag {
	return &cli.StringFlag{Name: "site", Destination: path,
		Usage: "site `FILE` with the settings of this cluster (default: study.site in the study)"}
}

// load reads a study and its site, and plans it. What is asked for is the path of the study's
// file or, of a study that was run or submitted, its name: it is then as it was
// the last time, whatever became of the file since.
func (s *session) load(ctx context.Context, a asked) (*work, error) {
	return s.loadOn(ctx, nil, a)
}

// loadOn is load for the nodes of an allocation, if there is one.
func (s *session) loadOn(ctx context.Context, nodes *launcher.Allocation, a asked) (*work, error) {
	w, err := (*work)(nil), error(nil)
	if !a.typed {
		w, err = s.named(ctx, a.study)
	}
	site, overrides := a.site, a.overrides
	if err != nil {
		return nil, err
	}
	var file *study.Study // without the overrides
	if w != nil {
		file = w.study
	} else if !a.typed {
		file, _ = study.Load(a.study, framework.ForStudy()) // or what is wrong is put right by the overrides
	}
	if w == nil {
		w = &work{site: study.DefaultSite()}
		var wrong []error // in the study and in the site file, told of together
		if a.typed {
			w.study, err = study.Parse(a.study, nil, framework.ForStudy(), overrides...)
		} else {
			w.study, err = study.Load(a.study, framework.ForStudy(), overrides...)
		}
		if err != nil {
			wrong = append(wrong, err)
		}
		if w.study != nil {
			site = cmp.Or(site, w.study.Site)
		}
		if site != "" {
			if w.site, err = study.LoadSite(site); err != nil {
				wrong = append(wrong, err)
				if len(wrong) == 1 {
					_, err = w.study.Plan(nil)
					wrong = append([]error{err}, wrong...)
				}
			}
		}
		if err := errors.Join(wrong...); err != nil {
			return nil, &usageError{err: err}
		}
	} else {
		if len(overrides) > 0 {
			if w.study, err = study.Parse(w.study.File, w.study.Source(), framework.ForStudy(), overrides...); err != nil {
				return nil, &usageError{err: err}
			}
		}
		if site != "" {
			if w.site, err = study.LoadSite(site); err != nil {
				return nil, &usageError{err: err}
			}
		}
	}
	if umask, shared := w.study.Umask(); shared {
		syscall.Umask(umask)
	}
	w.given = cluster.NamedFile{Site: a.site != "", Command: a.typed || slices.ContainsFunc(w.study.Overrides, func(o study.Override) bool { return o.Path == "command.run" })}
	if nodes != nil {
		w.site = nodes.Site(w.site)
	}
	if w.folder == "" { // which has the study's key; what is wrong with it is reported below
		if folder, err := s.folderOf(ctx, w.study, w.site); err == nil {
			w.folder = folder
		}
	}
	if w.plan, err = s.plan(w.study, w.site, w.folder); err != nil && nodes != nil {
		return nil, &usageError{err: fmt.Errorf("within the allocation of job %s (nodes: %d, CPUs per node: %d, GPUs per node: %d):\n%w", nodes.JobID, nodes.Nodes, nodes.CPUsPerNode, nodes.GPUsPerNode, err),
			hint: "Instead, --local runs on this machine, and `submit` submits separate jobs."}
	} else if err != nil {
		return nil, &usageError{err: err}
	}
	if err := a.keep(s, w.study); err != nil {
		return nil, err
	}
	if w.folder == "" {
		if w.folder, err = s.folderOf(ctx, w.study, w.site); err == nil {
			w.plan, err = s.plan(w.study, w.site, w.folder)
		}
	}
	switch {
	case err != nil || file == nil || file.Name != w.study.Name:
	case len(overrides) == 0:
		w.file, w.filePlan = w.study, w.plan
	default:
		if plan, unplanned := s.plan(file, w.site, w.folder); unplanned == nil {
			w.file, w.filePlan = file, plan
		}
	}
	return w, err
}

// freeze writes down what the study is from now on: its file, with the runs that keys
// from the command line add to it. Where there is no such file, or nothing of it was
// ever asked for, it is what was asked for now.
func (s *session) freeze(w *work) error {
	plan, st := *w.plan, w.study
	plan.Overridden = w.overridden || len(w.study.Overrides) > 0
	if w.file != nil && !w.overridden {
		if of := launcher.Extend(w.folder, w.filePlan, w.plan, study.OnAxes(w.study.Overrides)); of != nil {
			plan, st = *of, w.file
		}
	}
	if others := launcher.Others(&plan, w.plan); others > 0 {
		s.note("%s not in %s; `%s scaling %s --unplanned` shows them", number.Are(others, "point"), near(w.study.File), appName, w.study.Name)
	}
	return launcher.Freeze(w.folder, &plan, st, w.site)
}

// named is the study and the site that a study's name stands for, from its run
// folder; nil where arg is the path of a file.
func (s *session) named(ctx context.Context, arg string) (*work, error) {
	if filepath.Ext(arg) == ".toml" {
		return nil, nil
	}
	folder, err := s.folderNamed(ctx, arg)
	if err != nil {
		return nil, err
	}
	plan, err := launcher.ReadPlan(folder)
	if err == nil {
		w := &work{frozen: true, folder: folder, overridden: plan.Overridden}
		if w.study, w.site, err = launcher.Thaw(folder, plan, framework.ForStudy()); err == nil {
			return w, nil
		}
	}
	if plan != nil || !errors.Is(err, fs.ErrNotExist) {
		return nil, &usageError{err: err}
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && filepath.Ext(arg) != "" {
		return nil, nil
	}
	if strings.Contains(arg, "=") {
		return nil, &usageError{err: fmt.Errorf("%q is an override; the study comes first", arg), hint: "Write the study's file or name before its overrides: STUDY " + arg}
	}
	hint := "Give the path of its TOML file; --runs DIR names another folder."
	if names, err := rundir.Studies(filepath.Dir(folder.Path())); err == nil && len(names) > 0 {
		hint = "Give the path of its TOML file, or one of these: " + strings.Join(names, ", ")
	}
	return nil, &usageError{err: fmt.Errorf("%q is not a study file, and no study of that name has been run or submitted in %s", arg, filepath.Dir(folder.Path())), hint: hint}
}

// options are what a backend begins this command's attempts with.
func (s *session) options(ctx context.Context, w *work) (launcher.Options, error) {
	worker, err := launcher.Worker(w.site.Worker)
	if err != nil {
		return launcher.Options{}, &usageError{err: err}
	}
	named := []string{worker, w.site.Template}
	if !w.frozen {
		named = append(named, w.study.File, w.site.File)
	}
	if err := trust.Named(named...); err != nil {
		return launcher.Options{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(w.site.Pythons)) {
		if _, err := framework.Find(name); err != nil {
			return launcher.Options{}, &usageError{err: fmt.Errorf("%s: pythons.%s: %w", w.site.File, name, err)}
		}
	}
	var commit string
	s.whole(func() { commit = launcher.Revision(ctx, filepath.Dir(w.study.File)) })
	if ctx.Err() != nil { // git was not heard out
		return launcher.Options{}, context.Cause(ctx)
	}
	creator := launcher.Creator{Folder: w.folder, Site: w.site, Shared: w.study.Share == study.ShareGroup, Key: w.study.Key, Version: version.String(), Commit: commit,
		Worker: worker, Every: w.study.Telemetry.Every}
	return launcher.Options{Creator: creator, Policy: w.study.Policy}, nil
}
