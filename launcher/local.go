package launcher

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/leftover"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/lease"
)

// LocalBackend runs attempts as processes on this machine: one supervisor a
// rank, or a node, as a step of Slurm would have it.
type LocalBackend struct {
	Creator
	Environment map[string]string // of the site file
	Stage       study.Stage       // likewise
	// Oversubscribe allows more ranks than there are CPUs for them.
	Oversubscribe bool

	running     sync.WaitGroup
	stops       sync.Map // rundir.Run to context.CancelCauseFunc
	supervisors sync.Map // pid to struct{}: started, and not yet waited for
}

// Fits says why a point cannot be measured on this machine; nil when it can.
func (b *LocalBackend) Fits(p study.Point) error {
	want, have := p.Workers*p.Resources.CPUsPerWorker, world.CPUs()
	if want > have && !b.Oversubscribe {
		return fmt.Errorf("%d workers with %d CPUs each need %d CPUs and this process may use %d; their throughput would say nothing about scaling (--oversubscribe runs them all the same, marked so)",
			p.Workers, p.Resources.CPUsPerWorker, want, have)
	}
	return nil
}

// Start creates the attempt and begins it; its processes go on until they end
// or Cancel.
func (b *LocalBackend) Start(ctx context.Context, load []Todo) ([]*Attempt, error) {
	a, err := b.start(ctx, load[0])
	return []*Attempt{a}, err
}

func (b *LocalBackend) start(ctx context.Context, t Todo) (*Attempt, error) {
	f, err := framework.Find(t.Point.Framework)
	if err != nil {
		return nil, err
	}
	if err := leftover.Adopt(); err != nil {
		return nil, err
	}
	// On this machine all ranks share one node, whatever the plan says of a
	// cluster's.
	t.Point.Nodes, t.Point.WorkersPerNode = 1, t.Point.Workers
	a, err := b.create(t, nil)
	if err != nil {
		return nil, err
	}
	if err := a.Run.TakeClaim(0, ""); err != nil {
		return nil, err
	}
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	b.stops.Store(a.Run, stop)
	b.running.Add(1)
	still := lease.Beat(a.Run.Heartbeat())
	go func() {
		defer b.running.Done()
		defer still() // after the record of the end
		defer stop(nil)
		exit := b.run(ctx, a, f, port)
		// Without the record the attempt reads as lost, which is what a full
		// disk makes of it.
		_ = writeJSON(a.Run.Exit(0), exit, 0o644)
	}()
	return a, nil
}

// Cancel ends an attempt's processes as the scheduler would: SIGTERM, and what
// is then still there is killed.
func (b *LocalBackend) Cancel(_ context.Context, attempts []*Attempt) error {
	for _, a := range attempts {
		if stop, ok := b.stops.Load(a.Run); ok {
			stop.(context.CancelCauseFunc)(errors.New("cancelled"))
		}
	}
	return nil
}

// Wait returns when the processes of every attempt have ended.
func (b *LocalBackend) Wait() { b.running.Wait() }

// run carries an attempt out on this machine.
func (b *LocalBackend) run(ctx context.Context, a *Attempt, f framework.Framework, port int) (exit Exit) {
	started := time.Now()
	exit = Exit{StartUnix: metrics.Unix(started)}
	// By the monotonic clock: a clock that is set meanwhile makes no run end
	// before it began.
	defer func() { exit.EndUnix = exit.StartUnix + time.Since(started).Seconds() }()
	log, err := os.OpenFile(a.Run.JobLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		exit.ExitCode = 1
		return exit
	}
	defer log.Close()
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1", Port: port}
	if stages(b.Stage, a.Point, f) {
		stage, unstage := staging(b.Stage, a.Record.ID, time.Duration(a.Point.Resources.Time))
		exit.ExitCode = b.process(ctx, w, nil, log, append(stage, "--dir", a.Run.Path(), "--place", "environment"))
		if unstage != nil {
			defer b.process(context.WithoutCancel(ctx), w, nil, log, unstage)
		}
	}
	if exit.ExitCode == 0 {
		exit.ExitCode = b.ranks(ctx, a, f, w, log)
		b.clear(a, log)
	}
	if ctx.Err() != nil {
		exit.Signal = "TERM"
	}
	return exit
}

// ranks starts the supervisors and waits for all of them; the result is the
// largest of their exit codes. When one fails the others are ended: they would
// wait for it until their own deadline.
func (b *LocalBackend) ranks(ctx context.Context, a *Attempt, f framework.Framework, w world.World, log *os.File) int {
	ranks := a.Point.Workers
	if f.OncePerNode(a.Point) {
		ranks = 1
	}
	w.Size, w.LocalSize = a.Point.Workers, a.Point.Workers
	// Who starts ranks itself, or brings programs that we know nothing of,
	// places them itself; beside a GPU the CPUs are seldom what is scarce.
	bound := make([]*cpuSet, ranks)
	if own := bindings(ranks, a.Point.Resources.CPUsPerWorker); own != nil && ranks == a.Point.Workers && !f.UserProgram && a.Point.Resources.Device == "cpu" {
		bound = own
	}
	// The group's context ends with the first failure.
	group, end := context.WithCancelCause(ctx)
	defer end(nil)
	codes := make([]int, ranks)
	var wait sync.WaitGroup
	for rank := range ranks {
		w := w
		w.Rank, w.LocalRank = rank, rank
		wait.Go(func() {
			if codes[rank] = b.process(group, w, bound[rank], log, append(supervise(a.Run, a.Record), "--place", "environment")); codes[rank] != 0 {
				end(fmt.Errorf("rank %d failed", rank))
			}
		})
	}
	wait.Wait()
	return slices.Max(codes)
}

// clear ends what a supervisor that was killed has left of its program, before
// another run begins. What the others leave they have ended themselves.
func (b *LocalBackend) clear(a *Attempt, log *os.File) {
	left := leftover.EndAbandoned(func(v map[string]string) bool { return v[framework.RunVariable] == a.Run.Path() })
	orphans := leftover.EndOrphans(func(pid int) bool { _, ours := b.supervisors.Load(pid); return ours })
	for _, text := range []string{left.Of("their supervisor"), orphans.Of("their supervisor")} {
		if text != "" {
			fmt.Fprintln(log, "scalebench:", text)
		}
	}
}

// process runs scalebench-worker in a place in the world, on those CPUs, nil for
// any, and returns its exit code.
func (b *LocalBackend) process(ctx context.Context, w world.World, cpus *cpuSet, log *os.File, arguments []string) int {
	cmd := exec.CommandContext(ctx, b.Worker, arguments...)
	cmd.Env = append(os.Environ(), w.Environ()...)
	for name, value := range b.Environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own keeps the terminal's Ctrl-C from reaching the
	// ranks beside our own, orderly signal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = worker.Grace + 5*time.Second
	runtime.LockOSThread() // Pdeathsig is the death of this thread
	defer runtime.UnlockOSThread()
	err := startOn(cpus, cmd)
	if err == nil {
		b.supervisors.Store(cmd.Process.Pid, struct{}{})
		err = cmd.Wait()
		b.supervisors.Delete(cmd.Process.Pid)
	}
	if err != nil {
		fmt.Fprintf(log, "scalebench: %s of rank %d: %v\n", arguments[0], w.Rank, err)
		return max(1, cmd.ProcessState.ExitCode())
	}
	return 0
}
