package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/train"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
)

// timeoutVariable is how long a rank waits for another, as "90s" or "5m": at the
// rendezvous, and in a collective for one that says nothing.
const timeoutVariable = "SCALEBENCH_PEER_TIMEOUT"

// peerTimeout reads timeoutVariable; 0 where it is not set leaves it to the
// default.
func peerTimeout(getenv func(string) string) (time.Duration, error) {
	text := getenv(timeoutVariable)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf(`%s = %q is no time to wait for another rank; want one such as "90s" or "5m"`, timeoutVariable, text)
	}
	return d, nil
}

// trainNative is started by run, which has put the world and the run folder
// into the environment.
func trainNative(c *cli.Context) error {
	run := rundir.Run(os.Getenv(framework.RunVariable))
	if run == "" {
		return fmt.Errorf("%s is not set; scalebench-worker run starts this command", framework.RunVariable)
	}
	w, err := world.FromEnviron(os.Getenv)
	if err != nil {
		return err
	}
	timeout, err := peerTimeout(os.Getenv)
	if err != nil {
		return err
	}
	point, err := worker.LoadPoint(run)
	if err != nil {
		return err
	}
	if folder := os.Getenv(framework.DataVariable); folder != "" {
		point.Data.Path = folder // staged on this node, maybe
	}
	nonce, err := os.ReadFile(run.Nonce())
	if err != nil {
		return err
	}
	events, err := worker.OpenEvents(run, "rank", w)
	if err != nil {
		return err
	}
	defer events.Close()

	ctx, stop := context.WithCancelCause(c.Context)
	defer stop(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGINT)
	go func() {
		s := <-signals
		if s == syscall.SIGUSR1 {
			stop(errors.New("signal USR1: the job's time limit is near"))
		}
		stop(fmt.Errorf("signal %v", s))
	}()
	return train.Run(ctx, point, w, train.Options{Nonce: strings.TrimSpace(string(nonce)), Events: events, Log: os.Stdout, Timeout: timeout, JoinTimeout: timeout})
}
