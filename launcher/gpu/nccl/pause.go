package nccl

import (
	"syscall"
	"time"
)

// A collective of few bytes is over after some microseconds, and a step waits for
// its last: waiting begins with asking again and again.
const askFor = 2 * time.Millisecond

// Pause is between asking twice whether work on a device has ended, for who has
// waited for so long. What it makes longer is what was waited for, which a benchmark
// or a step then measures: by a hundredth at most, and what Linux adds to a sleep,
// some 50 µs. Asking itself is what notices errors, deadlines and ranks that gave up,
// and goes on a thousand times a second however long it takes.
//
// It sleeps in the kernel. Go's own sleep ends about a millisecond late where nothing
// else runs, which is a whole step of a small model; an event's blocking wait
// would wake up in time, but never for anything other than its event.
func Pause(waited time.Duration) {
	if waited < askFor {
		return
	}
	nap := syscall.NsecToTimespec(int64(min(waited/100, time.Millisecond)))
	_ = syscall.Nanosleep(&nap, nil) // a signal may end it early
}
