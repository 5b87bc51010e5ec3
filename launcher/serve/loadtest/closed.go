package loadtest

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// closed keeps InFlight callers busy, who start together, or evenly over Ramp.
func (r *run) closed(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	senders := make([]Sender, r.InFlight)
	for i := range senders {
		var err error
		if senders[i], err = r.Dial(); err != nil {
			for _, s := range senders[:i] {
				_ = s.Close()
			}
			return fmt.Errorf("connection %d of %d: %w", i+1, r.InFlight, err)
		}
	}
	r.start()
	for i, s := range senders {
		all.Go(func() {
			pause(ctx, r.Ramp*time.Duration(i)/time.Duration(len(senders)))
			if err := r.caller(ctx, s); err != nil {
				stop(fmt.Errorf("no new connections after an error: %w", err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// caller sends one request after another until the load ends.
func (r *run) caller(ctx context.Context, s Sender) error {
	defer func() {
		if s != nil {
			_ = s.Close()
		}
	}()
	for ctx.Err() == nil {
		at := time.Since(r.begin)
		if at >= r.Duration || !r.another(at) {
			return nil
		}
		err := r.one(s, at, 0)
		think, more := thinks(s, err)
		if s, err = r.again(s, err); err != nil {
			s = nil
			return err
		}
		if more {
			pause(ctx, think)
		}
	}
	return nil
}

// another reports whether one more request may begin at the given time.
func (r *run) another(at time.Duration) bool {
	if r.Requests == 0 || at < r.Lead {
		return true
	}
	n := int(r.sent.Add(1))
	if n > r.Requests {
		r.enough.CompareAndSwap(0, int64(at))
		return false
	}
	return true
}

// ended returns the number of windows of a width until the load ended.
func (r *run) ended(width time.Duration) int {
	at := r.Duration
	if enough := r.enough.Load(); enough > 0 {
		at = time.Duration(enough)
	}
	return int(at / width)
}

// regroup merges narrow windows into Windows equal ones, after a lead of narrow windows that become
// lead/finer ones. It drops those from end on.
func regroup(narrow []Window, lead, finer, end int) []Window {
	end = min(end, len(narrow))
	var list []Window
	for i := 0; i < lead; i += finer {
		list = append(list, Merge(narrow[i:min(i+finer, lead)]))
	}
	n := end - lead
	for i := range min(Windows, max(n, 0)) {
		list = append(list, Merge(narrow[lead+i*n/min(Windows, n):lead+(i+1)*n/min(Windows, n)]))
	}
	return list
}

// thinks reports whether a session continues after a request that ended with err, and after what time.
func thinks(s Sender, err error) (think time.Duration, more bool) {
	if c, ok := s.(Converser); ok && err == nil {
		return c.More()
	}
	return 0, false
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
