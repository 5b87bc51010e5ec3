package metrics

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ticks is the number of clock ticks per second (USER_HZ) in /proc. It is 100 on all architectures
// that Go supports.
const ticks = 100

// ProcessStart returns when the operating system started this process, to within 10 ms, on this
// host's monotonic clock. Initialisation is timed from this moment, so that it includes the start
// of the language's runtime. If the system does not report the time, ProcessStart returns the
// present.
func ProcessStart() time.Time {
	text, err := os.ReadFile("/proc/self/stat")
	var up unix.Timespec
	now, known := together(func() bool { return unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) == nil })
	if err != nil || !known {
		return now
	}
	// The start time is field 22, in ticks since boot. Field 2, the program's name in brackets, may
	// contain spaces and brackets.
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

// together reads another clock and Go's clock as one pair. On a busy host, the process may be
// suspended between the two readings, and the pause would look like a difference between the
// clocks. So it repeats the readings, up to ten times, until they are less than a millisecond
// apart.
func together(read func() bool) (now time.Time, known bool) {
	for range 10 {
		now = time.Now()
		if known = read(); time.Since(now) < time.Millisecond {
			break
		}
	}
	return now, known
}
