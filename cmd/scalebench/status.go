package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/table"
)

func statusCommand(s *session) *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "how far every run is, by the scheduler and the runs' own events",
		ArgsUsage: "[STUDY]",
		Description: "Throughput so far is rank 0's rate times the number of workers, over its last\n" +
			"steps: for watching. Results come from all ranks, after collect.",
		Action: func(c *cli.Context) error {
			return runStatus(c.Context, s, c.Args().First())
		},
	}
}

func runStatus(ctx context.Context, s *session, arg string) error {
	folders, err := s.folders(ctx, arg)
	if err != nil {
		return err
	}
	t := statusTable()
	var problems []error
	for _, folder := range folders {
		problems = append(problems, statusRows(ctx, s, t, folder))
	}
	if err := s.print(t); err != nil {
		return err
	}
	return errors.Join(problems...)
}

// statusRows adds a row for each attempt in the folder, and one for each
// planned run that has none.
func statusRows(ctx context.Context, s *session, t *table.Table, folder rundir.Study) error {
	plan, unplanned := s.readPlan(folder)
	attempts, err := launcher.Attempts(folder)
	if err != nil {
		s.warn("%v", err)
		return unreadable(1)
	}
	states, unread, unreachable := s.survey(ctx, attempts)
	begun := map[rundir.Folder]bool{}
	for _, state := range states {
		begun[folder.Run(state.Point.ID, state.Point.Repeat, 1)] = true
		addStatus(t, state)
	}
	for _, p := range plan.Points {
		run := folder.Run(p.Point.ID, p.Point.Repeat, 1)
		if !begun[run] {
			addPlanned(t, run, p.Point)
		}
	}
	return errors.Join(unreachable, unreadable(unread), unplanned)
}

// statusTable is an empty table for addStatus and addPlanned.
func statusTable() *table.Table {
	return &table.Table{Columns: []table.Column{
		{Key: "run"}, {Key: "workers"}, {Key: "status"}, {Key: "job"}, {Key: "slurm_state", Head: "Slurm"}, {Key: "reason"},
		{Key: "epoch"}, {Key: "step"}, {Key: "throughput", Head: "throughput so far", Unit: "samples/s"}, {Key: "accuracy"}, {Key: "detail"},
	}}
}

// addStatus adds how far an attempt is.
func addStatus(t *table.Table, state launcher.State) {
	var job, word, reason, epoch, step, rate, accuracy any
	if j := state.Job; j != nil {
		job, word, reason = j.ID, table.NonZero(j.State), table.NonZero(j.Reason)
	}
	if traces := state.Traces; traces.Begun {
		if state.Point.Workload.Trains() {
			epoch, step = traces.Epoch, traces.Step
		}
		if traces.Throughput > 0 {
			rate = traces.Throughput
		}
		if traces.Accuracy != nil {
			accuracy = *traces.Accuracy
		}
	}
	t.Add(state.Record.ID, table.NonZero(state.Point.Workers), string(state.Status), job, word, reason, epoch, step, rate, accuracy, table.NonZero(state.Detail))
}

// addPlanned adds a run that was not begun yet; run is its first attempt.
func addPlanned(t *table.Table, run rundir.Folder, p study.Point) {
	t.Add(run.ID(), p.Workers, string(metrics.Planned), nil, nil, nil, nil, nil, nil, nil, nil)
}
