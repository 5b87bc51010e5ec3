package loadtest

import (
	"context"
	"runtime"
	"syscall"
	"time"
)

const (
	// roughly is how long before a request the loop leaves the runtime's timers, which
	// are late by up to 1 ms on an idle machine: epoll_wait counts in those.
	roughly = 5 * time.Millisecond
	// spin is how long before it the loop leaves the kernel's, which are late by 50 µs
	// (PR_SET_TIMERSLACK) and the time to wake up.
	spin = 100 * time.Microsecond
)

// until waits until a time of the run, or the end of the context.
func (r *run) until(ctx context.Context, at time.Duration) {
	if wait := at - time.Since(r.begin) - roughly; wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
	if r.Sleep != nil {
		r.Sleep(at - time.Since(r.begin))
		return
	}
	runtime.Gosched() // what has been started goes first
	for {
		wait := at - time.Since(r.begin)
		if wait <= 0 {
			return
		}
		if wait > spin {
			ts := syscall.NsecToTimespec(int64(wait - spin))
			_ = syscall.Nanosleep(&ts, nil) // or a signal came: what is left is waited for again
		}
	}
}

// sleepInKernel makes room for until: a thread that sleeps in the kernel keeps its
// processor for a while, and answers that come meanwhile need another one.
func sleepInKernel() {
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
}
