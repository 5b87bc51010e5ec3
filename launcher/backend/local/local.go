// Package local runs attempts as processes of this machine, or as steps on the nodes of an
// allocation that this command is in. They end with the command.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/number"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// Name is the name of this backend in records.
const Name = "local"

func init() {
	launcher.Register(Name, func(o launcher.Options) (launcher.Backend, error) { return New(o) })
}

// A Backend runs attempts as child processes of the command, one at a time, and ends them with it.
type Backend struct {
	launcher.Creator
	allocation    string // id of the job whose nodes attempts use; "" means this machine
	oversubscribe bool
	carrier       launcher.Carrier

	running sync.WaitGroup
	stops   sync.Map // rundir.Folder to context.CancelCauseFunc
	ends    sync.Map // rundir.Folder to the error that kept the record of its end from being written
}

// New returns a backend for this machine, or for the allocation that the command runs in; the site is then the
// one that the plan was made for.
func New(o launcher.Options) (*Backend, error) {
	b := &Backend{Creator: o.Creator, oversubscribe: o.Oversubscribe,
		carrier: &processes{creator: o.Creator}}
	if o.Allocation != nil {
		var err error
		if b.carrier, err = launcher.NewCarrier(o); err != nil {
			return nil, err
		}
		b.allocation, b.Scripted = o.Allocation.JobID, true
	}
	return b, nil
}

// Name returns the name.
func (b *Backend) Name() string { return Name }

// Attached: attempts end with the command that began them.
func (b *Backend) Attached() bool { return true }

// Limits allows one run at a time: concurrent runs would disturb each other's measurements.
func (b *Backend) Limits() launcher.Limits { return launcher.Limits{InFlight: 1} }

// Occupies reports whether a live command on this machine drives the attempt.
func (b *Backend) Occupies(s launcher.State) bool {
	alive, known := drives(s.Record)
	return alive && known
}

// OnOneNode returns the plan for this machine, on which all ranks of a point share a node, regardless of the
// cluster's partitions.
func OnOneNode(plan *study.Plan) *study.Plan {
	one := *plan
	one.Points = slices.Clone(plan.Points)
	for i := range one.Points {
		p := &one.Points[i]
		p.Partition, p.Exclusive = "", false
		p.Point.OnOneNode()
		if !p.Point.Enforces(study.MemoryKey) {
			p.Point.Resources.Memory = 0 // memory is not limited here, and a recorded value would look like a limit
		}
	}
	return &one
}

// Unused returns the keys that a study sets and that have no effect on this machine without an allocation,
// because they are requests to a scheduler. Swept memory is limited here too, so it is not among them.
func Unused(s *study.Study) []string {
	return slices.DeleteFunc([]string{"resources.workers_per_node", "resources.memory", "resources.time", "resources.exclusive", "resources.cpu_bind", "resources.mpi"},
		func(path string) bool {
			return !s.Sets(path) || path == study.MemoryKey && s.MustEnforce(path)
		})
}

// Fits returns why a point cannot be measured here, or nil.
func (b *Backend) Fits(p study.Point) error {
	if why := b.Site.Unfit(p.Variant, b.allocation != ""); why != "" {
		return fmt.Errorf("variant %q cannot run here: %s; use submit", p.Variant, why)
	}
	if b.allocation != "" {
		return nil // the plan was made for its nodes
	}
	fence, err := fenced(p)
	if err != nil {
		return fmt.Errorf("%w; without it every value of resources.memory would run the same. Submit the study to a cluster that limits memory", err)
	}
	if fence != nil {
		if err := fence.Remove(); err != nil {
			return err
		}
	}
	want, have := p.Ranks()*p.Resources.CPUsPerWorker, world.CPUs()
	if want > have && !b.oversubscribe {
		who := number.Count(p.Workers, "worker")
		if p.AuxRanks > 0 {
			who += " and the load generator,"
		}
		return fmt.Errorf("the run needs %s (%s with %d each), and this process may use %d; its throughput would say nothing about scaling (--oversubscribe runs it anyway and marks it)",
			number.Count(want, "CPU"), who, p.Resources.CPUsPerWorker, have)
	}
	return nil
}

