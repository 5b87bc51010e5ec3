package world

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// A StrangerError is that somebody answered who has not proven that it knows the
// nonce.
type StrangerError struct {
	Address string
	Err     error // what the listener did, phrased to follow "the process listening there"
}

func (e *StrangerError) Error() string {
	return fmt.Sprintf("the process listening at %s %v", e.Address, e.Err)
}
func (e *StrangerError) Unwrap() error { return e.Err }

// How long one attempt to connect may last, and how long Dial pauses between
// two.
const (
	connectTime   = 5 * time.Second
	shortestPause = 10 * time.Millisecond
	longestPause  = 500 * time.Millisecond
)

// Dial calls address until somebody answers who knows the nonce, or ctx ends: a
// stranger may leave, and who is expected may come later. The error is the last
// attempt's; a *StrangerError where somebody has ever answered.
func Dial(ctx context.Context, d net.Dialer, network, address, nonce, purpose string) (net.Conn, error) {
	d.Timeout = connectTime
	var last error
	var stranger *StrangerError // the last one, or the last that answered without the nonce: who breaks off may only be leaving
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			if err = call(ctx, conn, nonce, purpose); err == nil {
				return conn, nil
			}
			conn.Close()
			if errors.Is(err, errNoNonce) {
				return nil, err
			}
			err = &StrangerError{address, err}
		}
		if last == nil || ctx.Err() == nil { // an attempt that ctx interrupted says less
			last = err
			if one, ok := errors.AsType[*StrangerError](err); ok && (stranger == nil || errors.Is(one, errUnproven) || !errors.Is(stranger, errUnproven)) {
				stranger = one
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if stranger != nil && last != error(stranger) {
				last = &StrangerError{address, fmt.Errorf("%w; the last attempt ended with: %w", stranger.Err, last)}
			}
			return nil, last
		}
	}
}
