package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/cmd/version"
	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/native/collective"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// timeoutVariable sets how long a rank waits for another, as "90s" or "5m": at the rendezvous, and for a silent
// rank in a collective.
const timeoutVariable = "SCALEBENCH_PEER_TIMEOUT"

// peerTimeout reads timeoutVariable; 0 if unset, for the default.
func peerTimeout(getenv func(string) string) (time.Duration, error) {
	text := getenv(timeoutVariable)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf(`%s = %q is not a length of time above 0; want one like "90s" or "5m"`, timeoutVariable, text)
	}
	return d, nil
}

// A program is one rank of a kind of workload. The command run starts it with its place in
// the world and its run folder in the environment.
type program struct {
	run   rundir.Folder
	point study.Point
	world world.World
	nonce string   // shared secret by which the ranks of the attempt recognise each other
	file  *os.File // file with the events
	// timeout limits how long a rank waits for another; 0 means the default.
	timeout time.Duration
}

// openProgram reads what this rank should do and creates its event file.
func openProgram() (*program, error) {
	run := rundir.Folder(os.Getenv(framework.RunVariable))
	if run == "" {
		return nil, fmt.Errorf("%s is not set; scalebench-worker run starts this command", framework.RunVariable)
	}
	w, err := world.FromEnviron(os.Getenv)
	if err != nil {
		return nil, err
	}
	timeout, err := peerTimeout(os.Getenv)
	if err != nil {
		return nil, err
	}
	point, err := worker.LoadPoint(run)
	if err != nil {
		return nil, err
	}
	if folder := os.Getenv(framework.DataVariable); folder != "" {
		point.Data.Path = folder // the staged copy on this node, if any
	}
	nonce, err := worker.ReadNonce(run)
	if err != nil {
		return nil, err
	}
	file, err := worker.OpenEvents(run, "rank", w)
	if err != nil {
		return nil, err
	}
	return &program{run: run, point: point, world: w, nonce: nonce, file: file, timeout: timeout}, nil
}

// writer starts the rank's event file.
func (p *program) writer() (*metrics.Writer, error) {
	host, _ := os.Hostname() // "" means unknown
	return metrics.NewWriter(p.file, metrics.Start{
		Writer: "rank", Framework: p.point.Framework, Rank: p.world.Rank, WorldSize: p.world.Size, LocalRank: p.world.LocalRank,
		Restart: p.world.Restart, Host: host, PID: os.Getpid(),
	})
}

// join connects the ranks as a group; numbers travel over the transport.
func (p *program) join(ctx context.Context, t collective.Transport) (*collective.Group, error) {
	if p.world.Size != p.point.Ranks() {
		return nil, fmt.Errorf("%d ranks were started, but the point asks for %d", p.world.Size, p.point.Ranks())
	}
	return collective.Join(ctx, p.world, p.nonce, collective.Options{Timeout: p.timeout, JoinTimeout: p.timeout, Build: version.String(), Transport: t})
}

// A member is a program whose ranks form a group.
type member struct {
	*program
	group  *collective.Group
	events *metrics.Writer
	log    io.Writer // shows what the rank does
}

// runMember runs one rank of a group, and tells the other ranks and the event file how it ended. what is its
// name in the event of an error.
func runMember(c *cli.Context, what string, transport func(study.Point) collective.Transport, work func(context.Context, *member) error) error {
	p, err := openProgram()
	if err != nil {
		return err
	}
	defer p.file.Close()
	ctx, stop := untilSignal(c)
	defer stop()
	m := &member{program: p, log: os.Stdout}
	var joined error
	m.group, joined = p.join(ctx, transport(p.point))
	if m.events, err = p.writer(); err == nil {
		err = joined
	}
	if err == nil {
		err = work(ctx, m)
	}
	return m.end(ctx, what, err)
}

// overTCP chooses TCP: waiting in shared memory would take CPU time from what is measured.
func overTCP(study.Point) collective.Transport { return collective.TCP }

func (m *member) end(ctx context.Context, what string, err error) error {
	if m.group != nil {
		if err != nil {
			m.group.Abort(err)
		}
		_ = m.group.Close() // all relevant data has arrived
	}
	if m.events == nil {
		return err
	}
	stop := metrics.Stop{Status: metrics.StopDone}
	switch {
	case err != nil && ctx.Err() != nil:
		stop.Status, stop.Cause = metrics.StopInterrupted, context.Cause(ctx).Error()
	case err != nil:
		stop.Status, stop.Cause = metrics.StopFailed, err.Error()
		// A write error would reappear in the next write.
		_ = m.events.Write(metrics.Event{Error: &metrics.Error{Where: what, Message: err.Error()}})
	}
	if e := m.events.Write(metrics.Event{Stop: &stop}); e != nil {
		return errors.Join(err, fmt.Errorf("writing events: %w", e))
	}
	return err
}

// phase records and logs what rank 0, and so the run, does from now on.
func (m *member) phase(text string) error {
	if m.world.Rank > 0 {
		return nil
	}
	fmt.Fprintln(m.log, text)
	return m.events.Write(metrics.Event{Phase: &metrics.Phase{Text: text}})
}

func (m *member) note(text string) error {
	return m.events.Write(metrics.Event{Note: &metrics.Note{Text: text}})
}

func (m *member) figure(f metrics.Figure) error {
	return m.events.Write(metrics.Event{Figure: &f})
}

// environment records the threads and versions of a rank's own program.
func (m *member) environment(threads int, versions map[string]string) error {
	versions["go"], versions["scalebench"] = runtime.Version(), version.String()
	return m.events.Write(metrics.Event{Environment: &metrics.Environment{Threads: threads, Versions: versions}})
}

// cores returns how many threads compute in a rank.
func (p *program) cores() int {
	return min(runtime.GOMAXPROCS(0), max(p.point.Resources.CPUsPerWorker, 1))
}

// untilSignal returns a context that ends with the first signal, which is its cause.
func untilSignal(c *cli.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(c.Context)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGINT)
	go func() {
		s := <-signals
		if s == syscall.SIGUSR1 {
			cancel(errors.New("signal USR1: the job's time limit is near"))
		}
		cancel(fmt.Errorf("signal %v", s))
	}()
	return ctx, func() { cancel(nil) }
}
