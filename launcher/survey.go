package launcher

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/measure"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// A State is the status of one attempt, with the facts from which it follows.
type State struct {
	*Attempt
	Status metrics.Status
	Detail string
	Job    *metrics.Job // nil if no scheduler knows the attempt
	Traces Traces
	// Err is a problem with the run folder, or nil: it cannot be read (Status is then metrics.Unknown), or the
	// verdict cannot be recorded.
	Err error
}

// Survey returns the state of each attempt. It asks each scheduler once about all of its attempts that have not
// ended. It writes verdicts into the run folders, so that later commands need not ask again. A problem with one
// run folder is in its state and does not affect the others. If a scheduler cannot be reached, the states come
// from the folders alone, and there is an error.
func Survey(ctx context.Context, attempts []*Attempt) ([]State, error) {
	return survey(ctx, anyone, attempts)
}

func survey(ctx context.Context, keep keeper, attempts []*Attempt) ([]State, error) {
	open := map[string][]*Attempt{}
	for _, a := range attempts {
		if a.Unreadable == nil && a.Verdict == nil {
			open[a.Record.Backend] = append(open[a.Record.Backend], a)
		}
	}
	found := map[*Attempt]Finding{}
	var unreachable []error
	for _, name := range slices.Sorted(maps.Keys(open)) {
		b, err := keep(name)
		if err != nil {
			return nil, err
		}
		findings, err := b.Survey(ctx, open[name])
		unreachable = append(unreachable, err)
		for i, a := range open[name] {
			found[a] = findings[i]
		}
	}
	states := make([]State, len(attempts))
	for i, a := range attempts {
		f, asked := found[a]
		if !asked {
			f.Job = a.RecordedJob()
		}
		s, err := judge(a, f)
		s.Err = errors.Join(err, f.Err)
		states[i] = s
	}
	return states, errors.Join(unreachable...)
}

// judge returns the state of an attempt, given the backend's finding.
func judge(a *Attempt, f Finding) (State, error) {
	traces, err := Traces{}, a.Unreadable
	if err == nil {
		traces, err = ReadTraces(a.Run)
	}
	if err != nil {
		return State{Attempt: a, Status: metrics.Unknown, Detail: err.Error(), Job: f.Job}, err
	}
	if v := a.Verdict; v != nil {
		return State{Attempt: a, Status: v.Status, Detail: v.Detail, Job: v.Job, Traces: traces}, nil
	}
	s := State{Attempt: a, Traces: traces, Job: f.Job}
	s.Status, s.Detail = f.Judge(traces)
	if s.Status.Terminal() && !s.Status.Good() { // now it is worth the reading
		traces.readJobLog(a.Run)
		s.Status, s.Detail = f.Judge(traces)
		s.Traces = traces
	}
	if a.Cancelled != nil && s.Status.Terminal() && !s.Status.Good() {
		s.Status, s.Detail = metrics.Cancelled, "by scalebench cancel"
		if !traces.Begun {
			s.Detail += ", before it started"
		}
	}
	if s.Status.Terminal() {
		v := Verdict{Status: s.Status, Detail: s.Detail, Job: s.Job}
		if s.Status == metrics.NodeFailed && s.Job != nil && len(s.Job.Nodes) > 0 {
			v.FailedNodes, v.Detail = suspects(s.Job.Nodes, traces.Silent, s.Detail)
			s.Detail = v.Detail
		}
		err := a.conclude(v)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
			err = nil // a user who reads a colleague's runs: the verdict is the colleague's to write, and is the same
		}
		return s, err
	}
	return s, nil
}

// Since returns the present by the clock that wrote a time into a record: that time plus
// the age of the record by the file server's clock. The clock of this host may differ, or
// have been set since.
func (a *Attempt) Since(record string, then float64) time.Time {
	age, err := sharedfs.Age(record, a.Run.Path())
	if err != nil {
		return time.Now()
	}
	return time.Unix(0, int64(then*1e9)).Add(age)
}

// Submitted records the scheduler's answer to the submission of the attempt.
func (a *Attempt) Submitted(answer Submission) error {
	a.Submission = &answer
	return rundir.WriteJSON(a.Run.Job(), answer, sharedfs.ModeOpen)
}

// limited records that the scheduler accepts no more jobs for now.
func (a *Attempt) limited(by Refusal) error {
	a.Limited = &Limited{Words: oneLine(by), Unix: metrics.Unix(time.Now())}
	return rundir.WriteJSON(a.Run.Refused(), a.Limited, sharedfs.ModeOpen)
}

// Waits reports whether the scheduler has not accepted the attempt, because of a limit on jobs or because its
// answer was lost. The next command that starts runs submits it again.
func (s State) Waits() bool {
	return s.Submission == nil && (s.Status == metrics.Planned || s.Status == metrics.Submitted)
}

