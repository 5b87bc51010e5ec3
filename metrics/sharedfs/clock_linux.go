package sharedfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// running is the time since some moment, by a clock that nobody sets and that
// goes on while the host sleeps, which Go's own monotonic clock does not.
func running() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(began)
	}
	return time.Duration(t.Nano())
}

// touchNow gives a file the file server's time, whoever wrote it; a link is not
// followed.
func touchNow(path string) error {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
