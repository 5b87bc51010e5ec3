package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// Retry returns which failed and cancelled runs to submit again: those that the names select (all
// without names) and whose latest attempts match the condition where. If none exist, it tells
// the user and returns nil. unread is the number of runs that cannot be read.
func (k *Work) Retry(ctx context.Context, runs []string, where string) (retry *launcher.Choice, unread int, err error) {
	if err := mustBeOurs(k.Folder, "repeat"); err != nil {
		return nil, 0, err
	}
	choice, err := k.Choice(ctx, false)
	if err != nil {
		return nil, 0, err
	}
	if err := mustHaveBegun(k.Folder); err != nil {
		return nil, 0, err
	}
	attempts, err := launcher.Attempts(k.Folder)
	if err != nil {
		return nil, 0, err
	}
	states, unread, err := k.w.Survey(ctx, attempts)
	if err != nil {
		return nil, unread, err
	}
	choice.Cancelled, choice.Exhausted = true, true
	all := *choice.Plan
	choice.Plan = &all
	all.Points = slices.Clone(all.Points)
	for _, p := range launcher.Added(k.Folder) {
		if !slices.ContainsFunc(all.Points, func(q study.Planned) bool { return q.Point.ID == p.Point.ID && q.Point.Repeat == p.Point.Repeat }) {
			all.Points = append(all.Points, p)
		}
	}
	bad := choice.EndedBadly(states)
	if len(runs) > 0 {
		if bad, err = namedRuns(bad, states, runs); err != nil {
			return nil, unread, err
		}
	}
	if bad, err = badEnds(ctx, bad, where); err != nil {
		return nil, unread, err
	}
	choice.Plan, choice.Asked = &study.Plan{Study: k.Plan.Study}, map[rundir.Folder]bool{}
	for _, b := range bad {
		if b.Last.Attached() {
			k.w.Note("%s ran on this machine, not under Slurm; `scalebench run %s` repeats it", b.Last.Record.ID, k.w.CommandWords(ctx, k.asked, k.asked))
			continue
		}
		choice.Plan.Points = append(choice.Plan.Points, b.Planned)
		choice.Asked[b.Last.Run] = true
	}
	switch {
	case len(choice.Plan.Points) > 0:
		return &choice, unread, nil
	case where != "":
		k.w.Note("no failed or cancelled run of %s matches --where; nothing to retry", k.Study.Name)
	default:
		k.w.Note("no run of %s under Slurm has failed or been cancelled; nothing to retry", k.Study.Name)
	}
	return nil, unread, nil
}

// badEnds returns the failed and cancelled runs whose latest attempt matches the condition where.
func badEnds(ctx context.Context, bad []launcher.BadEnd, where string) ([]launcher.BadEnd, error) {
	var all Runs
	for _, b := range bad {
		all.States = append(all.States, b.Last)
	}
	chosen, err := all.Where(ctx, where)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(bad, func(b launcher.BadEnd) bool {
		return !slices.ContainsFunc(chosen.States, func(s launcher.State) bool { return s.Run == b.Last.Run })
	}), nil
}

// namedRuns returns the runs that the names select. It returns an error if a name selects no
// failed or cancelled run.
func namedRuns(bad []launcher.BadEnd, states []launcher.State, runs []string) ([]launcher.BadEnd, error) {
	var names []string
	for _, state := range states {
		names = append(names, state.Run.Name())
	}
	chosen := map[rundir.Folder]bool{}
	for _, name := range runs {
		short := name
		if study, run, ok := strings.Cut(name, "/"); ok && len(states) > 0 && study == filepath.Base(states[0].Run.Study().Path()) {
			short = run
		}
		means, err := matchingNames(short, names)
		if err != nil {
			return nil, err
		}
		found := false
		for _, b := range bad {
			if means(b.Last.Run.Name()) {
				found, chosen[b.Last.Run] = true, true
			}
		}
		if !found {
			return nil, notBad(name, means, bad, states)
		}
	}
	return slices.DeleteFunc(slices.Clone(bad), func(b launcher.BadEnd) bool { return !chosen[b.Last.Run] }), nil
}

// notBad returns the error for a name that selects no failed or cancelled run.
func notBad(name string, means func(string) bool, bad []launcher.BadEnd, states []launcher.State) error {
	hint := "No run of the study has failed or been cancelled."
	if len(bad) > 0 {
		var ids []string
		for _, b := range bad {
			ids = append(ids, b.Last.Record.ID)
		}
		hint = "Failed or cancelled: " + strings.Join(ids, ", ")
	}
	why := fmt.Errorf("no run %q in the study", name)
	for _, state := range states {
		switch {
		case !means(state.Run.Name()):
		case state.Status.Terminal() && !state.Status.Good():
			why = fmt.Errorf("cannot retry %s: a later attempt has replaced it, or its point is no longer in the study", state.Record.ID)
		default:
			why = fmt.Errorf("cannot retry %s: status is %s", state.Record.ID, state.Status)
		}
	}
	return &Error{Err: why, Hint: hint}
}
