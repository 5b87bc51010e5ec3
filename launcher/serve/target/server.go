package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/scalebench/scalebench/metrics/clean"
)

// This file runs one server of a service: it starts the process, queries it until it is ready, watches it while
// it serves, and ends it with all of its child processes.

// replicaGrace limits how long a server may take to exit after SIGTERM before it is killed. Some never exit.
const replicaGrace = 5 * time.Second

// ReplicaOptions configure a server process.
type ReplicaOptions struct {
	Arguments []string
	Environ   []string // NAME=value, added to this process's environment
	Log       *os.File // receives standard output and error
}

// A Replica is a server that was started.
type Replica struct {
	cmd   *exec.Cmd
	ended chan struct{}
	why   *exited
}

// StartReplica starts a server. The kernel kills it if this process dies.
func StartReplica(o ReplicaOptions) (*Replica, error) {
	cmd := exec.Command(o.Arguments[0], o.Arguments[1:]...)
	cmd.Env = append(os.Environ(), o.Environ...)
	cmd.Stdout, cmd.Stderr = o.Log, o.Log
	// A new process group, so that End can end all of it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r := &Replica{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig fires when this thread ends
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			r.why = outcome(cmd.Wait(), o.Log)
			close(r.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("the server cannot be started: %w", err)
	}
	return r, nil
}

// outcome returns how a server exited, with the last line that it wrote.
func outcome(err error, log *os.File) *exited {
	var exit *exec.ExitError
	switch {
	case err == nil:
		err = errors.New("the server exited with code 0 by itself")
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		err = fmt.Errorf("the server exited with code %d", exit.ExitCode())
	default:
		err = fmt.Errorf("the server ended: %w", err)
	}
	return &exited{err, lastLine(log)}
}

// exited is how a server exited.
type exited struct {
	error
	last string // line of its output; "" if unknown
}

func (e *exited) Unwrap() error { return e.error }

// before returns the error of a server that exited too early.
func (e *exited) before(what string) error {
	if e.last == "" {
		return fmt.Errorf("%w before %s", e.error, what)
	}
	return fmt.Errorf("%w before %s: %s", e.error, what, e.last)
}

// lastLine returns the last line of a log that is a regular file; "" if there is none.
func lastLine(log *os.File) string {
	const most = 4 << 10
	if log == nil {
		return ""
	}
	in, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", log.Fd())) // the log itself is opened for writing
	if err != nil {
		return ""
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text := make([]byte, min(info.Size(), most))
	if _, err := in.ReadAt(text, info.Size()-int64(len(text))); err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return clean.Line(lines[len(lines)-1])
}

// Ended returns a channel that is closed when the server has exited.
func (r *Replica) Ended() <-chan struct{} { return r.ended }

// Why returns how the server exited. Call it only after Ended is closed.
func (r *Replica) Why() error { return r.why }

// End ends the server and every process in its group.
func (r *Replica) End() {
	group := -r.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-r.ended:
	case <-time.After(replicaGrace):
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // remaining children, or the server itself
	<-r.ended
}

// Ready queries the server until ask returns nil. The error includes the last query's error.
func (r *Replica) Ready(ctx context.Context, ask func(context.Context) error, within time.Duration) error {
	ctx, stop := context.WithTimeoutCause(ctx, within, fmt.Errorf("not ready after %v", within))
	defer stop()
	var last error
	for {
		asking, cancel := context.WithTimeout(ctx, patience)
		err := ask(asking)
		cancel()
		if ctx.Err() == nil || last == nil { // otherwise the error only says that the time is up
			last = err
		}
		if err == nil {
			select {
			case <-r.ended: // another program answers on this port
			default:
				return nil
			}
		}
		select {
		case <-r.ended:
			return r.why.before("it was ready")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// patience is the timeout of one readiness query.
const patience = 5 * time.Second

var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}}

// Accepts returns nil if the port (HOST:PORT) accepts a connection.
func Accepts(ctx context.Context, address string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		err = c.Close()
	}
	return err
}
