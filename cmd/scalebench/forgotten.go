package main

import (
	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
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
			number.Count(n, "forgotten run"), w.study.Name, w.study.Name, number.Them(n))
	}
	return nil
}
