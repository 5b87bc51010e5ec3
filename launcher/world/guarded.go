package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxUnproven bounds how many callers may be proving themselves at the same time. The next caller
// displaces the oldest one, which has had the most time. A rank of the run needs one round trip and
// calls again, so strangers could keep it out only with maxUnproven calls in every round trip.
const maxUnproven = 256

// maxNoted bounds how many rejected callers Trouble names.
const maxNoted = 8

// A GuardedListener is a listener that admits only callers that know the nonce. Each stranger costs it one
// goroutine, for at most patience.
type GuardedListener struct {
	listener       net.Listener
	nonce, purpose string

	mu       sync.Mutex
	unproven []net.Conn // the oldest first
	noted    []string   // the last that were turned away, and why
	away     int        // how many were turned away
	failed   int        // how often Accept has failed
	failure  error      // the last time
}

// NewGuardedListener returns a listener on l for one purpose. Serve closes l.
func NewGuardedListener(l net.Listener, nonce, purpose string) *GuardedListener {
	return &GuardedListener{listener: l, nonce: nonce, purpose: purpose}
}

// Serve admits callers until ctx ends or the listener is closed, and closes the listener before it
// returns. It passes each proven caller to enter, in a new goroutine; enter then owns the
// connection. An error from enter says why the caller was rejected, and Trouble reports it.
//
// Accept may fail for a while, for example when the process is out of file descriptors. Serve then
// drops a stranger, pauses and tries again.
func (d *GuardedListener) Serve(ctx context.Context, enter func(net.Conn) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends all running handshakes
	stop := context.AfterFunc(ctx, func() { d.listener.Close() })
	defer stop()
	for pause := shortestPause; ; {
		conn, err := d.listener.Accept()
		switch {
		case err == nil:
			pause = shortestPause
			d.hold(conn)
			go d.receive(ctx, conn, enter)
		case errors.Is(err, net.ErrClosed):
			return
		default:
			d.fail(err)
			select {
			case <-time.After(pause):
			case <-ctx.Done(): // even if Accept keeps failing
				d.listener.Close()
				return
			}
			pause = min(2*pause, longestPause)
		}
	}
}

func (d *GuardedListener) receive(ctx context.Context, conn net.Conn, enter func(net.Conn) error) {
	err := answer(ctx, conn, d.nonce, d.purpose, func() bool { return d.release(conn) })
	if err == nil {
		err = enter(conn)
	} else {
		if !d.release(conn) {
			err = errDropped
		}
		conn.Close()
	}
	if err != nil && ctx.Err() == nil {
		d.note(conn, err)
	}
}

// hold keeps a caller as unproven, and drops the oldest one if there are too
// many.
func (d *GuardedListener) hold(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.unproven) == maxUnproven {
		d.dropOldest()
	}
	d.unproven = append(d.unproven, conn)
}

// release reports whether conn has not been dropped, and protects it from being dropped.
func (d *GuardedListener) release(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(d.unproven, conn)
	if i < 0 {
		return false
	}
	d.unproven = slices.Delete(d.unproven, i, i+1)
	return true
}

// dropOldest frees the file descriptor of who has had the longest time.
func (d *GuardedListener) dropOldest() {
	if len(d.unproven) > 0 {
		d.unproven[0].Close()
		d.unproven = slices.Delete(d.unproven, 0, 1)
	}
}

func (d *GuardedListener) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed++
	d.failure = err
	d.dropOldest()
}

func (d *GuardedListener) note(conn net.Conn, err error) {
	who := "a process of this host" // a Unix socket's caller has no address
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		who = a.String()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away++
	d.noted = append(d.noted, fmt.Sprintf("%s: %v", who, err))
	d.noted = d.noted[max(0, len(d.noted)-maxNoted):]
}

// Trouble returns what may have kept a caller out: unknown callers, and why connections could not be accepted.
// It is "" or starts with "; ", to be appended to a sentence about a missing rank.
func (d *GuardedListener) Trouble() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var text string
	if d.failed > 0 {
		text += fmt.Sprintf("; accepting connections failed (%d×), most recently with: %v", d.failed, d.failure)
	}
	if n := d.away - len(d.noted); d.away > 0 {
		text += "; refused: " + strings.Join(d.noted, "; ")
		if n > 0 {
			text += fmt.Sprintf("; and %d earlier", n)
		}
	}
	return text
}
