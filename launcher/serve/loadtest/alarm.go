package loadtest

import (
	"context"
	"runtime"
	"syscall"
	"time"
)

const (
	// timerLead is the time before a request at which until stops using the runtime's timers, which can fire 1 ms late
	// on an idle machine: epoll_wait has millisecond resolution.
	timerLead = 5 * time.Millisecond
	// spinLead is the time before a request at which until stops sleeping in the kernel and spins: a sleep ends up to 50
	// µs late (PR_SET_TIMERSLACK), plus the time to wake up.
	spinLead = 100 * time.Microsecond
)

// until waits until at, counted from the start of the run, or until the context ends.
func (r *run) until(ctx context.Context, at time.Duration) {
	if wait := at - time.Since(r.begin) - timerLead; wait > 0 {
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
	runtime.Gosched() // let goroutines run that are ready
	for {
		wait := at - time.Since(r.begin)
		if wait <= 0 {
			return
		}
		if wait > spinLead {
			ts := syscall.NsecToTimespec(int64(wait - spinLead))
			_ = syscall.Nanosleep(&ts, nil) // a signal may cut it short: the loop then sleeps again
		}
	}
}

// sleepInKernel raises GOMAXPROCS to at least 2: until blocks an OS thread, which keeps its processor for a
// while, and answers that arrive meanwhile need another one.
func sleepInKernel() {
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
}
