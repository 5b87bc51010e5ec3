package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
)

func retryCommand(s *session) *cli.Command {
	var o submitOptions
	var where string
	return &cli.Command{
		Name:      "retry",
		Usage:     "submit a study's failed and cancelled runs again",
		ArgsUsage: "STUDY [RUN...]",
		Description: "STUDY is the study's file, or its name: the study is then as it was last submitted.\n" +
			"\n" +
			"Each run whose latest attempt failed, was lost or was cancelled gets a new attempt,\n" +
			"even beyond policy.retries. RUN, as `status` lists it, selects one run, and\n" +
			"STUDY/POINT the runs of a point; a unique prefix is enough. Runs that never started\n" +
			"are left to `submit`.",
		Flags: append(o.flags(), whereFlag(&where)),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runRetry(c.Context, s, o, c.Args().Tail(), where)
		},
	}
}

func runRetry(ctx context.Context, s *session, o submitOptions, runs []string, where string) error {
	if err := checkInterval(o.interval); err != nil {
		return err
	}
	w, err := s.load(ctx, o.asked)
	if err != nil {
		return err
	}
	choice, err := s.choice(ctx, w, false)
	if err != nil {
		return err
	}
	if err := workspace.Begun(w.folder); err != nil {
		return err
	}
	attempts, err := launcher.Attempts(w.folder)
	if err != nil {
		return err
	}
	states, unread, err := s.workspace().Survey(ctx, attempts)
	if err != nil {
		return err
	}
	choice.Cancelled, choice.Exhausted = true, true
	all := *choice.Plan
	choice.Plan = &all
	all.Points = slices.Clone(all.Points)
	for _, p := range launcher.Added(w.folder) {
		if !slices.ContainsFunc(all.Points, func(q study.Planned) bool { return q.Point.ID == p.Point.ID && q.Point.Repeat == p.Point.Repeat }) {
			all.Points = append(all.Points, p)
		}
	}
	bad := choice.EndedBadly(states)
	if len(runs) > 0 {
		if bad, err = namedRuns(bad, states, runs); err != nil {
			return err
		}
	}
	if bad, err = badEnds(ctx, bad, where); err != nil {
		return err
	}
	choice.Plan, choice.Asked = &study.Plan{Study: w.plan.Study}, map[rundir.Folder]bool{}
	for _, b := range bad {
		if b.Last.Attached() {
			s.note("%s ran on this machine, not under Slurm; `scalebench run %s` repeats it", b.Last.Record.ID, s.usedOf(ctx, o.study, o.study))
			continue
		}
		choice.Plan.Points = append(choice.Plan.Points, b.Planned)
		choice.Asked[b.Last.Run] = true
	}
	if len(choice.Plan.Points) == 0 && where != "" {
		s.note("no failed or cancelled run of %s matches --where; nothing to retry", w.study.Name)
		return workspace.Unread(unread)
	}
	if len(choice.Plan.Points) == 0 {
		s.note("no run of %s under Slurm has failed or been cancelled; nothing to retry", w.study.Name)
		return workspace.Unread(unread)
	}
	return submit(ctx, s, w, choice, o)
}

// badEnds are those whose latest attempt the condition holds for.
func badEnds(ctx context.Context, bad []launcher.BadEnd, where string) ([]launcher.BadEnd, error) {
	var all workspace.Runs
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

// namedRuns are those that the user names, each of which must have ended badly.
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
		means, err := workspace.Matching(short, names)
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

// notBad is why none of the runs that a name means can be retried.
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
	return &usageError{err: why, hint: hint}
}
