package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
)

// StudyName returns the name of the study that an argument selects. The argument is the path of a
// study file or the name itself.
func StudyName(arg string) (string, error) {
	if filepath.Ext(arg) != ".toml" {
		return arg, nil
	}
	st, err := study.Load(arg, framework.ForStudy())
	if err != nil {
		return "", &Error{Err: err}
	}
	return st.Name, nil
}

// splitRun splits STUDY or STUDY/RUN into its parts. An empty part is an error: it usually comes
// from an unset shell variable, and would otherwise select every run.
func splitRun(arg string) (name, run string, err error) {
	if filepath.Ext(arg) == ".toml" {
		return arg, "", nil
	}
	name, run, sub := strings.Cut(arg, "/")
	switch {
	case name == "":
		return "", "", Errorf("%q names no study; write STUDY or STUDY/RUN", arg)
	case sub && run == "":
		return "", "", Errorf("%q names no run; %s alone is the whole study", arg, name)
	}
	return name, run, nil
}

// matchingNames returns a function that reports whether arg selects a run name (POINT-r1-a1). arg
// is the full name, or the name without attempt or repeat. Otherwise it may be a prefix, if all
// names that it matches belong to one point.
func matchingNames(arg string, names []string) (func(name string) bool, error) {
	exact := func(name string) bool { return launcher.Means(arg, name) }
	if slices.ContainsFunc(names, exact) {
		return exact, nil
	}
	var points []string
	for _, name := range names {
		if a, ok := rundir.ParseName(name); ok && strings.HasPrefix(name, arg) && !slices.Contains(points, a.Point) {
			points = append(points, a.Point)
		}
	}
	if n := len(points); n > 1 {
		slices.Sort(points)
		return nil, &Error{Err: fmt.Errorf("%q matches %d points", arg, n), Hint: "Name one of them: " + fewOf(points)}
	}
	return func(name string) bool { return strings.HasPrefix(name, arg) }, nil
}

// fewOf lists the first five names, and says how many more there are.
func fewOf(names []string) string { return strings.Join(number.Few(names, 5), ", ") }

// Folders returns the folder of the study that arg selects, or the folders of all studies if arg is
// "".
func (w *Workspace) Folders(ctx context.Context, arg string) ([]rundir.Study, error) {
	if arg != "" {
		folder, err := w.Find(ctx, arg)
		if err == nil {
			err = mustHaveBegun(folder)
		}
		return []rundir.Study{folder}, err
	}
	runs, err := w.RunsHere()
	if err != nil {
		return nil, err
	}
	names, err := rundir.Studies(runs)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, Errorf("no study in %s; `scalebench run STUDY` or `submit STUDY` creates one, --runs DIR names another folder", runs)
	}
	list := make([]rundir.Study, len(names))
	for i, name := range names {
		list[i] = rundir.OpenStudy(runs, name)
	}
	return list, nil
}

// mustHaveBegun returns an error if a study's folder has neither a plan nor an attempt.
func mustHaveBegun(folder rundir.Study) error {
	if _, err := os.Lstat(folder.Plan()); err != nil {
		if attempts, _ := folder.Attempts(); len(attempts) == 0 {
			return errNotBegun(folder, err)
		}
	}
	return nil
}

// readPlan reads a study's plan for a command that can continue without it, since each run also
// records its point. If the plan cannot be read, readPlan warns and returns an empty plan. The
// command then reports the returned error at its end.
func (w *Workspace) readPlan(folder rundir.Study) (*study.Plan, error) {
	plan, err := launcher.ReadPlan(folder)
	if err == nil {
		return plan, nil
	}
	w.Warn("%v; continuing with the runs found; what else is planned and which targets apply is unknown", err)
	return &study.Plan{}, &PartialError{Err: fmt.Errorf("the plan of study %q cannot be read, see the warning", filepath.Base(folder.Path())),
		Hint: "Move plan.json away, then `run` or `submit` the study's file, which writes a new one. Runs with a good result are not repeated."}
}

