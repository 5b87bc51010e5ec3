package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/cluster"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// A Request selects a study: a file or a name, with keys that replace the file's, or a command.
type Request struct {
	Study     string // path of the file, or name
	Site      string // site file; "" for the study's own
	Overrides []string
	Typed     bool                 // there is no file: Overrides is the whole study
	Nodes     *launcher.Allocation // nodes to plan for; nil means the site's
	Write     string               // file to write the study to; "" writes none
}

// A Work is a study to carry out.
type Work struct {
	Study  *study.Study
	Site   *study.Site
	Plan   *study.Plan
	Folder rundir.Study

	w      *Workspace
	asked  string // file or name, as requested
	typed  bool   // there is no file
	frozen bool   // study and site are as they last ran, not as in their files
	// overridden: the frozen study is not the file's, but one that keys from the command
	// line defined.
	overridden bool
	// The study without keys from the command line, and its plan; nil if there is no file or it cannot be
	// planned.
	file     *study.Study
	filePlan *study.Plan
	given    cluster.NamedFile
}

// Load reads a study and its site and plans it. A study given by name is loaded as it last ran, even if its
// file has changed.
func (w *Workspace) Load(ctx context.Context, r Request) (*Work, error) {
	k, err := w.read(ctx, r)
	if err != nil {
		return nil, err
	}
	k.asked, k.typed = r.Study, r.Typed
	if umask, shared := k.Study.Umask(); shared {
		syscall.Umask(umask)
	}
	k.given = cluster.NamedFile{Site: r.Site != "", Command: r.Typed || slices.ContainsFunc(k.Study.Overrides, func(o study.Override) bool { return o.Path == "command.run" })}
	if r.Nodes != nil {
		k.Site = r.Nodes.Site(k.Site)
	}
	if k.Folder == "" { // it has the study's key; an error is reported below
		if folder, err := w.FolderOf(ctx, k.Study, k.Site); err == nil {
			k.Folder = folder
		}
	}
	if k.Plan, err = k.plan(k.Study); err != nil {
		return nil, unplanned(r.Nodes, err)
	}
	if r.Write != "" {
		if err := w.write(r.Write, k.Study); err != nil {
			return nil, err
		}
	}
	if k.Folder == "" {
		if k.Folder, err = w.FolderOf(ctx, k.Study, k.Site); err == nil {
			k.Plan, err = k.plan(k.Study)
		}
	}
	if err == nil {
		k.planFile(len(r.Overrides) > 0)
	}
	return k, err
}

// unplanned explains why a study cannot be planned.
func unplanned(nodes *launcher.Allocation, err error) error {
	if nodes == nil {
		return &Error{Err: err}
	}
	return &Error{Err: fmt.Errorf("within the allocation of job %s (nodes: %d, CPUs per node: %d, GPUs per node: %d):\n%w", nodes.JobID, nodes.Nodes, nodes.CPUsPerNode, nodes.GPUsPerNode, err),
		Hint: "Instead, --local runs on this machine, and `submit` submits separate jobs."}
}

// read reads the study and the site that a request names.
func (w *Workspace) read(ctx context.Context, r Request) (*Work, error) {
	if !r.Typed {
		if k, err := w.lastRun(ctx, r.Study); k != nil || err != nil {
			if err == nil {
				err = k.override(r)
			}
			return k, err
		}
	}
	k := &Work{w: w, Site: study.DefaultSite()}
	var wrong []error // in the study and in the site file, reported together
	var err error
	if r.Typed {
		k.Study, err = study.Parse(r.Study, nil, framework.ForStudy(), r.Overrides...)
	} else {
		k.file, _ = study.Load(r.Study, framework.ForStudy()) // the overrides may correct its errors
		k.Study, err = study.Load(r.Study, framework.ForStudy(), r.Overrides...)
	}
	if err != nil {
		wrong = append(wrong, err)
	}
	site := r.Site
	if k.Study != nil {
		site = cmp.Or(site, k.Study.Site)
	}
	if site != "" {
		if k.Site, err = study.LoadSite(site); err != nil {
			wrong = append(wrong, err)
			if len(wrong) == 1 {
				_, err = k.Study.Plan(nil)
				wrong = append([]error{err}, wrong...)
			}
		}
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, &Error{Err: err}
	}
	return k, nil
}

// lastRun returns the named study and its site as they last ran, from the run folder; nil if arg is the path of
// a file.
func (w *Workspace) lastRun(ctx context.Context, arg string) (*Work, error) {
	if filepath.Ext(arg) == ".toml" {
		return nil, nil
	}
	folder, err := w.FolderNamed(ctx, arg)
	if err != nil {
		return nil, err
	}
	plan, err := launcher.ReadPlan(folder)
	if err == nil {
		k := &Work{w: w, frozen: true, Folder: folder, overridden: plan.Overridden}
		if k.Study, k.Site, err = launcher.LoadFrozen(folder, plan, framework.ForStudy()); err == nil {
			k.file = k.Study
			return k, nil
		}
	}
	if plan != nil || !errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Err: err}
	}
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && filepath.Ext(arg) != "" {
		return nil, nil
	}
	if strings.Contains(arg, "=") {
		return nil, &Error{Err: fmt.Errorf("%q is an override; the study comes first", arg), Hint: "Write the study's file or name before its overrides: STUDY " + arg}
	}
	runs := filepath.Dir(folder.Path())
	hint := "Give the path of its TOML file; --runs DIR names another folder."
	if names, err := rundir.Studies(runs); err == nil && len(names) > 0 {
		hint = "Give the path of its TOML file, or one of these: " + strings.Join(names, ", ")
	}
	return nil, &Error{Err: fmt.Errorf("%q is not a study file, and no study of that name has been run or submitted in %s", arg, runs), Hint: hint}
}

// override applies a request's keys and site file to a study as it last ran.
func (k *Work) override(r Request) (err error) {
	if len(r.Overrides) > 0 {
		if k.Study, err = study.Parse(k.Study.File, k.Study.Source(), framework.ForStudy(), r.Overrides...); err != nil {
			return &Error{Err: err}
		}
	}
	if r.Site != "" {
		if k.Site, err = study.LoadSite(r.Site); err != nil {
			return &Error{Err: err}
		}
	}
	return nil
}

// plan plans a study on the work's site. In records, digests replace the secrets of both.
func (k *Work) plan(st *study.Study) (*study.Plan, error) {
	database, unnamed := k.w.Database()
	if st.Secret() || k.Site.Private() {
		if unnamed != nil {
			return nil, unnamed
		}
		var err error
		if st.Key, err = launcher.Key(k.Folder, database); err != nil {
			return nil, err
		}
	}
	plan, err := st.Plan(k.Site)
	if err != nil || unnamed != nil || k.Folder == "" {
		return plan, err
	}
	return plan, launcher.Adopt(plan, k.Folder, database)
}

// planFile plans the study of the file, without the command line's keys.
func (k *Work) planFile(overridden bool) {
	file := k.file
	k.file = nil
	switch {
	case file == nil || file.Name != k.Study.Name:
	case !overridden:
		k.file, k.filePlan = k.Study, k.Plan
	default:
		if plan, err := k.plan(file); err == nil {
			k.file, k.filePlan = file, plan
		}
	}
}
