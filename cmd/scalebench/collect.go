package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/store"
)

func collectCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:      "collect",
		Usage:     "read run folders into the database",
		ArgsUsage: "[STUDY]",
		Description: "Safe to repeat, and safe while jobs run: each time it reads on from where it\n" +
			"stopped. Lines that are no events are reported with file and line, and the rest\n" +
			"is kept. Runs and plans that cannot be read are reported, the rest is collected,\n" +
			"and the exit code is 3. Without STUDY it collects every study in the run folders.",
		Action: func(c *cli.Context) error {
			folders, err := s.folders(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			var problems []error
			for _, folder := range folders {
				problems = append(problems, collectFolder(c.Context, s, folder))
			}
			return errors.Join(problems...)
		},
	}
}

// collectFolder reads one study's runs into the database.
func collectFolder(ctx context.Context, s *session, folder rundir.Study) error {
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		s.warn("%v", err)
		return unreadable(1)
	}
	states, unread, unreachable := s.survey(ctx, attempts)
	its, err := folder.Identity()
	if errors.Is(err, fs.ErrNotExist) {
		return &usageError{err: err, hint: "`scalebench run FILE` or `submit FILE` says whose runs these are; it begins none that has a result."}
	}
	if err != nil {
		return &usageError{err: err}
	}
	plan, unplanned := s.readPlan(folder)
	asked := askedNow(plan)
	file, err := s.database()
	if err != nil {
		return err
	}
	db, err := store.Open(file, store.Options{})
	if err != nil {
		return storeError(err)
	}
	defer db.Close()
	if err := s.register(ctx, db, folder, its); err != nil {
		return err
	}
	bar := s.startProgress("collecting", len(states))
	defer bar.stop()
	changed, events, bad := 0, 0, 0
	by := map[metrics.Status]int{}
	for _, state := range states {
		by[state.Status]++
		bar.advance(1)
		if state.Unreadable != nil {
			continue // survey has said so
		}
		report, err := collectRun(ctx, db, its, state, asked)
		var run *store.RunError
		switch {
		case errors.As(err, &run) && state.Err != nil:
			continue
		case errors.As(err, &run):
			s.warn("%v", err)
			unread++
			continue
		case err != nil:
			return storeError(err)
		}
		if report.Unread > 0 && state.Err == nil {
			unread++
		}
		for _, line := range report.BadLines {
			s.warn("%v", line)
		}
		for _, w := range report.Warnings {
			s.warn("%s: %s", state.Record.ID, w)
		}
		if report.Changed {
			changed++
		}
		events += report.Events
		bad += len(report.BadLines)
	}
	bar.stop()
	if n, err := db.Recompute(ctx); err != nil {
		return storeError(err)
	} else if n > 0 {
		s.note("computed %s of before again, by the rules of this version", count(n, "result"))
	}
	// A plan that cannot be read plans nothing new; what was planned before stays.
	if unplanned == nil {
		if err := db.SetPlanned(ctx, its.Name, plannedPoints(plan)); err != nil {
			return storeError(err)
		}
	}
	if err := db.Arrange(ctx); err != nil {
		return storeError(err)
	}
	var statuses []string
	for _, status := range metrics.Statuses {
		if n := by[status]; n > 0 {
			statuses = append(statuses, fmt.Sprintf("%d %s", n, status))
		}
	}
	if len(statuses) == 0 {
		statuses = []string{"none yet"}
	}
	s.note("collected %s into %s: %s (%d with news, %s, %s)", folder.Path(), db.Path(), strings.Join(statuses, ", "),
		changed, count(events, "event"), count(bad, "bad line"))
	return errors.Join(unreachable, unreadable(unread), unplanned)
}

// askedNow are the targets that the study asks of each point by now, which may
// be others than those of the day when the run was begun: its evaluations answer
// them all the same.
func askedNow(plan *study.Plan) map[string]any {
	asked := map[string]any{}
	for _, p := range plan.Points {
		asked[p.Point.ID] = p.Point.Parameters()[study.Targets]
	}
	return asked
}

func collectRun(ctx context.Context, db *store.Store, its rundir.Identity, state launcher.State, asked map[string]any) (store.Report, error) {
	files, err := state.Run.EventFiles()
	if err != nil {
		return store.Report{}, &store.RunError{Run: state.Record.ID, Err: err}
	}
	fact := state.Fact()
	fact.Study, fact.StudyID = its.Name, its.ID
	if targets, planned := asked[fact.Point]; planned && targets != nil {
		fact.Parameters[study.Targets] = targets
	}
	return db.Ingest(ctx, fact, files)
}
