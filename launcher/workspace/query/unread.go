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

// unread returns a warning that states how many of a study's runs cannot be read, and why the
// first of them cannot; "" if all can be read. Runs that are already in the database do not
// count.
func (r *Reader) unread(ctx context.Context, db *store.Store, arg, name string, obs []scaling.Observation) (string, error) {
	folder, err := r.Find(ctx, arg)
	if err != nil {
		return "", err
	}
	measured := map[string]bool{}
	for i := range obs {
		measured[obs[i].Run] = true
	}
	list, all, err := launcher.Unread(folder, func(run string) bool { return measured[run] })
	if err != nil {
		return fmt.Sprintf("the runs in %s could not be read: %s", folder.Path(), causeOf(err)), nil
	}
	if len(list) == 0 {
		return "", nil
	}
	rows, err := db.Runs(ctx, store.Filter{Study: name})
	if err != nil {
		return "", workspace.StoreError(err)
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
		return "", nil
	}
	return fmt.Sprintf("%d of %s could not be read: %s", n, number.Count(all, "run"), strings.ReplaceAll(causeOf(first.Unreadable), folder.Path()+"/", "")), nil
}

// causeOf returns a text that says why something could not be read. For another user's files
// it adds what to ask their owner.
func causeOf(err error) string {
	if ask := workspace.AskOwner(err); ask != "" {
		return err.Error() + ". " + strings.TrimSuffix(ask, ".")
	}
	return err.Error()
}
