package launcher

import (
	"fmt"
	"slices"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Remarks reads the user's tags and note of a run; ok is false if none exist.
func Remarks(run rundir.Folder) (r metrics.Remarks, ok bool, err error) {
	ok, err = readJSON(run, run.Remarks(), &r)
	if err == nil && ok {
		if err = r.Check(); err != nil {
			err = fmt.Errorf("%s: %w", run.Remarks(), err)
		}
	}
	return r, ok, err
}

// Remark writes the user's tags and note of a run. The caller must have the study's lease.
func Remark(run rundir.Folder, r metrics.Remarks) error {
	if r.Tags == nil {
		r.Tags = []string{}
	}
	slices.Sort(r.Tags)
	r.Tags = slices.Compact(r.Tags)
	if err := r.Check(); err != nil {
		return err
	}
	return rundir.WriteJSON(run.Remarks(), r, sharedfs.ModeOpen)
}
