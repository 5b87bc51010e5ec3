package local

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

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// processes carry attempts out on this machine: one supervisor a rank, or a
// node, as a step of Slurm would have it.
type processes struct {
	creator launcher.Creator

	supervisors sync.Map // pid to struct{}: started, and not yet waited for
}

func (p *processes) Write(_ launcher.Todo, _ rundir.Folder, a *launcher.Attempt) error {
	if a.Point.Nodes != 1 {
		return fmt.Errorf("%s is planned for %d nodes, but this machine is one", a.Record.ID, a.Point.Nodes)
	}
	return nil
}

func (p *processes) Ready(a *launcher.Attempt) error {
	if err := worker.AdoptOrphans(); err != nil {
		return err
	}
	return a.Run.TakeClaim(0, "")
}

func (p *processes) Carry(ctx context.Context, a *launcher.Attempt) (exit launcher.Exit) {
	started := time.Now()
	exit = launcher.Exit{StartUnix: metrics.Unix(started)}
	// By the monotonic clock: a clock that is set meanwhile makes no run end
	// before it began.
	defer func() { exit.EndUnix = exit.StartUnix + time.Since(started).Seconds() }()
	log, err := os.OpenFile(a.Run.JobLog(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		exit.ExitCode = 1
		return exit
	}
	defer log.Close()
	f, err := framework.Find(a.Point.Framework)
	port, err2 := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err := errors.Join(err, err2); err != nil {
		fmt.Fprintln(log, "scalebench:", err)
		exit.ExitCode = 1
		return exit
	}
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1", Port: port}
	site := p.creator.SiteOf(a.Point)
	if launcher.Stages(site.Stage, a.Point, f) {
		stage, unstage := launcher.Staging(site.Stage, a.Record.ID, time.Duration(a.Point.Resources.Time))
		exit.ExitCode = p.process(ctx, site, w, nil, nil, log, append(stage, "--dir", a.Run.Path(), "--place", "environment"))
		if unstage != nil {
			defer p.process(context.WithoutCancel(ctx), site, w, nil, nil, log, unstage)
		}
	}
	if exit.ExitCode == 0 {
		fence, err := fenced(a.Point)
		if err != nil {
			fmt.Fprintln(log, "scalebench:", err)
			exit.ExitCode = 1
			return exit
		}
		exit.ExitCode = p.ranks(ctx, a, f, w, fence, log)
		p.clear(a, log)
		if fence != nil {
			exit.Killed = fence.Kills()
			if err := fence.Remove(); err != nil {
				fmt.Fprintln(log, "scalebench:", err)
			}
		}
	}
	if ctx.Err() != nil {
		exit.Signal = "TERM"
	}
	return exit
}

// fenced returns a cgroup that limits the memory of a point's ranks together, as a job does on a node; nil
// without a limit.
func fenced(point study.Point) (*world.Fence, error) {
	if !point.Enforces(study.MemoryKey) || point.Resources.Memory == 0 {
		return nil, nil
	}
	fence, err := world.NewFence(fmt.Sprintf("scalebench-%d", os.Getpid()), int64(point.Resources.Memory)*int64(point.Ranks()))
	if err != nil {
		return nil, fmt.Errorf("cannot limit memory to resources.memory = %v: %w", point.Resources.Memory, err)
	}
	return fence, nil
}

// ranks starts the supervisors and waits for all of them; the result is the
// largest of their exit codes. When one fails the others are ended: they would
// wait for it until their own deadline.
func (p *processes) ranks(ctx context.Context, a *launcher.Attempt, f framework.Framework, w world.World, fence *world.Fence, log *os.File) int {
	ranks := a.Point.Ranks()
	if f.OncePerNode(a.Point) {
		ranks = 1
	}
	w.Size, w.LocalSize = a.Point.Ranks(), a.Point.Ranks()
	// Frameworks that start ranks themselves, and users' programs, bind them themselves. With a GPU, CPUs are
	// seldom scarce. If the study compares CPU counts, each rank gets exactly its CPUs.
	bound, measured := make([]*cpuSet, ranks), a.Point.Enforces(study.CPUsKey)
	each := a.Point.Resources.CPUsPerWorker * a.Point.Ranks() / ranks
	if own := bindings(ranks, each); own != nil && (measured || ranks == a.Point.Ranks() && !f.StartsUsers(a.Point) && a.Point.Resources.Device == "cpu") {
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
			if codes[rank] = p.process(group, p.creator.SiteOf(a.Point), w, bound[rank], fence, log, append(launcher.Supervise(a.Run, a.Record), "--place", "environment")); codes[rank] != 0 {
				end(fmt.Errorf("rank %d failed", rank))
			}
		})
	}
	wait.Wait()
	return slices.Max(codes)
}

// clear ends processes that a killed supervisor has left, before another run starts. Other supervisors have
// ended their processes themselves.
func (p *processes) clear(a *launcher.Attempt, log *os.File) {
	left := worker.EndAbandoned(func(v map[string]string) bool { return v[framework.RunVariable] == a.Run.Path() })
	orphans := worker.EndOrphans(func(pid int) bool { _, ours := p.supervisors.Load(pid); return ours })
	for _, text := range []string{left.Describe("their supervisor"), orphans.Describe("their supervisor")} {
		if text != "" {
			fmt.Fprintln(log, "scalebench:", text)
		}
	}
}

// process runs scalebench-worker as one rank, with the site's variables, and returns its exit code.
// cpus and memory restrict it; nil: no restriction.
func (p *processes) process(ctx context.Context, site *study.Site, w world.World, cpus *cpuSet, fence *world.Fence, log *os.File, arguments []string) int {
	cmd := exec.CommandContext(ctx, p.creator.Worker, arguments...)
	cmd.Env = append(os.Environ(), w.Environ()...)
	for name, value := range site.Environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = log, log
	// A separate process group keeps the terminal's Ctrl-C from the ranks: they receive only the signal below.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = worker.Grace + 5*time.Second
	runtime.LockOSThread() // Pdeathsig is the death of this thread
	defer runtime.UnlockOSThread()
	start := func(cmd *exec.Cmd) error { return startOn(cpus, cmd) }
	var err error
	if fence != nil {
		err = fence.Start(cmd, start)
	} else {
		err = start(cmd)
	}
	if err == nil {
		p.supervisors.Store(cmd.Process.Pid, struct{}{})
		err = cmd.Wait()
		p.supervisors.Delete(cmd.Process.Pid)
	}
	if err != nil {
		fmt.Fprintf(log, "scalebench: %s of rank %d: %v\n", arguments[0], w.Rank, err)
		return max(1, cmd.ProcessState.ExitCode())
	}
	return 0
}
