package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/number"
)

func collectCommand(s *session) *cli.Command {
	var again bool
	return &cli.Command{
		Name:      "collect",
		Usage:     "read run folders into the database",
		ArgsUsage: "[STUDY]",
		Description: "Safe to repeat, and safe while jobs run: each time it continues where it stopped.\n" +
			"Targets and [[extract]] patterns come from the study as last run or submitted, and\n" +
			"apply to existing runs whose output is still there. Lines that are not events are\n" +
			"reported with file and line. Runs and plans that cannot be read are reported, the\n" +
			"rest is collected, and the exit code is 3. Without STUDY it collects every study in\n" +
			"the run folders.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "again", Destination: &again, DisableDefaultText: true,
			Usage: "read the output of your own programs again, even if the study's patterns have not changed"}},
		Action: func(c *cli.Context) error {
			folders, err := s.folders(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			if file := c.Args().First(); filepath.Ext(file) == ".toml" && edited(file, folders[0]) {
				used := s.usedOf(c.Context, file, file)
				s.note("%s has changed since the study was last run or submitted; `scalebench run %s` or `submit %s` applies the change and repeats no run that has a result", file, used, used)
			}
			var problems []error
			for _, folder := range folders {
				err := collectFolder(c.Context, s, folder, again)
				var whose *whoseError
				if errors.As(err, &whose) && c.Args().First() == "" { // it keeps nothing from the others
					s.warn("%v\n%s", err, hintFor(err))
					err = &skippedError{folder.Path()}
				}
				problems = append(problems, err)
			}
			return errors.Join(problems...)
		},
	}
}

// maxStudyFile is more bytes than a study file can have.
const maxStudyFile = 16 << 20

// edited reports whether a study file has changed since its study was last run or
// submitted.
func edited(file string, folder rundir.Study) bool {
	now, err := rundir.ReadFile(file)
	then, missing := folder.ReadFile(folder.StudyFile(), maxStudyFile)
	return err == nil && missing == nil && !bytes.Equal(now, then)
}

// collectFolder reads one study's runs into the database.
func collectFolder(ctx context.Context, s *session, folder rundir.Study, again bool) error {
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		s.warn("%v", err)
		return unreadable(1)
	}
	if slices.ContainsFunc(attempts, func(a *launcher.Attempt) bool { return a.Unkeyed }) {
		if attempts, err = s.keyed(folder, attempts); err != nil {
			return err
		}
	}
	states, unread, unreachable := s.survey(ctx, attempts)
	its, err := whose(folder)
	if err != nil {
		return err
	}
	plan, unplanned := s.readPlan(folder)
	file, err := s.database()
	if err != nil {
		return err
	}
	s.hold()
	db, err := workspace.OpenForWriting(file)
	if err != nil {
		return workspace.StoreError(err)
	}
	defer db.Close()
	if err := s.workspace().Register(ctx, db, folder, its); err != nil {
		return err
	}
	forgotten, err := folder.Forgotten()
	if err != nil {
		s.warn("%v; runs already forgotten in the database stay forgotten", err)
		unread++
	}
	if err := forgottenSince(ctx, db, forgotten, its.Name, states); err != nil {
		return workspace.StoreError(err)
	}
	if unreachable == nil {
		s.recordEnergy(ctx, states)
	}
	c := &collection{s: s, db: db, its: its, asked: askedNow(plan), again: again, kept: map[string]int{}, by: map[metrics.Status]int{}, unread: unread}
	if err := c.all(ctx, states); err != nil {
		return workspace.StoreError(err)
	}
	if unplanned != nil { // a plan that cannot be read plans nothing new; what was planned before stays
		plan = nil
	}
	if err := c.arrange(ctx, folder, plan); err != nil {
		return workspace.StoreError(err)
	}
	s.note("collected %s into %s: %s", folder.Path(), db.Path(), c)
	return errors.Join(unreachable, unreadable(c.unread), unplanned)
}

// whose is which study the runs in a folder are of.
func whose(folder rundir.Study) (rundir.Identity, error) {
	its, err := folder.Identity()
	if err == nil {
		return its, nil
	}
	hint := "`scalebench run FILE` or `submit FILE` records which study this is; runs with a result are not repeated."
	if !errors.Is(err, fs.ErrNotExist) {
		hint = "Move identity.json away. Then " + hint
	}
	return its, &usageError{err: &whoseError{err}, hint: hint}
}

// keyed reads attempts with plain secrets again, once the folder has a key for their
// digests: each collect makes the same ones. Another user's folder gets none.
func (s *session) keyed(folder rundir.Study, attempts []*launcher.Attempt) ([]*launcher.Attempt, error) {
	database, err := s.database()
	if err != nil {
		return nil, err
	}
	if err := launcher.KeepKey(folder, database); err != nil {
		s.warn("%v; digests of plain secrets in %s will change with each collect", err, folder.Path())
		return attempts, nil
	}
	return launcher.Attempts(folder)
}

// recordEnergy has the energy of runs under Slurm written down, where it reads one. No
// answer keeps nothing from being collected.
func (s *session) recordEnergy(ctx context.Context, states []launcher.State) {
	a, err := launcher.RecordEnergy(ctx, states)
	if err != nil {
		s.note("energy was not read from Slurm's accounting: %v", err)
	}
	if a.Meter == "" {
		return
	}
	if a.Recorded > 0 {
		s.note("read the energy of %s from Slurm's accounting", number.Count(a.Recorded, "run"))
	}
	if a.Unknown > 0 && err == nil {
		s.note("Slurm's accounting has no energy of %s (yet)", number.Count(a.Unknown, "run"))
	}
	if a.Shared > 0 {
		s.note("did not read the energy of %s from Slurm's accounting: it is of whole nodes, which they may have shared; with resources.exclusive = true they have them to themselves", number.Count(a.Shared, "run"))
	}
}

// question is what the study asks of the runs of a point by now, which may be
// another thing than on the day when they were begun.
type question struct {
	asked   map[string]any // the point's questions, by key
	reading framework.Reading
}

// questionsOf are those among a point's parameters.
func questionsOf(parameters map[string]any) map[string]any {
	asked := map[string]any{}
	for _, key := range measure.QuestionKeys() {
		if v := parameters[key]; v != nil {
			asked[key] = v
		}
	}
	return asked
}

// ask puts questions in place of those that a run was begun with.
func ask(parameters, asked map[string]any) {
	for _, key := range measure.QuestionKeys() {
		delete(parameters, key)
	}
	maps.Copy(parameters, asked)
}

// askedNow are the plan's questions by point.
func askedNow(plan *study.Plan) map[string]question {
	asked := map[string]question{}
	for _, p := range plan.Points {
		asked[p.Point.ID] = question{questionsOf(p.Point.Parameters()), framework.ReadingOf(p.Point.Command)}
	}
	return asked
}
