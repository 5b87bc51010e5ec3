package launcher

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// begin begins the attempts that the choice asks for, until a limit or the end of the
// cycle.
func (r *driver) begin(ctx context.Context, l *sharedfs.Lease, states []State, until time.Time, o *Outcome) error {
	todo, err := r.todo(states)
	if err != nil {
		return err
	}
	if r.first && r.Found != nil {
		r.Found(len(todo), len(o.Underway))
	}
	o.Left, o.Cancelled = len(todo), r.Choice.Left(states)
	loads, err := Loads(ctx, r.Backend, todo)
	if err != nil {
		return err
	}
	last, lastAlive := r.lastJob(states, false), r.lastJob(states, true)
	for _, load := range loads {
		if why := r.closed(states); why != "" {
			o.Why = why
			return nil
		}
		if inTime, err := r.awaitTurn(ctx, last, until); err != nil || !inTime {
			return err
		}
		if err := l.Check(); err != nil { // this host or process was suspended
			o.Why = err.Error()
			return nil
		}
		if r.Choice.Policy.Chain && lastAlive != nil {
			load[0].After = lastAlive.JobID
		}
		begun, err := r.beginLoad(ctx, load, o)
		if err != nil || o.Why != "" {
			return err
		}
		if s := lastSubmitted(begun); s != nil {
			last, lastAlive = s, s
		}
		o.Left -= len(load)
	}
	return nil
}

// beginLoad begins attempts together. It sets o.Why if the scheduler refuses them for now.
func (r *driver) beginLoad(ctx context.Context, load []Todo, o *Outcome) ([]*Attempt, error) {
	begun, err := Begin(ctx, r.Backend, load)
	var refused Refusal
	switch {
	case errors.As(err, &refused):
		o.Why = r.refused(refused)
		return nil, nil
	case errors.Is(err, fs.ErrExist): // another command has this attempt, and its folder cannot be read
		return nil, nil
	case err != nil:
		for _, a := range begun { // the attempts may have started, so watch them
			r.watched[a.Run] = true
		}
		return nil, err
	}
	for _, a := range begun {
		r.begun(a, o)
	}
	return begun, nil
}

// todo returns the attempts to begin.
func (r *driver) todo(states []State) ([]Todo, error) {
	for _, s := range states { // the policy decides what follows an attempt under way
		if !s.Status.Terminal() {
			delete(r.Choice.Asked, s.Run)
		}
	}
	var err error
	if r.Choice.Forgotten, err = r.Folder.Trash().Attempts(); err != nil {
		return nil, err
	}
	todo := r.Choice.Todo(states)
	for i, t := range todo { // a script of another backend cannot be submitted again here
		if t.Again != nil && t.Again.Record.Backend != r.Backend.Name() {
			todo[i].Again = nil
		}
	}
	return todo, nil
}

// closed returns why no attempt may begin now; "" if one may.
func (r *driver) closed(states []State) string {
	switch {
	case r.room == 0:
		return r.full(states)
	case time.Now().Before(r.notUntil):
		return "the scheduler accepts no more jobs for now"
	}
	return ""
}

// awaitTurn waits until the backend's rate admits the submission after last. It reports
// false, at once, if that is after the end of the cycle.
func (r *driver) awaitTurn(ctx context.Context, last *Submission, until time.Time) (inTime bool, err error) {
	turn := r.turn(last, time.Now())
	if turn <= 0 {
		return true, nil
	}
	if time.Now().Add(turn).After(until) {
		return false, nil
	}
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-time.After(turn):
		return true, nil
	}
}

// refused notes that the scheduler accepts no more jobs for now, and returns why.
func (r *driver) refused(by Refusal) string {
	r.limits++
	r.notUntil = time.Now().Add(backOff(r.Interval, r.limits))
	return oneLine(by)
}

// oneLine returns the scheduler's words without line breaks.
func oneLine(by Refusal) string { return strings.ReplaceAll(by.Words(), "\n", "; ") }

// lastSubmitted returns the last submission among attempts that were begun.
func lastSubmitted(begun []*Attempt) *Submission {
	for _, a := range slices.Backward(begun) {
		if a.Verdict == nil && a.Submission != nil {
			return a.Submission
		}
	}
	return nil
}

// begun notes an attempt that was begun, or refused.
func (r *driver) begun(a *Attempt, o *Outcome) {
	if a.Verdict != nil {
		r.observe(State{Attempt: a, Status: a.Verdict.Status, Detail: a.Verdict.Detail})
		return
	}
	o.Underway, r.watched[a.Run], r.mine[a.Run] = append(o.Underway, a), true, true
	r.room, r.limits = max(r.room-1, 0), 0
	if r.Begun != nil {
		r.Begun(a)
	}
}

// lastJob returns the study's latest submission to this backend (only of attempts that have not ended, if alive
// is set), or nil.
func (r *driver) lastJob(states []State, alive bool) *Submission {
	var last *Submission
	for _, s := range states {
		if s.Submission != nil && r.own(s) && !(alive && s.Status.Terminal()) && (last == nil || s.Submission.SubmittedUnix >= last.SubmittedUnix) {
			last = s.Submission
		}
	}
	return last
}

// turn returns how long the backend's rate delays the submission after last. If the clocks of two submitting
// hosts differ, the delay is one interval at most.
func (r *driver) turn(last *Submission, now time.Time) time.Duration {
	rate := r.Backend.Limits().Rate
	if rate == 0 || last == nil {
		return 0
	}
	every := time.Duration(float64(time.Minute) / rate)
	passed := now.Sub(metrics.Time(last.SubmittedUnix))
	return min(every, every-passed)
}