// RecordedJob returns the attempt's job from the run folder; nil if it is not recorded.
func (a *Attempt) RecordedJob() *metrics.Job {
	switch {
	case a.Record.Allocation != "":
		return &metrics.Job{ID: a.Record.Allocation, Partition: a.Record.Partition}
	case a.Submission != nil:
		return &metrics.Job{Cluster: a.Submission.Cluster, ID: a.Submission.JobID, Name: a.Record.JobName,
			Partition: a.Record.Partition, SubmitUnix: a.Submission.SubmittedUnix}
	}
	return nil
}

// conclude writes the final verdict on an attempt to its folder.
func (a *Attempt) conclude(v Verdict) error {
	if err := rundir.WriteJSON(a.Run.State(), v, 0o644); err != nil {
		return err
	}
	a.Verdict = &v
	return nil
}

// Fact returns the attempt's data in the form that the store saves.
func (s State) Fact() metrics.Run {
	run := s.Selectable()
	run.Secrets = secrets(s.Run)
	return run
}

// Selectable returns the attempt for conditions on runs: Fact without reading secrets.
func (s State) Selectable() metrics.Run {
	run := selectable(s.Point, s.Run)
	run.ID, run.Attempt, run.CreatedUnix = s.Record.ID, s.Number, s.Record.CreatedUnix
	run.Status, run.Detail, run.Job = s.Status, s.Detail, s.Job
	if !s.Attached() {
		run.Parameters[measure.ExclusiveKey] = s.Record.Exclusive // the study may leave it out
	}
	return run
}

// An Unbegun is a planned run without an attempt.
type Unbegun struct {
	First rundir.Folder // folder of its first attempt
	Point study.Point
}

// NotBegun returns the runs of a plan without an attempt.
func NotBegun(plan *study.Plan, folder rundir.Study, attempts []*Attempt) []Unbegun {
	begun := map[rundir.Folder]bool{}
	for _, a := range attempts {
		begun[folder.Run(a.Point.ID, a.Point.Repeat, 1)] = true
	}
	var list []Unbegun
	for _, p := range plan.Points {
		if first := folder.Run(p.Point.ID, p.Point.Repeat, 1); !begun[first] {
			list = append(list, Unbegun{first, p.Point})
		}
	}
	return list
}

// Selectable returns the planned run in the form that --where conditions test, as State.Selectable
// does for attempts.
func (u Unbegun) Selectable() metrics.Run {
	run := selectable(u.Point, u.First)
	run.ID, run.Attempt, run.Status = u.First.ID(), 1, metrics.Planned
	return run
}

// Progress counts a study's runs by their state according to the run folders, without asking a scheduler.
type Progress struct {
	Unbegun   int // planned runs without an attempt
	Underway  int // latest attempt waits or runs, or its end was not judged yet
	Ended     int // the scheduler's latest attempt failed; the run has no good result
	Cancelled int // runs in Ended that scalebench cancelled
	EndedHere int // latest attempt failed, and a command ran it on this machine
}

// ProgressOf counts the runs of a plan.
func ProgressOf(plan *study.Plan, attempts []*Attempt) Progress {
	var p Progress
	states := make([]State, len(attempts))
	for i, a := range attempts {
		states[i] = State{Attempt: a, Status: metrics.Unknown}
		switch {
		case a.Verdict != nil:
			states[i].Status = a.Verdict.Status
		case a.Cancelled != nil:
			states[i].Status = metrics.Cancelled
		}
	}
	choice := Choice{Plan: plan, Done: func(study.Run) bool { return false }}
	for _, b := range choice.EndedBadly(states) {
		switch {
		case b.Last.Attached():
			p.EndedHere++
		default:
			p.Ended++
			if b.Last.Status == metrics.Cancelled {
				p.Cancelled++
			}
		}
	}
	of := attemptsAt(states)
	for _, planned := range plan.Points {
		tried := of[planned.Point.Run()]
		switch {
		case len(tried) == 0:
			p.Unbegun++
		case slices.ContainsFunc(tried, func(s State) bool { return s.Status.Good() }):
		case slices.ContainsFunc(tried, func(s State) bool { return !s.Status.Terminal() }):
			p.Underway++
		}
	}
	return p
}

func selectable(p study.Point, in rundir.Folder) metrics.Run {
	return metrics.Run{Study: p.Study, Point: p.ID, Repeat: p.Repeat, Kind: p.Workload.Kind,
		Framework: p.Framework, Workers: p.Workers, AuxRanks: p.AuxRanks, Nodes: p.Nodes, Parameters: p.Parameters(), Dir: in.Path()}
}
