package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/backend/local"
	"github.com/scalebench/scalebench/launcher/decide"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/cost"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/table"
)

func decideCommand(s *session) *cli.Command {
	var o untilOptions
	return &cli.Command{
		Name:      "decide",
		Usage:     "say what a study's runs decide, and what to measure next",
		ArgsUsage: "STUDY",
		Description: "Checks the results as `run --until-decided` does, without starting runs. It prints\n" +
			"whether the question is decided, which runs may change the answer, and how the\n" +
			"interval narrowed. Without options, the question is that of the last look.\n" +
			"Exit code 5: not decided.",
		Flags: append(o.questionFlags(""), siteFlag(&o.wish.wish.Site)),
		Action: func(c *cli.Context) error {
			record, err := s.reader().Looks(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			if err := s.askAgain(c, record.Question); err != nil {
				return err
			}
			if err := wished(c); err != nil {
				return err
			}
			return runDecide(c.Context, s, o, c.Args().First(), record)
		},
	}
}

func runDecide(ctx context.Context, s *session, o untilOptions, arg string, record *decide.Record) error {
	outcome, err := s.look(ctx, o, arg, record)
	if err != nil {
		return err
	}
	return s.printOutcome(outcome, record.Looks)
}

// look checks what the present results of a study decide.
func (s *session) look(ctx context.Context, o untilOptions, study string, record *decide.Record) (*decide.Outcome, error) {
	o.wish.Study, o.wish.wish.Market = study, cost.OnDemand
	return s.reader().Look(ctx, o.wish.asked(), record, o.most)
}

// deciding returns the study that is measured until its question is decided. The caller
// must still set the function that makes runs.
func (s *session) deciding(ctx context.Context, w *workspace.Work, o untilOptions) (*decide.Study, error) {
	o.wish.wish.Market = cost.OnDemand
	d, err := s.reader().Deciding(ctx, w, o.wish.asked())
	if err != nil {
		return nil, err
	}
	d.Question = o.question()
	d.Collect = func(ctx context.Context) error {
		o := workspace.CollectOptions{Progress: s.steps("collecting"), OnlyNews: true}
		return s.workspace().Collect(context.WithoutCancel(ctx), w.Folder, o)
	}
	return d, nil
}

// beginDeciding claims the study's folder and records the first batch there. Results of a folder
// that was deleted are still in the database, so the first look may come before the first run.
func beginDeciding(ctx context.Context, w *workspace.Work, d *decide.Study) error {
	return w.Batch(d.First()).Begin(ctx)
}

// runUntilDecided makes runs on this machine, batch by batch, until the question is
// decided.
func (s *session) runUntilDecided(ctx context.Context, w *workspace.Work, backend *local.Backend, choice launcher.Choice, o untilOptions) error {
	d, err := s.deciding(ctx, w, o)
	if err != nil {
		return err
	}
	s.deferInterrupts()
	if err := beginDeciding(ctx, w, d); err != nil {
		return err
	}
	choice.Policy.Order = study.OrderBlocks
	d.Measure = func(ctx context.Context, plan *study.Plan) error {
		part := w.Batch(plan)
		choice.Plan = plan
		if err := part.Begin(ctx); err != nil {
			return err
		}
		_, err := s.drive(ctx, part, backend, choice)
		if err != nil { // keep what was measured before an interrupt
			err = errors.Join(err, d.Collect(ctx))
		}
		return err
	}
	return s.untilDecided(ctx, w, d)
}

// submitUntilDecided makes runs with jobs: with --wait batch by batch until the question
// is decided, otherwise a single batch.
func (s *session) submitUntilDecided(ctx context.Context, w *workspace.Work, choice launcher.Choice, o submitOptions) error {
	d, err := s.deciding(ctx, w, o.until)
	if err != nil {
		return err
	}
	s.deferInterrupts()
	if err := beginDeciding(ctx, w, d); err != nil {
		return err
	}
	choice.Policy.Order = study.OrderBlocks
	if d.Once = !o.wait; d.Once { // further looks do not retry failed runs
		choice.Asked = map[rundir.Folder]bool{}
		if d.Failed, err = s.reader().FailedRuns(ctx, w, choice); err != nil {
			return err
		}
	}
	d.Measure = func(ctx context.Context, plan *study.Plan) error {
		part := w.Batch(plan)
		choice.Plan = plan
		if !o.unchecked {
			if err := part.CheckFiles(choice); err != nil {
				return err
			}
		}
		submitted, _, left, err := s.driveJobs(ctx, part, choice, o)
		if !o.wait && len(submitted) > 0 {
			err = errors.Join(err, s.printDone(query.Submitted(submitted)))
		}
		if err == nil && left.Left > 0 {
			s.note("%s left to submit: %s", number.Count(left.Left, "run"), left.Why)
		}
		return explainDrive(err)
	}
	return s.untilDecided(ctx, w, d)
}

// untilDecided makes runs until the question is decided or must stay open, and prints the
// outcome.
func (s *session) untilDecided(ctx context.Context, w *workspace.Work, d *decide.Study) error {
	if !d.Once {
		_ = w.Sender.Attend(ctx, 0) // else tell tries again
		defer w.Sender.Leave()
	}
	record, err := decide.Read(d.Folder)
	if err != nil {
		return err
	}
	if len(record.Looks) == 0 {
		forecast, err := d.Forecast(ctx)
		if err != nil {
			return err
		}
		for _, line := range forecast {
			s.note("%s", line)
		}
	}
	outcome, err := d.Run(ctx)
	if err != nil {
		return err
	}
	if !d.Once {
		end := query.EndingOf(outcome)
		s.tell(ctx, w, &end)
	}
	if record, err = decide.Read(d.Folder); err != nil {
		return err
	}
	return s.printOutcome(outcome, record.Looks)
}

// printOutcome prints an outcome. It returns the error that determines the exit code.
func (s *session) printOutcome(o *decide.Outcome, looks []metrics.Look) error {
	switch {
	case s.format == table.FormatTable || s.format == table.FormatMarkdown:
		for _, text := range o.Answers() {
			if _, err := fmt.Fprintln(s.stdout, s.sentences(text)); err != nil {
				return err
			}
		}
		for _, text := range []string{o.Scatter, o.Savings} {
			if text != "" {
				fmt.Fprintln(s.stdout, s.sentences(text))
			}
		}
		if len(looks) > 0 {
			fmt.Fprintln(s.stdout)
		}
	}
	if len(looks) > 0 || !s.forPeople() {
		if err := s.print(query.Looks(looks)); err != nil {
			return err
		}
	}
	switch {
	case !o.Decided && o.Views == nil && o.Next != nil:
		return &openError{fmt.Sprintf("%s under way; repeat the command when they have ended, or use --wait", number.Are(len(o.Next.Points), "run"))}
	case !o.Decided:
		return &openError{cmp.Or(o.Stopped, "the next runs may decide")}
	case slices.ContainsFunc(o.Views, func(v decide.View) bool { return v.Advice != nil && v.Advice.Workers == nil }):
		return errUndecided
	}
	return nil
}
