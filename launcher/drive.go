package launcher

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm"
)

// Backend starts attempts and ends them.
type Backend interface {
	// Start begins what is to do. The error is fs.ErrExist when another
	// command was first, and *slurm.RefusedError when the scheduler refused
	// the attempt that comes with it.
	Start(ctx context.Context, t Todo) (*Attempt, error)
	// Cancel asks for the end of attempts; that they have ended is seen by
	// Survey.
	Cancel(ctx context.Context, attempts []*Attempt) error
}

// Todo is a planned run without a good result.
type Todo struct {
	study.Planned
	Number int // of the attempt to begin
	// Again is an attempt that was written down but never reached the
	// scheduler; it is handed over again instead of making a new one, so that
	// a copy that got through after all cannot train twice.
	Again *Attempt
}

// Outstanding is what of a plan is still to be begun, in the plan's order: all
// but the runs that have a good result, or an attempt that has not ended, or
// for which done reports a good result from elsewhere (the store, after the
// run folders were purged).
func Outstanding(plan *study.Plan, states []State, done func(point string, repeat int) bool) []Todo {
	type key struct {
		point  string
		repeat int
	}
	attempts := map[key][]State{}
	for _, s := range states {
		k := key{s.Point.ID, s.Point.Repeat}
		attempts[k] = append(attempts[k], s)
	}
	var list []Todo
	for _, p := range plan.Points {
		todo, wanted := Todo{Planned: p, Number: 1}, !done(p.Point.ID, p.Point.Repeat)
		for _, s := range attempts[key{p.Point.ID, p.Point.Repeat}] {
			todo.Number = max(todo.Number, s.Number+1)
			switch {
			case s.Status.Good():
				wanted = false
			case s.Status == metrics.Submitted && s.Submission == nil && s.Record.Backend == Slurm:
				todo.Again = s.Attempt
			case !s.Status.Terminal():
				wanted = false
			}
		}
		if wanted {
			list = append(list, todo)
		}
	}
	return list
}

// Driving is how Drive goes about it.
type Driving struct {
	Backend  Backend
	Client   *slurm.Client // asked after Slurm's attempts
	InFlight int           // attempts that may be under way at once
	Interval time.Duration // between two surveys
	// Observe is told the states of the attempts under way after each survey,
	// and of each one once more when it has ended or could not be started.
	Observe func([]State)
}

// maxFailedSurveys is how many surveys in a row may fail before Drive gives up.
const maxFailedSurveys = 10

// Drive begins every outstanding run, InFlight at a time, and watches all of
// them to their end. When the context is done it cancels nothing: what is under
// way is returned, and the caller decides. The error is that the scheduler
// cannot be reached, or the context's.
func Drive(ctx context.Context, d Driving, todo []Todo) (underway []*Attempt, err error) {
	for {
		for len(todo) > 0 && len(underway) < d.InFlight {
			a, err := Begin(ctx, d.Backend, todo[0])
			todo = todo[1:]
			switch {
			case errors.Is(err, fs.ErrExist): // another command has it
			case err != nil:
				return underway, err
			case a.Verdict != nil:
				d.Observe([]State{{Attempt: a, Status: a.Verdict.Status, Detail: a.Verdict.Detail}})
			default:
				underway = append(underway, a)
			}
		}
		room := len(underway) - 1
		if len(todo) == 0 {
			room = 0
		}
		if underway, err = d.watch(ctx, underway, room); err != nil || len(todo) == 0 {
			return underway, err
		}
	}
}

// Watch watches attempts to their end, as Drive does.
func Watch(ctx context.Context, d Driving, attempts []*Attempt) (underway []*Attempt, err error) {
	return d.watch(ctx, attempts, 0)
}

// watch surveys attempts until at most so many are left.
func (d Driving) watch(ctx context.Context, underway []*Attempt, left int) ([]*Attempt, error) {
	failures := 0
	for len(underway) > max(left, 0) {
		select {
		case <-ctx.Done():
			return underway, context.Cause(ctx)
		case <-time.After(d.Interval):
		}
		states, err := Survey(ctx, d.Client, underway)
		if failures++; err == nil {
			failures = 0
		} else if failures >= maxFailedSurveys {
			return underway, err
		}
		d.Observe(states)
		underway = underway[:0]
		for _, s := range states {
			if !s.Status.Terminal() {
				underway = append(underway, s.Attempt)
			}
		}
	}
	return underway, nil
}

// Begin starts one outstanding run. A refusal by the scheduler is not an error
// of Begin: it is the attempt's verdict, in the scheduler's own words.
func Begin(ctx context.Context, b Backend, t Todo) (*Attempt, error) {
	a, err := b.Start(ctx, t)
	var refused *slurm.RefusedError
	if errors.As(err, &refused) {
		return a, a.conclude(Verdict{Status: metrics.Failed, Detail: refused.Error()})
	}
	return a, err
}
