package launcher

import (
	"context"
	"errors"
	"time"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/lease"
	"github.com/scalebench/scalebench/slurm"
)

// State is how far one attempt has come.
type State struct {
	*Attempt
	Status metrics.Status
	Detail string
	Job    *metrics.Job // nil when no scheduler knows of it
	Traces Traces
	// Err is what is wrong with the run folder, nil if nothing: it cannot be
	// read, and Status is then metrics.Unknown, or what was found out cannot be
	// written down.
	Err error
}

// Survey says how far each attempt came, asking the scheduler once for all that
// have not ended. A verdict is written into the run folder, so that later
// commands need not ask again. What is wrong with one run folder is in its state
// and keeps nothing from the others. When the scheduler cannot be reached the
// states are what the folders alone say, and the error says so.
func Survey(ctx context.Context, client *slurm.Client, attempts []*Attempt) ([]State, error) {
	var open []*Attempt
	for _, a := range attempts {
		if a.Unreadable == nil && a.Verdict == nil && a.Record.Backend == Slurm {
			open = append(open, a)
		}
	}
	var jobs map[rundir.Run]*slurm.Job
	var unreachable error
	if len(open) > 0 {
		jobs, unreachable = askSlurm(ctx, client, open)
	}
	states := make([]State, len(attempts))
	wrong := adopt(open, jobs)
	for i, a := range attempts {
		s, err := survey(a, jobs[a.Run], unreachable == nil)
		s.Err = errors.Join(err, wrong[a.Run])
		states[i] = s
	}
	return states, unreachable
}

func survey(a *Attempt, job *slurm.Job, asked bool) (State, error) {
	traces, err := Traces{}, a.Unreadable
	if err == nil {
		traces, err = ReadTraces(a.Run)
	}
	if err != nil {
		return State{Attempt: a, Status: metrics.Unknown, Detail: err.Error(), Job: jobFacts(a, job)}, err
	}
	if v := a.Verdict; v != nil {
		return State{Attempt: a, Status: v.Status, Detail: v.Detail, Job: v.Job, Traces: traces}, nil
	}
	e := Evidence{Backend: a.Record.Backend, Ranks: a.Point.Workers, Limit: time.Duration(a.Point.Resources.Time), Traces: traces,
		Created:   metrics.Time(a.Record.CreatedUnix),
		Submitted: a.Submission != nil, Asked: asked, Requeue: a.Record.Requeue, Shared: a.Record.shared(), Job: job}
	if a.Record.Backend == Local {
		if e.Driven, e.DrivenKnown = drives(a.Record); !e.DrivenKnown {
			if age, err := lease.Age(a.Run.Heartbeat(), a.Run.Path()); err == nil {
				e.Silence = &age
			}
		}
	}
	e.Now = now(a, traces, job)
	s := State{Attempt: a, Traces: traces, Job: jobFacts(a, job)}
	s.Status, s.Detail = Judge(e)
	if s.Status.Terminal() {
		v := Verdict{Status: s.Status, Detail: s.Detail, Job: s.Job}
		if s.Status == metrics.NodeFailed && s.Job != nil && len(s.Job.Nodes) > 0 {
			v.FailedNodes, v.Detail = suspects(s.Job.Nodes, traces.Silent, s.Detail)
			s.Detail = v.Detail
		}
		return s, a.conclude(v)
	}
	return s, nil
}

// now is the present by the clock that wrote down what Judge holds it against:
// the age of the record, by the file server's clock, is added to the time in it.
// The clock of this host may be another, or have been set since.
func now(a *Attempt, t Traces, job *slurm.Job) time.Time {
	written, then := "", 0.0
	switch {
	case t.Exit != nil:
		written, then = a.Run.Exit(t.Restart), t.Exit.EndUnix
	case job == nil && a.Record.Backend == Slurm:
		written, then = a.Run.Attempt(), a.Record.CreatedUnix
	default:
		return time.Now()
	}
	age, err := lease.Age(written, a.Run.Path())
	if err != nil {
		return time.Now()
	}
	return time.Unix(0, int64(then*1e9)).Add(age)
}

