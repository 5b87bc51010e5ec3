package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

func retryCommand(s *session) *cli.Command {
	var o submitOptions
	return &cli.Command{
		Name:      "retry",
		Usage:     "submit again the runs of a study that ended badly",
		ArgsUsage: "STUDY [RUN...]",
		Description: "STUDY is the path of the study's file, or its name: the study is then as it was\n" +
			"last submitted.\n\n" +
			"Each gets a new attempt, however many the policy would allow: all whose latest\n" +
			"attempt ended badly, or the RUNs named as `status` lists them. Runs that were\n" +
			"never begun are left to `submit`.",
		Flags: o.flags(),
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runRetry(c.Context, s, o, c.Args().Tail())
		},
	}
}

func runRetry(ctx context.Context, s *session, o submitOptions, runs []string) error {
	if err := checkInterval(o.interval); err != nil {
		return err
	}
	w, err := s.load(o.study, o.site)
	if err != nil {
		return err
	}
	choice, err := s.choice(ctx, w)
	if err != nil {
		return err
	}
	attempts, err := launcher.Attempts(w.folder)
	if err != nil {
		return err
	}
	states, unread, err := s.survey(ctx, attempts)
	if err != nil {
		return err
	}
	bad := endedBadly(w.plan, states, choice.Done)
	if len(runs) > 0 {
		if bad, err = namedRuns(bad, states, runs); err != nil {
			return err
		}
	}
	choice.Plan, choice.Asked = &study.Plan{Study: w.plan.Study}, map[rundir.Run]bool{}
	for _, b := range bad {
		if b.last.Record.Backend == launcher.Local {
			s.note("%s ran without a scheduler; `scalebench run %s` runs it again", b.last.Record.ID, o.study)
			continue
		}
		choice.Plan.Points = append(choice.Plan.Points, b.planned)
		choice.Asked[b.last.Run] = true
	}
	if len(choice.Plan.Points) == 0 {
		s.note("no run of %s that Slurm ran has ended badly; nothing to submit again", w.study.Name)
		return unreadable(unread)
	}
	return submit(ctx, s, w, choice, o)
}

// badEnd is a planned run and its latest attempt, which ended badly.
type badEnd struct {
	planned study.Planned
	last    launcher.State
}

// endedBadly lists the runs of the plan whose latest attempt ended badly, and
// that have neither a good result nor anything under way.
func endedBadly(plan *study.Plan, states []launcher.State, done func(string, int) bool) []badEnd {
	type key struct {
		point  string
		repeat int
	}
	attempts := map[key][]launcher.State{}
	for _, state := range states {
		k := key{state.Point.ID, state.Point.Repeat}
		attempts[k] = append(attempts[k], state)
	}
	var list []badEnd
	for _, p := range plan.Points {
		tried := attempts[key{p.Point.ID, p.Point.Repeat}]
		if len(tried) == 0 || done(p.Point.ID, p.Point.Repeat) ||
			slices.ContainsFunc(tried, func(s launcher.State) bool { return s.Status.Good() || !s.Status.Terminal() }) {
			continue
		}
		last := slices.MaxFunc(tried, func(a, b launcher.State) int { return a.Number - b.Number })
		list = append(list, badEnd{p, last})
	}
	return list
}

// namedRuns are those that the user names, each of which must have ended badly.
func namedRuns(bad []badEnd, states []launcher.State, runs []string) ([]badEnd, error) {
	var list []badEnd
	for _, name := range runs {
		i := slices.IndexFunc(bad, func(b badEnd) bool { return isRun(b.last.Attempt, name) })
		if i >= 0 {
			if !slices.ContainsFunc(list, func(b badEnd) bool { return b.last.Run == bad[i].last.Run }) {
				list = append(list, bad[i])
			}
			continue
		}
		var ids []string
		for _, b := range bad {
			ids = append(ids, b.last.Record.ID)
		}
		hint := "No run of the study has ended badly."
		if len(ids) > 0 {
			hint = "These ended badly: " + strings.Join(ids, ", ")
		}
		why := fmt.Errorf("there is no run %q in the study", name)
		for _, state := range states {
			if isRun(state.Attempt, name) {
				why = fmt.Errorf("%s is not to be tried again: it is %s, or a later attempt or the study stands in its place", state.Record.ID, state.Status)
			}
		}
		return nil, &usageError{err: why, hint: hint}
	}
	return list, nil
}
