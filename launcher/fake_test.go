package launcher

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

// A further backend needs only this file and the lines of init.
func init() {
	Register("fake", func(o Options) (Backend, error) { return &fake{Creator: o.Creator}, nil })
	Register("fake-beside", func(o Options) (Backend, error) { return &fake{Creator: o.Creator, beside: true}, nil })
}

// fake hands attempts to a scheduler that lives in this process.
type fake struct {
	Creator
	limits Limits
	beside bool // Attached
	pairs  bool // attempts are submitted in pairs
}

// A scheduler is a fake of a cluster's scheduler, with the clock of the test's bubble.
type scheduler struct {
	mu    sync.Mutex
	start time.Time
	lasts time.Duration // how long a job runs

	// All may be nil. ends returns how a job ends, if not successfully; answer returns the error of the nth
	// submission, from 0, and whether it was accepted nevertheless; silent reports whether queries go
	// unanswered at a time.
	ends   func(run string) metrics.Status
	answer func(n int) (err error, accepted bool)
	silent func(at time.Duration) bool

	jobs      map[string]*fakeJob // by job name
	submitted []string            // "30s p-r1-a1", in order
	asked     []time.Duration     // when Survey came
	cancelled []string
	most      int // jobs at once
}

type fakeJob struct {
	id         string
	begin, end time.Time
	status     metrics.Status // with which the job ends
}

// schedulers are the schedulers with attempts, by study folder.
var schedulers sync.Map

// newScheduler returns the scheduler for a study's folder.
func newScheduler(folder rundir.Study, lasts time.Duration) *scheduler {
	s := &scheduler{start: time.Now(), lasts: lasts, jobs: map[string]*fakeJob{}}
	schedulers.Store(folder.Path(), s)
	return s
}

func schedulerOf(a *Attempt) *scheduler {
	s, _ := schedulers.Load(filepath.Dir(a.Run.Path()))
	return s.(*scheduler)
}

// now returns the time since the scheduler started.
func (s *scheduler) now() time.Duration { return time.Since(s.start) }

// submit takes a job for a run.
func (s *scheduler) submit(a *Attempt) (id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, accepted := len(s.submitted), true
	s.submitted = append(s.submitted, fmt.Sprintf("%v %s", s.now(), a.Run.Name()))
	if s.answer != nil {
		if err, accepted = s.answer(n); err != nil && !accepted {
			return "", err
		}
	}
	job := &fakeJob{id: fmt.Sprint(n), begin: time.Now(), end: time.Now().Add(s.lasts), status: metrics.Done}
	if s.ends != nil {
		job.status = s.ends(a.Run.Name())
	}
	if s.jobs[a.Record.JobName] != nil {
		return "", fmt.Errorf("%s was submitted twice", a.Record.JobName)
	}
	s.jobs[a.Record.JobName] = job
	alive := 0
	for _, j := range s.jobs {
		if time.Now().Before(j.end) {
			alive++
		}
	}
	s.most = max(s.most, alive)
	return job.id, err
}

// A refusal is the scheduler's answer if it does not accept a job.
type refusal struct{ forNow bool }

func (e refusal) Error() string { return "job.yaml: " + e.Words() }
func (e refusal) Words() string { return "too many pods\ntry later" }
func (e refusal) ForNow() bool  { return e.forNow }

// A silence is the error if the scheduler does not answer.
type silence struct{ queued bool }

func (e silence) Error() string { return "the scheduler does not answer" }
func (e silence) Queued() bool  { return e.queued }

func (f *fake) Name() string {
	if f.beside {
		return "fake-beside"
	}
	return "fake"
}

func (f *fake) Attached() bool        { return f.beside }
func (f *fake) Limits() Limits        { return f.limits }
func (f *fake) Occupies(s State) bool { return s.Submission != nil }
func (f *fake) record(t Todo) Record {
	return Record{Backend: f.Name(), JobName: fmt.Sprintf("%s-r%d-a%d", t.Point.ID, t.Point.Repeat, t.Number)}
}

func (f *fake) Loads(_ context.Context, todo []Todo) ([][]Todo, error) {
	if !f.pairs {
		return each(todo), nil
	}
	var loads [][]Todo
	for len(todo) > 0 {
		n := min(2, len(todo))
		loads, todo = append(loads, todo[:n]), todo[n:]
	}
	return loads, nil
}

func (f *fake) Begin(_ context.Context, load []Todo) ([]*Attempt, error) {
	var begun []*Attempt
	for _, t := range load {
		a := t.Again
		if a == nil {
			var err error
			if a, err = f.Create(t, f.record(t), nil); err != nil {
				return nil, err
			}
		}
		begun = append(begun, a)
		id, err := schedulerOf(a).submit(a)
		if err != nil {
			return begun, err
		}
		if err := a.Submitted(Submission{JobID: id, After: t.After, SubmittedUnix: metrics.Unix(time.Now())}); err != nil {
			return begun, err
		}
	}
	return begun, nil
}

func (f *fake) Survey(_ context.Context, open []*Attempt) ([]Finding, error) {
	s := schedulerOf(open[0])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, s.now())
	findings, unreachable := make([]Finding, len(open)), error(nil)
	if s.silent != nil && s.silent(s.now()) {
		unreachable = silence{}
	}
	for i, a := range open {
		job := s.jobs[a.Record.JobName]
		if job == nil || unreachable != nil {
			findings[i] = Finding{Job: a.RecordedJob(), Judge: func(Traces) (metrics.Status, string) { return metrics.Submitted, "" }}
			continue
		}
		if a.Submission == nil { // the answer was lost
			findings[i].Err = a.Submitted(Submission{JobID: job.id, SubmittedUnix: metrics.Unix(job.begin)})
		}
		findings[i].Job = &metrics.Job{ID: job.id, State: "up"}
		findings[i].Judge = func(Traces) (metrics.Status, string) {
			if time.Now().Before(job.end) {
				return metrics.Running, ""
			}
			return job.status, ""
		}
	}
	return findings, unreachable
}

func (f *fake) Cancel(_ context.Context, states []State) ([]Ending, error) {
	var list []Ending
	for _, state := range states {
		s := schedulerOf(state.Attempt)
		s.cancelled = append(s.cancelled, state.Run.Name())
		list = append(list, Ending{State: state, Asked: true, What: "asked the fake"})
	}
	return list, nil
}

// begins returns the submissions so far, in one line.
func (s *scheduler) begins() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.submitted, ", ")
}

var errTest = errors.New("the test's own")
