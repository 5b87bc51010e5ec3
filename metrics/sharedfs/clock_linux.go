package sharedfs

import (
	"time"

	"golang.org/x/sys/unix"
)

// running returns the time since a fixed moment. Its clock cannot be set, and includes the time in
// which the host is suspended, unlike Go's monotonic clock.
func running() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return time.Since(began)
	}
	return time.Duration(t.Nano())
}

// touchNow sets a file's modification time to the file server's present time. The file may belong
// to another user; a symbolic link is not followed.
func touchNow(path string) error {
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{now, now}, unix.AT_SYMLINK_NOFOLLOW)
}
