package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// takeLease takes the lock of a database on a network file system, and waits for it at most as
// long as wait. SQLite's own locks do not reach other hosts there. The lock prevents two login
// nodes from writing at the same time; readers need no lock.
func takeLease(path string, wait time.Duration) (*sharedfs.Lease, error) {
	l, err := sharedfs.TakeLease(context.Background(), path, wait)
	return l, locked(err)
}

// locked converts an error to ErrLocked if its cause is another process's lock on the database.
func locked(err error) error {
	if _, ok := errors.AsType[*sharedfs.LeaseHeldError](err); ok {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return err
}
