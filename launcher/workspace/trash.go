package workspace

import (
	"context"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics/store"
)

// followTrash updates the database from a study's folder: it forgets the runs in the
// trash and restores those that were taken out.
func followTrash(ctx context.Context, db *store.Store, forgotten []rundir.Attempt, study string, states []launcher.State) error {
	var gone, back []string
	for _, a := range forgotten {
		gone = append(gone, study+"/"+a.Run.Name())
	}
	known, err := db.Forgotten(ctx, study)
	if err != nil {
		return err
	}
	for _, s := range states {
		if slices.Contains(known, s.Record.ID) {
			back = append(back, s.Record.ID)
		}
	}
	if err := db.Forget(ctx, gone); err != nil {
		return err
	}
	return db.Restore(ctx, back)
}
