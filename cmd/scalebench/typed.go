package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/report"
)

// studyOrCommand names the operands of commands that take a study or a command.
const studyOrCommand = overriddenStudy + " | -- COMMAND..."

const typedHelp = "-- COMMAND measures a command without a study file. It starts COMMAND once per worker,\n" +
	"each with its RANK, unchanged and without a shell, for each number of --workers. With\n" +
	"command.start=once it starts one copy, which reads {workers} and starts the others. The\n" +
	"study made from it is printed and kept like any other; --write also writes its file."

// commandFlags returns the options for a command that is measured without a study file.
func commandFlags(o *workspace.Command) []cli.Flag {
	const category = "With -- COMMAND"
	return []cli.Flag{
		&cli.StringFlag{Name: "workers", Category: category, Destination: &o.Workers, DefaultText: "1", Usage: "measure with `N,N,...` workers, or with counts of a range such as 1..64"},
		&cli.IntFlag{Name: "repeats", Category: category, Destination: &o.Repeats, DefaultText: "1", Usage: "run each worker count `N` times"},
		&cli.StringFlag{Name: "name", Category: category, Destination: &o.Name, DefaultText: "made from the command", Usage: "`NAME` of the study"},
		&cli.StringFlag{Name: "write", Category: category, Destination: &o.Write, Usage: "write the study to `FILE`, and read it from there"},
	}
}

// noteRange says which counts in a range of workers are measured.
func (s *session) noteRange(w *workspace.Work) {
	for _, line := range w.Range() {
		s.note("%s", line)
	}
}

// noteStudy says which keys differ from the file or, for a command, which study it creates.
func (s *session) noteStudy(a workspace.Request, w *workspace.Work) {
	if !a.Typed {
		s.noteOverrides(w)
		return
	}
	where := "--write FILE would keep it as a file"
	if a.Write != "" {
		where = "written to " + a.Write
	}
	s.note("study %s (%s); its runs are in %s:\n  %s", w.Study.Name, where, w.Folder.Path(), strings.ReplaceAll(strings.TrimSpace(string(w.Study.Source())), "\n", "\n  "))
	several := func(p study.Planned) bool { return p.Point.Workers > 1 && p.Point.Command.Start == "rank" }
	if slices.ContainsFunc(w.Plan.Points, several) {
		s.note("it starts one copy of the command per worker, each with its own RANK; a command that starts its workers itself takes their number by {workers}, and command.start=once before --")
	}
}

// timing prints the run times of a command study, for the points of its plan.
func (s *session) timing(ctx context.Context, w *workspace.Work) error {
	points := map[string]bool{}
	for _, p := range w.Plan.Points {
		points[p.Point.ID] = true
	}
	shown := func(m measure.Measure) bool { return m.Name == measure.RunSeconds }
	a, err := s.reader().Curves(ctx, query.Question{Study: w.Study.Name, Points: points, Measure: measure.RunSeconds, Shown: shown})
	if err != nil {
		return err
	}
	beside := slices.DeleteFunc(measure.ForKind("train"), func(m measure.Measure) bool {
		return !slices.Contains([]string{measure.RunSeconds, measure.Throughput, measure.FinalAccuracy}, m.Name)
	})
	slices.SortStableFunc(beside, func(a, b measure.Measure) int {
		if a.Name == measure.RunSeconds {
			return -1
		}
		return 0
	})
	if err := s.printEither(report.Timing(a.Curves), report.Measures(a.Curves, beside)); err != nil {
		return err
	}
	s.warnOn(a, s.forPeople())
	s.note("`scalebench scaling %[1]s`, `plot run_seconds %[1]s -o FILE` and `report %[1]s` show more.", w.Study.Name)
	return a.BaseError
}
