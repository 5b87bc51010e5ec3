package nccl

import (
	"syscall"
	"time"
)

// A small collective takes only some microseconds, and a step waits for its last one. So waiting
// starts with queries without pauses, for askFor.
const askFor = 2 * time.Millisecond

// Pause sleeps between two queries whether work on a device has ended, if the caller has already waited that
// long. It lengthens the wait, which a benchmark or step then measures, by at most 1 % plus Linux's sleep
// overhead of about 50 µs. The queries detect errors, deadlines and ranks that gave up, and continue a thousand
// times per second however long the work takes.
//
// It sleeps in the kernel. Go's sleep ends about a millisecond late on an idle machine, which is a whole step
// of a small model; a blocking wait for an event would end in time, but would not notice anything else.
func Pause(waited time.Duration) {
	if waited < askFor {
		return
	}
	nap := syscall.NsecToTimespec(int64(min(waited/100, time.Millisecond)))
	_ = syscall.Nanosleep(&nap, nil) // a signal may end it early
}
