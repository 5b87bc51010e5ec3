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
	"github.com/scalebench/scalebench/launcher/notify"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// A Request selects a study by its file, its name or a command, and changes some of its keys.
type Request struct {
	Study     string // path of the file, or name
	Site      string // site file; "" for the site file that the study names
	Overrides []string
	Typed     bool                 // the study is a command without a file: Overrides has all its keys
	Nodes     *launcher.Allocation // nodes to plan for; nil means the site's
	Write     string               // file to write the study to; "" writes none
}

// A Work is a study that is about to be run or submitted: with its site, its plan and its run
// folder.
type Work struct {
	Study  *study.Study
	Site   *study.Site
	Plan   *study.Plan
	Folder rundir.Study
	Sender *notify.Sender // of messages

	whole  *study.Plan // the plan of which Plan is a batch; else nil
	w      *Workspace
	asked  string // file or name, as requested
	typed  bool   // the study was typed as a command, without a file
	frozen bool   // study and site were loaded as they were last run, not from their present files
	// overridden is set if the study was last run with KEY=VALUE arguments, so that it differs from
	// its file.
	overridden bool
	// The study of the file without KEY=VALUE arguments, and its plan. Both are nil if there is no
	// file, or if it cannot be planned.
	file     *study.Study
	filePlan *study.Plan
	given    cluster.NamedFile
}

// Load reads a study and its site file and expands the study into a plan. A study given by name is
// loaded as it was last run, even if its file has changed since.
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
	if k.Folder == "" { // the folder has the key for digests of secrets; an error is reported below
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
	k.Sender = &notify.Sender{Folder: k.Folder, To: k.Study.Notify}
	if !k.Study.Notify.Set() {
		k.Sender.To = k.Site.Notify
	}
	return k, err
}

// unplanned returns the error for a study that cannot be planned. Within a job's allocation, it
// describes the allocation.
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
	var wrong []error // errors of the study and of the site file, reported together
	var err error
	if r.Typed {
		k.Study, err = study.Parse(r.Study, nil, framework.ForStudy(), r.Overrides...)
	} else {
		k.file, _ = study.Load(r.Study, framework.ForStudy()) // an error is ignored, because the overrides may correct it
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

// lastRun loads the study named arg and its site from the run folder, as they were last run. It
// returns nil if arg is the path of a file.
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

// override applies the keys and the site file of a request to a study that lastRun returned.
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

// plan expands a study into a plan for the site. Where study and site have secrets, the records of
// the runs have digests instead.
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

// planFile expands the study file into a plan, ignoring KEY=VALUE arguments, and stores both.
// overridden reports whether there are such arguments.
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
