package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/launcher/workspace/query"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

type submitOptions struct {
	workspace.Request
	wait, again, unchecked bool
	interval               time.Duration
	until                  untilOptions
}

func (o *submitOptions) flags() []cli.Flag {
	return []cli.Flag{
		siteFlag(&o.Site),
		&cli.BoolFlag{Name: "wait", DisableDefaultText: true, Usage: "wait for the jobs, resubmit what the study's policy allows, then collect", Destination: &o.wait},
		intervalFlag(&o.interval),
		uncheckedFlag(&o.unchecked),
	}
}

func intervalFlag(interval *time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "interval", Usage: "`TIME` between two queries of the queue", Value: 30 * time.Second, Destination: interval}
}

func checkInterval(interval time.Duration) error {
	if interval < time.Second {
		return usagef("--interval %v is too short for a shared scheduler; want 1s or more", interval)
	}
	if interval > 24*time.Hour {
		return usagef("--interval %v is longer than a day; want 1s to 24h", interval)
	}
	return nil
}

func submitCommand(s *session) *cli.Command {
	var o submitOptions
	var command workspace.Command
	return &cli.Command{
		Name:      "submit",
		Usage:     "submit to Slurm the runs of a study that have no good result yet",
		ArgsUsage: studyOrCommand,
		Description: "You can repeat the command at any time, even while another one is running: it submits\n" +
			"only what is missing.\n" +
			"\n" +
			"The study's [policy] sets the order and the rate. If a limit allows no more jobs, the\n" +
			"command says how many runs are left and ends: repeat it to continue. With --wait it\n" +
			"continues by itself, and retries runs as far as policy.retries allows.\n" +
			"\n" +
			overrideHelp + "\n" +
			"\n" +
			typedHelp,
		Flags: slices.Concat(o.flags(), []cli.Flag{againFlag(&o.again)}, o.until.flags(), commandFlags(&command)),
		Action: func(c *cli.Context) error {
			var err error
			if o.Request, err = o.until.asked(c, &command, o.Site); err != nil {
				return err
			}
			return runSubmit(c.Context, s, o)
		},
	}
}

func runSubmit(ctx context.Context, s *session, o submitOptions) error {
	if err := checkInterval(o.interval); err != nil {
		return err
	}
	w, err := s.workspace().Load(ctx, o.Request)
	if err != nil {
		return err
	}
	s.noteStudy(o.Request, w)
	s.noteRange(w)
	choice, err := w.Choice(ctx, o.again)
	if err != nil {
		return err
	}
	if until, err := o.until.of(w.Study); err != nil {
		return err
	} else if until {
		return s.submitUntilDecided(ctx, w, choice, o)
	}
	return submit(ctx, s, w, choice, o)
}

// submit submits the chosen runs as jobs, and watches them if requested.
func submit(ctx context.Context, s *session, w *workspace.Work, choice launcher.Choice, o submitOptions) error {
	if !o.unchecked {
		if err := w.CheckFiles(choice); err != nil {
			return err
		}
	}
	defer w.Sender.Leave()
	submitted, watch, left, err := s.driveJobs(ctx, w, choice, o)
	if watch == nil {
		return err
	}
	if !o.wait || err != nil { // after waiting, results are printed instead
		if printed := s.printDone(query.Submitted(submitted)); err == nil && printed != nil {
			return printed
		}
	}
	switch {
	case err != nil:
		if o.wait && len(left.Underway) > 0 {
			s.note("%s still waiting or running; see `scalebench status %s`", number.Are(len(left.Underway), "job"), w.Study.Name)
		}
		return explainDrive(err)
	case left.Left > 0:
		s.note("%s left to submit: %s. Repeat the command to continue, or use --wait.", number.Count(left.Left, "run"), left.Why)
	case len(submitted) == 0 && len(watch.failed) == 0 && !o.wait:
		w.NoteNothingToSubmit(left)
	}
	if before := left.Cancelled - workspace.CountCancelled(watch.failed); before > 0 { // the verdict reports the others
		s.note("left alone: %s; `scalebench retry %s` submits %s again", number.Count(before, "cancelled run"), w.Study.Name, number.Them(before))
	}
	if err := w.NoteOutdated(ctx); err != nil {
		return err
	}
	if o.wait {
		err := s.collect(ctx, w.Folder)
		s.tell(ctx, w, &query.Ended)
		if shown := runRuns(ctx, s, runsOptions{Selection: query.Selection{Study: w.Study.Name}}); err == nil {
			err = shown
		}
		if o.Typed && err == nil {
			if noted := s.timing(ctx, w); len(watch.failed) == 0 {
				err = noted
			}
		}
		return errors.Join(err, watch.verdictWith(err))
	}
	return errors.Join(watch.verdict(), workspace.Unread(left.Unread))
}

// driveJobs submits the chosen runs and watches them if requested. watch is nil if an error
// prevented any submission.
func (s *session) driveJobs(ctx context.Context, w *workspace.Work, choice launcher.Choice, o submitOptions) (submitted []*launcher.Attempt, watch *watch, left launcher.Outcome, err error) {
	backend, err := w.Scheduler(ctx)
	if err != nil {
		return nil, nil, left, err
	}
	if err := w.Begin(ctx); err != nil {
		return nil, nil, left, err
	}
	watch = newWatch(s, "jobs", fmt.Sprintf("`scalebench retry %s` submits again what failed or was cancelled.", w.Study.Name))
	if o.wait {
		_ = w.Sender.Attend(ctx, 0) // else tell tries again
		watch.tellFailure = func() { s.tell(ctx, w, nil) }
	}
	begun := func(a *launcher.Attempt) {
		if a.Submission.Notice != "" {
			watch.bar.finished("sbatch: %s", a.Submission.Notice)
		}
		if o.wait {
			watch.bar.finished("%s: job %s", a.Record.ID, a.Submission.JobID)
		} else {
			watch.bar.advance(1)
		}
		submitted = append(submitted, a)
	}
	observe, found := watch.observe, watch.found
	if !o.wait {
		found = func(todo, _ int) { watch.found(todo, 0) }
		observe = func(states []launcher.State) { // report only rejected jobs
			for _, state := range states {
				if state.Status.Terminal() {
					watch.ended(state)
				}
			}
		}
	}
	left, err = launcher.Drive(ctx, launcher.Driving{Backend: backend, Folder: w.Folder, Choice: choice,
		Interval: o.interval, Patience: sharedfs.LeasePatience, Watch: o.wait,
		Found: found, Begun: begun, Observe: observe, Warn: watch.warn})
	watch.bar.stop()
	switch {
	case !o.wait:
		s.tellLater(ctx, w, submitted)
	case err != nil:
		w.Sender.Leave()
		s.tellLater(ctx, w, left.Underway)
	}
	return submitted, watch, left, err
}

// explainDrive assigns an exit code to an error of Drive.
func explainDrive(err error) error {
	if _, ok := errors.AsType[*sharedfs.LeaseHeldError](err); ok {
		return &usageError{err: err, hint: "It is starting runs of the same study; try again when it is done."}
	}
	if gone := (launcher.Unreachable)(nil); errors.As(err, &gone) && !gone.Queued() {
		return &schedulerError{err: err, hint: "Nothing is lost: what was submitted is recorded, and the same command continues from there."}
	}
	return err
}
