package metrics

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ticks are a second of a process's start time, USER_HZ: 100 on whatever Go runs on.
const ticks = 100

// ProcessStart is when the operating system started this process, exact to
// 10 ms, by this host's monotonic clock: initialisation counts from there,
// whatever language a program is written in. It is now where the system does not
// say.
func ProcessStart() time.Time {
	text, err := os.ReadFile("/proc/self/stat")
	var up unix.Timespec
	now, known := together(func() bool { return unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) == nil })
	if err != nil || !known {
		return now
	}
	// Field 22, in ticks since the host has booted; the second one, the program's
	// name in brackets, may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return now
	}
	started, err := strconv.ParseInt(string(fields[19]), 10, 64)
	if age := time.Duration(up.Nano()) - time.Duration(started)*(time.Second/ticks); err == nil && started > 0 && age > 0 {
		return now.Add(-age)
	}
	return now
}

// together reads another clock and this one. On a busy host a process may wait
// between the two, and what it waited would be taken for a difference of the clocks:
// it reads until that took less than a millisecond, ten times at most.
func together(read func() bool) (now time.Time, known bool) {
	for range 10 {
		now = time.Now()
		if known = read(); time.Since(now) < time.Millisecond {
			break
		}
	}
	return now, known
}
