package query

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/export"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
)

// Export returns the selected runs in the form that package export writes. o.Study may also name
// a run. one says that the format describes a single run. The caller closes the source's database.
func (r *Reader) Export(ctx context.Context, o Selection, one bool) (*export.Source, error) {
	run := ""
	if strings.Contains(o.Study, "/") && filepath.Ext(o.Study) != ".toml" {
		run, o.Study = o.Study, ""
	}
	db, filter, err := r.OpenFor(o)
	if err != nil {
		return nil, err
	}
	s, err := r.source(ctx, db, filter, run, one)
	if err != nil {
		db.Close()
		return nil, err
	}
	return s, nil
}

func (r *Reader) source(ctx context.Context, db *store.Store, filter store.Filter, run string, one bool) (*export.Source, error) {
	if run != "" {
		d, err := db.Show(ctx, run)
		if err != nil {
			return nil, workspace.StoreError(err)
		}
		filter.Study, run = d.Run.Study, d.Run.ID
	}
	rows, err := db.Runs(ctx, filter)
	if err != nil {
		return nil, workspace.StoreError(err)
	}
	if run != "" {
		rows = slices.DeleteFunc(rows, func(row store.RunRow) bool { return row.Run != run })
	}
	if len(rows) == 0 {
		if _, _, err := db.Observations(ctx, filter.Study); err != nil {
			return nil, r.Missing(ctx, filter.Study, err)
		}
		return nil, workspace.Errorf("no run of study %q matches", filter.Study)
	}
	if one && len(rows) > 1 {
		return nil, &workspace.Error{Err: fmt.Errorf("this format describes one run, and %s match", number.Count(len(rows), "run")),
			Hint: fmt.Sprintf("Name one of them instead of the study, such as %s; `scalebench runs --study %s` lists them.", rows[0].Run, filter.Study)}
	}
	name := filter.Study
	if one {
		name = rows[0].Run
	}
	return &export.Source{DB: db, Name: name, Program: "scalebench " + r.Version, Runs: rows}, nil
}
