package main

import (
	"context"
	"slices"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/store"
)

// What the other commands make of forgotten runs.

// tellForgotten says which of a plan's runs are measured again because their
// results are forgotten.
func (s *session) tellForgotten(w *work, stored workspace.Results) error {
	if len(stored.Forgotten) == 0 {
		return nil
	}
	attempts, err := launcher.Attempts(w.folder)
	if err != nil {
		return err
	}
	there := map[workspace.Repeat]bool{}
	for _, a := range attempts {
		there[planned(a.Point.ID, a.Point.Repeat)] = true
	}
	n := 0
	for _, p := range w.plan.Points {
		if at := planned(p.Point.ID, p.Point.Repeat); stored.Forgotten[at] && !stored.Done[at] && !there[at] {
			n++
		}
	}
	if n > 0 {
		s.note("measuring %s of %s again; `scalebench forget --restore %s` brings %s back instead",
			number.Count(n, "forgotten run"), w.study.Name, w.study.Name, them(n))
	}
	return nil
}

// forgottenSince brings the database in line with a study's folder: what is in
// the trash is forgotten, what is back from there is not.
func forgottenSince(ctx context.Context, db *store.Store, forgotten []rundir.Attempt, study string, states []launcher.State) error {
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

// are and have are counts with their verb: "1 run is", "2 runs have".
func are(n int, noun string) string {
	if n == 1 {
		return number.Count(n, noun) + " is"
	}
	return number.Count(n, noun) + " are"
}

func have(n int, noun string) string {
	if n == 1 {
		return number.Count(n, noun) + " has"
	}
	return number.Count(n, noun) + " have"
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}
