package launcher

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Driving configures Drive.
type Driving struct {
	Backend  Backend
	Folder   rundir.Study
	Choice   Choice        // if Asked is nil, Drive sets it to all existing attempts
	Interval time.Duration // between two surveys
	Patience time.Duration // longest wait for another command that starts attempts of the study
	Watch    bool          // continue until every attempt has ended, instead of until all are started

	// All may be nil. Found receives the number of runs to start and under way, once. Begun receives each
	// started attempt. Observe receives the states of those under way after each survey, and each once more
	// when it has ended or was refused. Warn receives problems that do not stop Drive.
	Found   func(todo, underway int)
	Begun   func(*Attempt)
	Observe func([]State)
	Warn    func(error)
}

// An Outcome is the state of a study after Drive.
type Outcome struct {
	Underway  []*Attempt // attempts that Drive watched or started
	Left      int        // runs that are still to be begun
	Why       string     // why they were not started
	Cancelled int        // runs that are not begun since `cancel` ended them
	// Unread is the number of run folders that could not be read; Warn received the reason.
	Unread int
}

// Limits for queries of a failing scheduler, which become less frequent.
const (
	maxFailures = 10 // cycles in a row that may fail before Drive gives up
	maxBackOff  = 8  // times the interval, at most
)

// Drive starts the outstanding runs of a study and, if asked to, watches all of its attempts to their end. It
// works in cycles that start from the state on disk. A cycle takes the study's lease, so that only one command
// at a time starts attempts; asks the scheduler once about everything under way; starts runs according to the
// choice and the limits; and releases the lease.
//
// When the context is done it cancels nothing: attempts under way are in the outcome, and the caller decides.
// The error is the context's, a *sharedfs.LeaseHeldError, or that the scheduler cannot be reached.
func Drive(ctx context.Context, d Driving) (Outcome, error) {
	r := driver{Driving: d, watched: map[rundir.Folder]bool{}, foreign: map[rundir.Folder]State{}, mine: map[rundir.Folder]bool{}, unjudged: map[rundir.Folder]int{}, first: true, room: 1}
	if !d.Watch { // attempts that end later are left to a later command
		r.Choice.Policy.Retries = study.Retries{}
	}
	if r.Choice.Asked == nil {
		// List attempts before taking the lease, so that runs another command starts meanwhile are not started
		// twice.
		list, err := Attempts(d.Folder)
		if err != nil {
			return Outcome{}, err
		}
		r.Choice.Asked = map[rundir.Folder]bool{}
		for _, a := range list {
			r.Choice.Asked[a.Run] = true
		}
	}
	for failures := 0; ; r.first = false {
		started := time.Now()
		o, whole, err := r.cycle(ctx)
		var gone Unreachable
		switch {
		case ctx.Err() != nil:
			return o, context.Cause(ctx)
		case err == nil:
			failures = 0
		case r.first && len(o.Underway) == 0 || !d.Watch || !r.blind && !errors.As(err, &gone):
			return o, err
		default:
			if failures++; failures >= maxFailures {
				return o, err
			}
		}
		pause := d.Interval
		switch {
		case err != nil:
			pause = backOff(d.Interval, failures)
		case whole && o.Left == 0 && (!d.Watch || len(o.Underway) == 0):
			return o, nil
		case whole && !d.Watch && o.Why != "":
			return o, nil
		case r.ended && d.Backend.Attached(): // no attempts are under way here
			pause = 0
		}
		select {
		case <-ctx.Done():
			return o, context.Cause(ctx)
		case <-time.After(time.Until(started.Add(pause))):
		}
	}
}

// backOff returns the interval doubled for each failure in a row, up to a limit.
func backOff(interval time.Duration, failures int) time.Duration {
	return interval * time.Duration(min(1<<min(failures, 10), maxBackOff))
}

// driver is the state of one Drive. Everything that must outlast it is on disk.
type driver struct {
	Driving
	first    bool
	ended    bool                  // an attempt ended in the last cycle
	blind    bool                  // the last survey failed: the scheduler does not answer, or the file system
	unjudged map[rundir.Folder]int // cycles in a row that a run folder could not be read
	attempts []*Attempt
	watched  map[rundir.Folder]bool  // under way after the last cycle
	foreign  map[rundir.Folder]State // attempts of other schedulers, which are asked only once
	mine     map[rundir.Folder]bool  // begun by this Drive
	room     int                     // attempts that could be begun after the last cycle
	said     string                  // last warning
	limits   int                     // submissions in a row that came up against a limit
	notUntil time.Time               // the next submission after a limit
}

