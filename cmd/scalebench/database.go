package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/store"
)

// openStore opens the database for queries.
func (s *session) openStore() (*store.Store, error) { return s.workspace().Open() }

// findMeasure finds a measure by its name: a declared one, the time to a target,
// or one that a stored run's program or log reports. A value of a whole run that a
// program reports comes before a declared measure of places within runs.
func findMeasure(ctx context.Context, db *store.Store, name string) (measure.Measure, error) {
	m, unknown := measure.Find(name)
	if unknown == nil && m.At == "" {
		return m, nil
	}
	reported, err := db.Reported(ctx)
	if err != nil {
		return m, workspace.StoreError(err)
	}
	known := measure.Names()
	for _, r := range reported {
		if r.Name == name {
			return r, nil
		}
		known = append(known, r.Name)
	}
	if unknown == nil {
		return m, nil
	}
	if len(reported) > 0 {
		unknown = fmt.Errorf("%w; or one that runs report: %s", unknown, strings.Join(known[len(known)-len(reported):], ", "))
	}
	return m, &usageError{err: unknown, hint: study.SpellingHint(name, known)}
}
