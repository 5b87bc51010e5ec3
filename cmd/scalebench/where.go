package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

// whereFlag is the one way in which commands are told which runs they are about.
// Those that read run folders, which may not be collected, judge it by inFolders;
// those that read the database hand it to store.Filter.
func whereFlag(where *string) cli.Flag {
	return &cli.StringFlag{Name: "where", Destination: where,
		Usage: "only runs that match the SQL `CONDITION`: \"batch > 64 AND workers < 16\""}
}

// runsInFolders are runs of run folders: attempts, and what is planned and not begun.
type runsInFolders struct {
	states  []launcher.State
	planned []launcher.Unbegun
}

// inFolders leaves those runs for which the condition holds; "" holds for all. An
// attempt whose folder cannot be read says nothing of itself: no condition holds
// for it.
func inFolders(ctx context.Context, all runsInFolders, where string) (runsInFolders, error) {
	if where == "" {
		return all, nil
	}
	var states []launcher.State
	var runs []metrics.Run
	for _, state := range all.states {
		if state.Unreadable == nil {
			states, runs = append(states, state), append(runs, state.Selectable())
		}
	}
	for _, p := range all.planned {
		runs = append(runs, p.Selectable())
	}
	holds, err := store.Choose(ctx, runs, where)
	if err != nil {
		return runsInFolders{}, workspace.StoreError(err)
	}
	var chosen runsInFolders
	for i, state := range states {
		if holds[i] {
			chosen.states = append(chosen.states, state)
		}
	}
	for i, p := range all.planned {
		if holds[len(states)+i] {
			chosen.planned = append(chosen.planned, p)
		}
	}
	return chosen, nil
}
