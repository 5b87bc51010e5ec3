package main

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/slurm"
)

type submitOptions struct {
	study, site string
	wait        bool
	interval    time.Duration
}

func submitCommand(s *session) *cli.Command {
	var o submitOptions
	return &cli.Command{
		Name:      "submit",
		Usage:     "submit a study to Slurm: every run that has no good result yet",
		ArgsUsage: "STUDY",
		Description: "Runs that wait or run are left alone, so the command may be given again at any\n" +
			"time. A submission whose answer was lost is looked up before it is repeated.",
		Flags: []cli.Flag{
			siteFlag(&o.site),
			&cli.BoolFlag{Name: "wait", Usage: "watch the jobs to their end, then collect", Destination: &o.wait},
			&cli.DurationFlag{Name: "interval", Usage: "with --wait, `TIME` between two looks at the queue", Value: 30 * time.Second, Destination: &o.interval},
		},
		Action: func(c *cli.Context) error {
			o.study = c.Args().First()
			return runSubmit(c.Context, s, o)
		},
	}
}

func runSubmit(ctx context.Context, s *session, o submitOptions) error {
	if o.interval < time.Second {
		return usagef("--interval %v is too short for a shared scheduler; want 1s or more", o.interval)
	}
	w, err := s.load(o.study, o.site)
	if err != nil {
		return err
	}
	creator, err := w.creator()
	if err != nil {
		return err
	}
	backend, err := launcher.NewSlurmBackend(creator, w.site, s.slurm())
	if err != nil {
		return &usageError{err: err}
	}
	todo, err := s.outstanding(ctx, w)
	if err != nil {
		return err
	}
	if err := launcher.Freeze(w.folder, w.plan, w.study.File, w.site.File); err != nil {
		return err
	}
	t := &table{columns: []column{{key: "run"}, {key: "workers"}, {key: "nodes"}, {key: "partition"}, {key: "job"}, {key: "script"}}}
	watch := newWatch(s, todo)
	for _, next := range todo {
		a, err := launcher.Begin(ctx, backend, next)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue // another command submits it at this moment
		case err != nil:
			watch.bar.stop()
			return explainScheduler(errors.Join(err, s.print(t)))
		case a.Verdict != nil: // refused
			watch.ended(launcher.State{Attempt: a, Status: a.Verdict.Status, Detail: a.Verdict.Detail})
			continue
		}
		watch.bar.advance(1)
		if a.Submission.Notice != "" {
			watch.bar.finished("sbatch: %s", a.Submission.Notice)
		}
		t.add(a.Record.ID, a.Point.Workers, a.Point.Nodes, a.Record.Partition, a.Submission.JobID, a.Run.Script())
	}
	watch.bar.stop()
	if err := s.print(t); err != nil {
		return err
	}
	if len(todo) == 0 {
		s.note("every run of %s has a good result or is under way; nothing to submit", w.study.Name)
	}
	if !o.wait {
		return watch.verdict(len(todo))
	}
	return wait(ctx, s, w, o.interval, watch, len(todo))
}

// wait watches every job of the study that is under way, also those of earlier
// commands, to its end.
func wait(ctx context.Context, s *session, w *work, interval time.Duration, watch *watch, total int) error {
	var open []*launcher.Attempt
	for _, a := range s.attempts(w.folder) {
		if a.Verdict == nil && a.Record.Backend == launcher.Slurm {
			open = append(open, a)
		}
	}
	watch.bar = s.startProgress("jobs", len(open))
	left, err := launcher.Watch(ctx, launcher.Driving{Client: s.slurm(), InFlight: math.MaxInt, Interval: interval, Observe: watch.observe}, open)
	watch.bar.stop()
	if err != nil {
		if len(left) > 0 {
			s.note("%s of %s under way; they go on without this command, see `scalebench status %s`", count(len(left), "job"), w.study.Name, w.study.Name)
		}
		return explainScheduler(err)
	}
	if err := collectFolder(ctx, s, w.folder); err != nil {
		return err
	}
	return watch.verdict(max(total, len(open)))
}

// slurm is the cluster that this command speaks to.
func (s *session) slurm() *slurm.Client { return &slurm.Client{} }

// explainScheduler gives an error of the scheduler's its exit code.
func explainScheduler(err error) error {
	var gone *slurm.UnreachableError
	if !errors.As(err, &gone) {
		return err
	}
	hint := "Nothing is lost: what was submitted is recorded, and the same command goes on from there."
	if gone.MaybeQueued {
		hint = "The last submission may be in the queue. The same command looks for it before it submits again."
	}
	return &schedulerError{err: err, hint: hint}
}
