package query

import (
	"context"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/scaling"
	"github.com/scalebench/scalebench/metrics/store"
)

// unread holds which of a study's runs cannot be read.
type unread struct {
	warning string // how many, and why the first of them cannot; "" if all can be read
	runs    string // how many, in words

	open []*launcher.Attempt // runs without a verdict, which may be queued or running
}

// err returns an error that says that an answer does without the runs; nil if all can be read.
func (u unread) err(study string) error {
	if u.warning == "" {
		return nil
	}
	return &workspace.PartialError{Err: fmt.Errorf("study %s: %s; the answer does without them", study, u.warning), Hint: workspace.MendRuns}
}

// noGoodRun returns the error for a study without good runs.
func (u unread) noGoodRun(study string) error {
	if u.warning == "" {
		return fmt.Errorf("study %q has no good run yet", study)
	}
	return fmt.Errorf("study %q has no good run that can be read: %s", study, u.warning)
}

// unread returns which of a study's runs cannot be read, and reports them to Partial. Runs that are
// already in the database do not count.
func (r *Reader) unread(ctx context.Context, db *store.Store, arg, name string, obs []scaling.Observation) (unread, error) {
	u, err := r.unreadIn(ctx, db, arg, name, obs)
	if err == nil && r.Partial != nil {
		r.Partial(name, u.err(name))
	}
	return u, err
}

func (r *Reader) unreadIn(ctx context.Context, db *store.Store, arg, name string, obs []scaling.Observation) (u unread, err error) {
	quiet := *r.Workspace
	quiet.Elsewhere = func(string, string) {} // where the runs are is no part of the answer
	folder, err := quiet.Find(ctx, arg)
	if err != nil {
		return u, err
	}
	measured := map[string]bool{}
	for i := range obs {
		measured[obs[i].Run] = true
	}
	list, open, all, err := launcher.Unread(folder, func(run string) bool { return measured[run] })
	if err != nil {
		u.runs = "the runs in " + folder.Path()
		u.warning = fmt.Sprintf("%s could not be read: %s", u.runs, causeOf(err))
		return u, nil
	}
	if u.open = open; len(list) == 0 {
		return u, nil
	}
	rows, err := db.Runs(ctx, store.Filter{Study: name})
	if err != nil {
		return u, workspace.StoreError(err)
	}
	collected := map[string]bool{}
	for _, row := range rows {
		collected[row.Run] = row.Status.Terminal()
	}
	var first *launcher.Attempt
	n := 0
	for _, a := range list {
		if collected[a.Record.ID] {
			continue
		}
		if n++; first == nil {
			first = a
		}
	}
	if n == 0 {
		return u, nil
	}
	u.runs = fmt.Sprintf("%d of %s", n, number.Count(all, "run"))
	u.warning = fmt.Sprintf("%s could not be read: %s", u.runs, strings.ReplaceAll(causeOf(first.Unreadable), folder.Path()+"/", ""))
	return u, nil
}

// causeOf returns a text that says why something could not be read. For another user's files
// it adds what to ask their owner.
func causeOf(err error) string {
	if ask := workspace.AskOwner(err); ask != "" {
		return err.Error() + ". " + strings.TrimSuffix(ask, ".")
	}
	return err.Error()
}