// Begin creates the attempt and runs it until it ends or End is called.
func (b *Backend) Begin(ctx context.Context, load []launcher.Todo) ([]*launcher.Attempt, error) {
	t := load[0]
	r := launcher.Record{Backend: Name, Allocation: b.allocation, PID: os.Getpid(), PIDStart: processStart(os.Getpid()), PIDSpace: worker.PIDSpace()}
	a, err := b.Create(t, r, func(at rundir.Folder, a *launcher.Attempt) error {
		if err := rundir.WriteFile(at.Heartbeat(), []byte("\n"), sharedfs.ModeOpen); err != nil {
			return err
		}
		return b.carrier.Write(t, at, a)
	})
	if err != nil {
		return nil, err
	}
	if err := b.carrier.Ready(a); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	b.stops.Store(a.Run, stop)
	still := sharedfs.Beat(a.Run.Heartbeat())
	b.running.Go(func() {
		defer still() // stop the heartbeat after the end is recorded
		defer stop(nil)
		exit := b.carrier.Carry(ctx, a)
		// A batch script writes its exit record itself, unless it could not. Without a record the attempt reads
		// as lost, for example after the disk was full: to this command at once, to others when this one has
		// ended.
		if _, err := os.Stat(a.Run.Exit(0)); err != nil {
			_ = a.Run.TakeClaim(0, "")
			if err := rundir.WriteJSON(a.Run.Exit(0), exit, sharedfs.ModeOpen); err != nil {
				b.ends.Store(a.Run, err)
			}
		}
	})
	return []*launcher.Attempt{a}, nil
}

// End ends the attempts of this command as a scheduler would: with SIGTERM, then SIGKILL.
func (b *Backend) End() {
	b.stops.Range(func(_, stop any) bool {
		stop.(context.CancelCauseFunc)(errors.New("cancelled"))
		return true
	})
}

// Wait returns when every attempt of this command has ended.
func (b *Backend) Wait() { b.running.Wait() }

// Survey looks for the commands that drive attempts.
func (b *Backend) Survey(_ context.Context, open []*launcher.Attempt) ([]launcher.Finding, error) {
	findings := make([]launcher.Finding, len(open))
	for i, a := range open {
		findings[i] = launcher.Finding{Job: a.RecordedJob(), Judge: func(t launcher.Traces) (metrics.Status, string) {
			e := drivenEvidence{Evidence: a.Evidence(t)}
			if err, ended := b.ends.Load(a.Run); ended {
				e.Unwritten = err.(error)
			}
			if e.Driven, e.DrivenKnown = drives(a.Record); !e.DrivenKnown {
				if age, err := sharedfs.Age(a.Run.Heartbeat(), a.Run.Path()); err == nil {
					e.Silence = &age
				}
			}
			if e.Driven {
				e.Asleep = asleep(a.Record)
			}
			return judgeDriven(e)
		}}
	}
	return findings, nil
}

// Cancel ends the command that drives an attempt, if that is on this host.
func (b *Backend) Cancel(_ context.Context, states []launcher.State) ([]launcher.Ending, error) {
	type driver struct {
		pid         int
		host, space string
	}
	list, ended := make([]launcher.Ending, len(states)), map[driver]error{}
	for i, s := range states {
		d := driver{s.Record.PID, s.Record.Host, s.Record.PIDSpace}
		err, done := ended[d]
		if !done {
			err = endDriver(s.Record)
			ended[d] = err
		}
		list[i] = launcher.Ending{State: s, Asked: err == nil, What: fmt.Sprintf("asked the command that drives it to end (process %d)", s.Record.PID)}
		if err != nil {
			list[i].What = err.Error()
		}
	}
	return list, nil
}
