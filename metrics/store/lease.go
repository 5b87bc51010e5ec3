package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// takeLease waits up to wait for the lock of a database on a network file system, where
// SQLite's locks do not reach other hosts. It keeps two login nodes from writing at once;
// readers need no lock.
func takeLease(path string, wait time.Duration) (*sharedfs.Lease, error) {
	l, err := sharedfs.TakeLease(context.Background(), path, wait)
	return l, locked(err)
}

// locked turns the error of a lease held elsewhere into ErrLocked.
func locked(err error) error {
	var held *sharedfs.LeaseHeldError
	if errors.As(err, &held) {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return err
}
