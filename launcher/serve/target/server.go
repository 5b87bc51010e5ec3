package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// This file runs the server of a service: one process, started where it is to
// listen, asked until it is ready, watched while it serves, and ended with all that
// it has started.

// replicaGrace is how long a server may take to end after SIGTERM before it is killed.
// Some never do.
const replicaGrace = 5 * time.Second

// ReplicaOptions say what to start.
type ReplicaOptions struct {
	Arguments []string
	Environ   []string // beside this process's own, NAME=value
	Log       *os.File // its standard output and error
}

// Replica is a server that was started.
type Replica struct {
	cmd   *exec.Cmd
	ended chan struct{}
	why   error
}

// StartReplica starts a server. It ends with this process, whatever becomes of that.
func StartReplica(o ReplicaOptions) (*Replica, error) {
	cmd := exec.Command(o.Arguments[0], o.Arguments[1:]...)
	cmd.Env = append(os.Environ(), o.Environ...)
	cmd.Stdout, cmd.Stderr = o.Log, o.Log
	// A group of its own, which is ended as a whole.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r := &Replica{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig is the death of this thread
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			r.why = outcome(cmd.Wait())
			close(r.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("the server cannot be started: %w", err)
	}
	return r, nil
}

func outcome(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return errors.New("the server ended with exit code 0 without being told to")
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return fmt.Errorf("the server ended with exit code %d", exit.ExitCode())
	}
	return fmt.Errorf("the server ended: %w", err)
}

// Ended is closed when the server has ended, which Why explains then.
func (r *Replica) Ended() <-chan struct{} { return r.ended }

// Why is how a server that has ended did.
func (r *Replica) Why() error { return r.why }

// End ends the server and all that is still in its process group.
func (r *Replica) End() {
	group := -r.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-r.ended:
	case <-time.After(replicaGrace):
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // what it has started, or itself
	<-r.ended
}

// Ready asks the server until it answers that it is ready, which is nil. The error says
// what the last answer was.
func (r *Replica) Ready(ctx context.Context, ask func(context.Context) error, within time.Duration) error {
	ctx, stop := context.WithTimeoutCause(ctx, within, fmt.Errorf("not ready after %v", within))
	defer stop()
	var last error
	for {
		asking, cancel := context.WithTimeout(ctx, patience)
		err := ask(asking)
		cancel()
		if ctx.Err() == nil || last == nil { // else it says that the time is up, and no more
			last = err
		}
		if err == nil {
			select {
			case <-r.ended: // somebody else answers there
			default:
				return nil
			}
		}
		select {
		case <-r.ended:
			return fmt.Errorf("%w before it was ready", r.why)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// patience is how long one answer to a question whether it is ready may take.
const patience = 5 * time.Second

var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}}

// Accepts is nil when the port (HOST:PORT) accepts a connection.
func Accepts(ctx context.Context, address string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		err = c.Close()
	}
	return err
}

// Answers is nil when the URL answers with a status of 2xx.
func Answers(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 200)) // only shown
		return fmt.Errorf("%s answers %s: %q", url, strconv.Itoa(answer.StatusCode), text)
	}
	return nil
}
