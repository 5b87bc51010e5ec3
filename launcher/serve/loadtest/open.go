package loadtest

import (
	"context"
	"sync"
	"time"
)

// A pool holds the connections of an open loop. A request gets the most recently used free one, so that only
// as many connections stay busy as the service's latency requires.
type pool struct {
	*run
	mu    sync.Mutex
	free  []Sender
	slots chan struct{} // one for each request in flight
}

// take returns a free connection, or a new one.
func (p *pool) take() (Sender, error) {
	p.mu.Lock()
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	return p.Dial()
}

func (p *pool) give(s Sender) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, s)
}

// open sends the first request of each session at its time.
func (r *run) open(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := &pool{run: r, slots: make(chan struct{}, r.MaxInFlight)}
	first, err := r.Dial()
	if err != nil {
		return err
	}
	p.free = append(p.free, first)
	if r.Sleep == nil {
		sleepInKernel()
	}
	var all sync.WaitGroup
	r.start()
	blocked := time.Duration(0) // when a connection last became free: waiting for one is the service's delay, not the client's
	for _, at := range r.Schedule {
		r.until(ctx, at)
		select {
		case p.slots <- struct{}{}:
		default:
			r.held++
			select {
			case p.slots <- struct{}{}:
			case <-ctx.Done():
			}
			blocked = time.Since(r.begin)
		}
		if ctx.Err() != nil {
			break
		}
		due := max(at, blocked)
		r.behind = due - at
		all.Go(func() { p.session(ctx, at, time.Since(r.begin)-due) })
	}
	all.Wait()
	for _, s := range p.free {
		_ = s.Close()
	}
	return context.Cause(ctx)
}

// session sends a request that was due at the time at and that the client started late by the given amount,
// and the further turns of its session. It holds a slot when it begins.
func (p *pool) session(ctx context.Context, at, late time.Duration) {
	s, err := p.take()
	if err != nil { // a refused connection is the service's error, not the tool's
		<-p.slots
		now := time.Since(p.begin)
		p.record.sent(now)
		p.record.done(request{at: at, sent: now, now: now, late: late, replica: -1, err: &unconnected{err}})
		return
	}
	for {
		err := p.one(s, at, late)
		<-p.slots
		if err != nil {
			_ = s.Close() // a late answer would be taken for the next request's
			return
		}
		think, more := thinks(s, nil)
		if !more || ctx.Err() != nil || time.Since(p.begin) > p.end() {
			p.give(s)
			return
		}
		pause(ctx, think)
		at, late = time.Since(p.begin), 0 // a wait for a slot counts as latency
		p.slots <- struct{}{}
	}
}

// end returns the time at which the last session begins; no session continues after it.
func (r *run) end() time.Duration { return r.Schedule[len(r.Schedule)-1] }
