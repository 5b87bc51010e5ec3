package collective

import (
	"errors"
	"net"
	"sync"
	"time"
)

// A line is a rank's two ring connections, and the only place that sets their deadlines. After
// interrupt, a later deadline cannot revive them.
type line struct {
	prev, next net.Conn

	mu          sync.Mutex
	interrupted bool
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

func (l *line) readWithin(d time.Duration) { l.set(l.prev.SetReadDeadline, d) }

func (l *line) writeWithin(d time.Duration) { l.set(l.next.SetWriteDeadline, d) }

// set ignores errors: on a closed connection the next read or write fails.
func (l *line) set(deadline func(time.Time) error, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.interrupted {
		_ = deadline(time.Now().Add(d))
	}
}

// interrupt makes this and every later read and write fail at once.
func (l *line) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.interrupted = true
	_ = l.prev.SetReadDeadline(longAgo)
	_ = l.next.SetWriteDeadline(longAgo)
}

func (l *line) close() error { return errors.Join(l.prev.Close(), l.next.Close()) }