// cycle runs one cycle. whole reports whether it held the lease, so that the outcome is complete.
func (r *driver) cycle(ctx context.Context) (o Outcome, whole bool, err error) {
	started := time.Now()
	// What is attached to this command makes room only when the next survey sees
	// it end; of a scheduler's attempts some may have ended since the last one.
	if r.room > 0 || !r.Backend.Attached() {
		if err := os.MkdirAll(r.Folder.Path(), 0o755); err != nil {
			return o, false, err
		}
		l, err := sharedfs.TakeLease(ctx, r.Folder.Lease(), 0)
		var held *sharedfs.LeaseHeldError
		if errors.As(err, &held) && r.first {
			r.warn(fmt.Errorf("%s is starting runs of this study; waiting for it", held.Holder))
			l, err = sharedfs.TakeLease(ctx, r.Folder.Lease(), r.Patience)
		}
		switch {
		case errors.As(err, &held) && !r.first: // watch on, begin later
		case err != nil:
			return o, false, err
		default:
			whole = true
			defer l.Release()
		}
		if whole && r.first { // do this before new attempts use these folder names
			if err := r.Folder.RemoveStale(); err != nil {
				r.warn(err)
			}
		}
		states, err := r.survey(ctx, whole, &o)
		if err != nil || !whole {
			return o, whole, err
		}
		return o, true, r.begin(ctx, l, states, started.Add(r.Interval), &o)
	}
	_, err = r.survey(ctx, false, &o)
	return o, false, err
}

// survey reads the study's attempts and returns their states: of all, or of those watched.
func (r *driver) survey(ctx context.Context, all bool, o *Outcome) ([]State, error) {
	attempts, err := Refresh(r.Folder, r.attempts)
	if r.blind = err != nil; r.blind { // existing attempts must not be started again
		return nil, err
	}
	r.attempts = attempts
	var states []State
	var open []*Attempt
	for _, a := range attempts {
		state, known := r.foreign[a.Run]
		switch {
		case r.watched[a.Run] || a.Verdict == nil && a.Record.Backend == r.Backend.Name():
			open = append(open, a)
		case a.Verdict != nil:
			states = append(states, State{Attempt: a, Status: a.Verdict.Status, Detail: a.Verdict.Detail, Job: a.Verdict.Job})
		case known:
			states = append(states, state)
		case all:
			open = append(open, a)
		}
	}
	surveyed, err := SurveyWith(ctx, r.Backend, open)
	r.blind = err != nil
	var news []State
	var wrong []error
	r.ended = false
	for _, s := range surveyed {
		if s.Err != nil {
			wrong = append(wrong, s.Err)
			o.Unread++
		}
		if r.Backend.Attached() && s.Verdict == nil && s.Record.Backend != "" && !s.Attempt.Attached() {
			r.foreign[s.Run] = s
		}
		underway := r.ours(s) && r.judged(s)
		if underway || r.watched[s.Run] {
			news = append(news, s)
		}
		if underway {
			o.Underway = append(o.Underway, s.Attempt)
		} else if r.watched[s.Run] {
			r.ended = true
		}
		delete(r.watched, s.Run)
		if underway {
			r.watched[s.Run] = true
		}
	}
	states = append(states, surveyed...)
	r.warn(wrong...)
	r.room = r.free(states)
	r.observe(news...)
	return states, err
}

// free returns how many attempts may be started in addition to those under way.
func (r *driver) free(states []State) int {
	most := r.Backend.Limits().InFlight
	if most == 0 {
		return math.MaxInt
	}
	for _, s := range states {
		if r.occupies(s) {
			most--
		}
	}
	return max(most, 0)
}

// full returns why no more attempts may be started. Another command's attempt here may take any length of time,
// so that is reported at once.
func (r *driver) full(states []State) string {
	for _, s := range states {
		if r.Backend.Attached() && r.occupies(s) && !r.mine[s.Run] {
			err := fmt.Errorf("%s is running under another command, process %d; this one waits, so as not to disturb it", s.Record.ID, s.Record.PID)
			if s.Detail != "" {
				err = fmt.Errorf("%w: %s", err, s.Detail)
			}
			r.warn(err)
			return err.Error()
		}
	}
	return fmt.Sprintf("%d are under way, and policy.max_in_flight allows no more", r.Backend.Limits().InFlight)
}

// own reports whether an attempt belongs to the backend that starts attempts here.
func (r *driver) own(s State) bool { return s.Record.Backend == r.Backend.Name() }

// occupies reports whether an attempt takes room where others are begun.
func (r *driver) occupies(s State) bool {
	return !s.Status.Terminal() && r.own(s) && r.Backend.Occupies(s)
}

// ours reports whether to watch an attempt under way to its end: every attempt that a scheduler has
// accepted, including attempts of earlier commands. Of attached attempts, it watches only its own,
// because another command's attempts end with that command.
func (r *driver) ours(s State) bool {
	return r.occupies(s) && (!r.Backend.Attached() || r.mine[s.Run])
}

// judged reports whether an attempt under way can be watched: its folder can be
// read, or could be until a few cycles ago. File servers have bad minutes; a
// folder that stays unreadable does not hold up the others for ever.
func (r *driver) judged(s State) bool {
	if s.Status != metrics.Unknown || s.Err == nil {
		delete(r.unjudged, s.Run)
		return true
	}
	r.unjudged[s.Run]++
	return r.watched[s.Run] && r.unjudged[s.Run] < maxFailures
}

func (r *driver) observe(states ...State) {
	if r.Observe != nil && len(states) > 0 {
		r.Observe(states)
	}
}

// warn reports a problem once instead of in every cycle.
func (r *driver) warn(wrong ...error) {
	if all := fmt.Sprint(wrong); r.Warn != nil && len(wrong) > 0 && all != r.said {
		r.said = all
		for _, err := range wrong {
			r.Warn(err)
		}
	}
}
