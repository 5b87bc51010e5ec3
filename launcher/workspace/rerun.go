package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
	"github.com/scalebench/scalebench/slurm"
)

// Rerun returns a hint: the command that gives the study more good runs. It depends on the state of
// its runs. Commands that start runs need the study's file; if arg is the study's name, Rerun finds
// the file in the database.
func (w *Workspace) Rerun(ctx context.Context, db *store.Store, arg, name string) string {
	file := arg
	if file == name {
		file += ".toml"
		switch known, err := db.Study(ctx, name); {
		case err == nil && known.Imported():
			return "Its runs were imported: `scalebench import` adds more"
		case err == nil && known.File != "":
			file = Near(known.File)
		}
	}
	folder, err := w.Find(ctx, arg)
	if err != nil {
		return next(name, ShellQuote(file), launcher.Progress{})
	}
	if owner := Foreign(folder); owner != "" {
		return fmt.Sprintf("Study %s belongs to %s, who can measure more runs; then `scalebench collect %s`", name, owner, name)
	}
	plan, err := launcher.ReadPlan(folder)
	if err != nil {
		return next(name, ShellQuote(file), launcher.Progress{})
	}
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		return next(name, ShellQuote(file), launcher.Progress{})
	}
	return next(name, asUsed(file, plan), launcher.ProgressOf(plan, attempts))
}

// CommandWords returns the words that name a study in a command. For a study file, it adds the site file
// with which the study was last run, unless the study names that site file itself. A study given by
// name needs no site file.
func (w *Workspace) CommandWords(ctx context.Context, arg, file string) string {
	if filepath.Ext(file) != ".toml" {
		return ShellQuote(file)
	}
	if folder, err := w.Find(ctx, arg); err == nil {
		if plan, err := launcher.ReadPlan(folder); err == nil {
			return asUsed(file, plan)
		}
	}
	return ShellQuote(file)
}

// asUsed returns the words for a study with this plan. A study that keys from the command line
// define is given by name: its file describes another one.
func asUsed(file string, plan *study.Plan) string {
	if plan.Overridden {
		return ShellQuote(plan.Study)
	}
	words := ShellQuote(file)
	if plan.SiteFile == "" {
		return words
	}
	if st, err := study.Load(file, framework.ForStudy()); err == nil {
		if site, err := filepath.Abs(st.Site); err == nil && st.Site != "" && site == plan.SiteFile {
			return words
		}
	}
	return words + " --site " + ShellQuote(Near(plan.SiteFile))
}

// next returns a text that says what to do to get more good runs of a study, given the number of
// its runs in each state.
func next(name, file string, p launcher.Progress) string {
	var todo []string
	if p.Underway > 0 {
		todo = append(todo, fmt.Sprintf("%s waiting or running, see `scalebench status %s`", number.Are(p.Underway, "run"), name))
	}
	if p.Ended > 0 {
		todo = append(todo, fmt.Sprintf("`scalebench retry %s` submits %s again (`scalebench status %s` says why)", name, failedRuns(p.Ended, p.Cancelled), name))
	}
	if p.EndedHere > 0 {
		todo = append(todo, fmt.Sprintf("`scalebench run %s` repeats %s (`scalebench status %s` says why)", file, failedRuns(p.EndedHere, 0), name))
	}
	switch {
	case p == launcher.Progress{}:
		todo = append(todo, fmt.Sprintf("run it with `scalebench run %s` or `scalebench submit %s`", file, file))
	case p.Unbegun == 1:
		todo = append(todo, fmt.Sprintf("`scalebench run %s` or `scalebench submit %s` starts the run that has not started", file, file))
	case p.Unbegun > 1:
		todo = append(todo, fmt.Sprintf("`scalebench run %s` or `scalebench submit %s` starts the %d runs that have not started", file, file, p.Unbegun))
	}
	text := strings.Join(append(todo, fmt.Sprintf("then `scalebench collect %s`", name)), "; ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// failedRuns returns "the failed run", "the 3 cancelled runs" and the like.
func failedRuns(ended, cancelled int) string {
	how := "failed"
	switch {
	case cancelled == ended:
		how = "cancelled"
	case cancelled > 0:
		return fmt.Sprintf("the %d runs that failed or were cancelled", ended)
	}
	if ended == 1 {
		return "the " + how + " run"
	}
	return fmt.Sprintf("the %d %s runs", ended, how)
}

// Near returns a path relative to the current folder if it is below that folder, else unchanged.
func Near(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if below, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(below) {
		return below
	}
	return path
}

// ShellQuote quotes a text as one word of a shell.
func ShellQuote(text string) string {
	if quoted, err := slurm.Quote(text); err == nil {
		return quoted
	}
	return text // it has a NUL, which no study file or path has
}
