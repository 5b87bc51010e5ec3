package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Cancel cancels the runs that arg selects (a study or STUDY/RUN; "" for all runs of all
// studies) and that match the condition where. Even with an error, it returns one Ending
// for each run that it cancelled.
func (w *Workspace) Cancel(ctx context.Context, arg, where string) ([]launcher.Ending, error) {
	name, run := "", ""
	if arg != "" {
		var err error
		if name, run, err = splitRun(arg); err != nil {
			return nil, err
		}
		folder, err := w.FolderNamed(ctx, name)
		if err == nil {
			err = mustBeOurs(folder, "cancel")
		}
		if err != nil {
			return nil, err
		}
	}
	folders, err := w.Folders(ctx, name)
	if err != nil {
		return nil, err
	}
	var all []launcher.Ending
	var problems []error
	for _, folder := range folders {
		endings, err := w.cancel(ctx, folder, run, where)
		all, problems = append(all, endings...), append(problems, err)
	}
	return all, errors.Join(problems...)
}

// cancel cancels the runs of one study that match the condition where. If run is not "",
// it only considers the runs with that name.
func (w *Workspace) cancel(ctx context.Context, folder rundir.Study, run, where string) ([]launcher.Ending, error) {
	if err := mustBeOurs(folder, "cancel"); err != nil {
		return nil, err
	}
	// Files in the folder name the jobs and processes to end, so other users must not be
	// able to write to it.
	if err := launcher.Trusted(folder); err != nil {
		return nil, err
	}
	w.Hold()
	// While another command submits, there may be a job whose id is not recorded yet.
	l, err := w.Lease(ctx, folder)
	var held *sharedfs.LeaseHeldError
	switch {
	case errors.As(err, &held):
		w.Warn("%s is still starting runs of %s: what it submits from now on is not cancelled; repeat this command when it is done", held.Holder, filepath.Base(folder.Path()))
	case err != nil:
		return nil, err
	default:
		defer l.Release()
	}
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		return nil, err
	}
	if run != "" {
		if attempts, err = attemptsOf(folder, attempts, run); err != nil {
			return nil, err
		}
	}
	states, unread, unreachable := w.Survey(ctx, attempts)
	chosen, err := Runs{States: states}.Where(ctx, where)
	if err != nil {
		return nil, err
	}
	endings, err := launcher.Cancel(ctx, chosen.States)
	if unreachable != nil {
		err = nil // the error repeats the report
	}
	if run != "" && len(endings) == 0 {
		last := states[len(states)-1]
		w.Note("%s has ended: %s", last.Record.ID, last.Status)
	}
	return endings, errors.Join(unreachable, err, Unread(unread))
}

// attemptsOf returns the attempts that a run's name selects: at least one, or an error.
func attemptsOf(folder rundir.Study, attempts []*launcher.Attempt, run string) ([]*launcher.Attempt, error) {
	names := make([]string, len(attempts))
	for i, a := range attempts {
		names[i] = a.Run.Name()
	}
	means, err := matchingNames(run, names)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(slices.Clone(attempts), func(a *launcher.Attempt) bool { return !means(a.Run.Name()) })
	if len(found) == 0 {
		return nil, &Error{Err: fmt.Errorf("no run %q in %s", run, folder.Path()),
			Hint: fmt.Sprintf("`scalebench status %s` lists its runs; --where chooses several, like --where 'workers = 2'.", filepath.Base(folder.Path()))}
	}
	return found, nil
}
