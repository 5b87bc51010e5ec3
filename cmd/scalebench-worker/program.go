package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
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
	run    rundir.Folder
	point  study.Point
	world  world.World
	nonce  string // shared secret by which the ranks of the attempt recognise each other
	events *os.File
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
		point.Data.Path = folder // it may be staged on this node
	}
	nonce, err := worker.ReadNonce(run)
	if err != nil {
		return nil, err
	}
	events, err := worker.OpenEvents(run, "rank", w)
	if err != nil {
		return nil, err
	}
	return &program{run: run, point: point, world: w, nonce: nonce, events: events, timeout: timeout}, nil
}

// writer starts the rank's event file.
func (p *program) writer() (*metrics.Writer, error) {
	host, _ := os.Hostname() // "" means unknown
	return metrics.NewWriter(p.events, metrics.Start{
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