// Survey returns the states of attempts, asking the scheduler. It warns about run folders that
// cannot be read; unread is their number. An error means that the scheduler did not answer; the
// states are then read from the run folders alone.
func (w *Workspace) Survey(ctx context.Context, attempts []*launcher.Attempt) (states []launcher.State, unread int, err error) {
	states, err = launcher.Survey(ctx, attempts)
	var list []Warning
	for _, state := range states {
		if state.Err != nil {
			list = append(list, Warning{Kind: "run that cannot be read", Text: fmt.Sprintf("%s: %v", state.Record.ID, state.Err), Ask: AskOwner(state.Err)})
		}
	}
	w.WarnOf(list)
	return states, len(list), err
}

// Runs are the runs found in run folders: attempts, and planned runs without an attempt.
type Runs struct {
	States  []launcher.State
	Planned []launcher.Unbegun
}

// Where returns the runs that match a condition; "" matches all. A condition never matches an attempt whose
// folder cannot be read.
func (r Runs) Where(ctx context.Context, where string) (Runs, error) {
	if where == "" {
		return r, nil
	}
	var states []launcher.State
	var runs []metrics.Run
	for _, state := range r.States {
		if state.Unreadable == nil {
			states, runs = append(states, state), append(runs, state.Selectable())
		}
	}
	for _, p := range r.Planned {
		runs = append(runs, p.Selectable())
	}
	holds, err := store.Choose(ctx, runs, where)
	if err != nil {
		return Runs{}, StoreError(err)
	}
	var chosen Runs
	for i, state := range states {
		if holds[i] {
			chosen.States = append(chosen.States, state)
		}
	}
	for i, p := range r.Planned {
		if holds[len(states)+i] {
			chosen.Planned = append(chosen.Planned, p)
		}
	}
	return chosen, nil
}

// Status returns the runs of several studies that match the condition where. partial is an error
// about runs that cannot be read and schedulers that do not answer; the other runs are returned
// nevertheless.
func (w *Workspace) Status(ctx context.Context, folders []rundir.Study, where string) (runs Runs, partial, err error) {
	var all Runs
	var problems []error
	for _, folder := range folders {
		plan, unplanned := w.readPlan(folder)
		attempts, err := launcher.Attempts(folder)
		if err != nil {
			w.Warn("%v", err)
			problems = append(problems, Unread(1))
			continue
		}
		states, unread, unreachable := w.Survey(ctx, attempts)
		all.States = append(all.States, states...)
		all.Planned = append(all.Planned, launcher.NotBegun(plan, folder, attempts)...)
		problems = append(problems, unreachable, Unread(unread), unplanned)
	}
	runs, err = all.Where(ctx, where)
	return runs, errors.Join(problems...), err
}

// Missing improves the error if the database does not have a study: perhaps this user may not read
// its run folders. For other errors it returns StoreError(err).
func (w *Workspace) Missing(ctx context.Context, study string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return StoreError(err)
	}
	folder, wrong := w.FolderNamed(ctx, study)
	if wrong != nil {
		return StoreError(err)
	}
	attempts, wrong := launcher.Attempts(folder)
	for _, a := range attempts {
		wrong = cmp.Or(a.Unreadable, wrong)
	}
	if ask := AskOwner(wrong); ask != "" {
		return &Error{Err: fmt.Errorf("study %q: its runs in %s cannot be read: permission denied", study, folder.Path()), Hint: ask}
	}
	if wrong != nil {
		return &Error{Err: fmt.Errorf("study %q: its runs in %s cannot be read: %w", study, folder.Path(), wrong),
			Hint: "`scalebench status " + ShellQuote(study) + "` names each. Fix what it names, such as a file's owner, mode or content, then `scalebench collect`."}
	}
	return StoreError(err)
}
