package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/number"
)

func againFlag(again *bool) cli.Flag {
	return &cli.BoolFlag{Name: "again", Destination: again, DisableDefaultText: true,
		Usage: "repeat runs that used other versions of your own files; earlier results stay"}
}

// choice is what of the plan is to be begun: what has no good result here or in
// the database and, if asked to, what has one of other versions.
func (s *session) choice(ctx context.Context, w *work, again bool) (launcher.Choice, error) {
	stored, err := s.workspace().Results(ctx, w.study.Name, w.folder)
	if err != nil {
		return launcher.Choice{}, err
	}
	choice := launcher.Choice{Plan: w.plan, Policy: w.study.Policy,
		Done: func(point string, repeat int) bool { return stored.Done[planned(point, repeat)] },
		Last: func(point string, repeat int) int { return stored.Last[planned(point, repeat)] }}
	if err := s.tellForgotten(w, stored); err != nil {
		return choice, err
	}
	if !again {
		return choice, nil
	}
	list, err := outdated(w, stored)
	if err != nil {
		return choice, err
	}
	choice.Outdated = map[rundir.Folder]bool{}
	for _, o := range list {
		choice.Outdated[o.Run] = true
		delete(stored.Done, planned(o.Point, o.Repeat))
	}
	return choice, nil
}

// outdated are the study's results of other versions of the user's own files.
func outdated(w *work, stored workspace.Results) ([]launcher.Outdated, error) {
	attempts, err := launcher.Attempts(w.folder)
	if err != nil {
		return nil, err
	}
	versions := launcher.Versions{Stored: func(point string, repeat int) map[string]string { return stored.Made[planned(point, repeat)] }}
	return versions.Outdated(w.plan, attempts), nil
}

// tellOutdated says which results are of other versions: they are not measured
// again unasked, and do not pass for what is there now.
func (s *session) tellOutdated(ctx context.Context, w *work) error {
	stored, err := s.workspace().Results(ctx, w.study.Name, w.folder)
	if err != nil {
		return err
	}
	list, err := outdated(w, stored)
	if err != nil {
		return err
	}
	for _, line := range outdatedLines(list) {
		s.note("%s; use --again to measure again", line)
	}
	return nil
}

// outdatedLines say how many results are of which other versions.
func outdatedLines(list []launcher.Outdated) []string {
	runs := map[string]int{}
	var order []string
	for _, o := range list {
		var changes []string
		for _, c := range o.Changes {
			was, is := briefly(c.Was, c.Is)
			changes = append(changes, fmt.Sprintf("%s (%s… → %s…)", c.File, was, is))
		}
		text := "another version of " + strings.Join(changes, " and of ")
		if !slices.Contains(order, text) {
			order = append(order, text)
		}
		runs[text]++
	}
	var lines []string
	for _, text := range order {
		verb := "are"
		if runs[text] == 1 {
			verb = "is"
		}
		lines = append(lines, fmt.Sprintf("%s %s from %s", number.Count(runs[text], "result"), verb, text))
	}
	return lines
}

// briefly are the first digits of two digests, as many as tell them apart.
func briefly(a, b string) (string, string) {
	n := 4
	for n < min(len(a), len(b)) && a[:n] == b[:n] {
		n++
	}
	return a[:min(n, len(a))], b[:min(n, len(b))]
}