// adopt writes down the jobs of attempts whose submission was not recorded: the
// command that submitted them died before it could write the answer down. One
// task of an array that is found says that all of them are there.
func adopt(open []*Attempt, jobs map[rundir.Run]*slurm.Job) (wrong map[rundir.Run]error) {
	wrong = map[rundir.Run]error{}
	packs := map[rundir.Pack]*Submission{}
	for _, a := range open {
		job, m := jobs[a.Run], a.Record.Pack
		if job == nil || a.Submission != nil {
			continue
		}
		answer := &Submission{JobID: job.ID, Cluster: job.Cluster, SubmittedUnix: metrics.Unix(job.Submit)}
		path := a.Run.Job()
		if m != nil {
			if path = a.Run.Pack(m.Name).Job(); packs[a.Run.Pack(m.Name)] != nil {
				continue
			}
			answer.JobID = afterJob(job.ID)
		}
		if err := writeJSON(path, answer, 0o644); err != nil {
			wrong[a.Run] = err
			continue
		}
		if m != nil {
			packs[a.Run.Pack(m.Name)] = answer
			continue
		}
		a.Submission = answer
	}
	for _, a := range open {
		if m := a.Record.Pack; m != nil && a.Submission == nil && packs[a.Run.Pack(m.Name)] != nil {
			a.Submission = m.of(*packs[a.Run.Pack(m.Name)])
		}
	}
	return wrong
}

// conclude writes the last word on an attempt down.
func (a *Attempt) conclude(v Verdict) error {
	if err := writeJSON(a.Run.State(), v, 0o644); err != nil {
		return err
	}
	a.Verdict = &v
	return nil
}

// jobFacts are the scheduler's facts for the store; what it has forgotten comes
// from our own records.
func jobFacts(a *Attempt, job *slurm.Job) *metrics.Job {
	switch {
	case job != nil:
		fact := &metrics.Job{Cluster: job.Cluster, ID: job.ID, Name: job.Name, Partition: job.Partition, State: job.Word,
			Reason: job.Reason, Nodes: job.Nodes,
			SubmitUnix: metrics.Unix(job.Submit), StartUnix: metrics.Unix(job.Start), EndUnix: metrics.Unix(job.End)}
		if job.ExitCode != nil {
			fact.ExitCode = job.ExitCode.String()
		}
		if a.Record.shared() {
			// The job's state and end are those of all its runs; each one takes
			// the first of the nodes.
			fact.State, fact.Reason, fact.ExitCode, fact.EndUnix = "", "", "", 0
			fact.Nodes = fact.Nodes[:min(len(fact.Nodes), max(a.Point.Nodes, 0))]
		}
		return fact
	case a.Record.Allocation != "":
		return &metrics.Job{ID: a.Record.Allocation, Partition: a.Record.Partition}
	case a.Submission != nil:
		return &metrics.Job{Cluster: a.Submission.Cluster, ID: a.Submission.JobID, Name: a.Record.JobName,
			Partition: a.Record.Partition, SubmitUnix: a.Submission.SubmittedUnix}
	}
	return nil
}

// Fact is the attempt as the store keeps it.
func (s State) Fact() metrics.Run {
	p := s.Point
	return metrics.Run{
		ID: s.Record.ID, Study: p.Study, Point: p.ID, Repeat: p.Repeat, Attempt: s.Number, Kind: p.Workload.Kind,
		Framework: p.Framework, Workers: p.Workers, Nodes: p.Nodes, Parameters: p.Parameters(),
		Status: s.Status, Detail: s.Detail, Job: s.Job, Dir: s.Run.Path(), CreatedUnix: s.Record.CreatedUnix,
		Secrets: secrets(s.Run),
	}
}
