package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// staleAfter is the age from which an unfinished folder or file is stale: a command
// that still writes it has been at it for seconds.
const staleAfter = time.Hour

// RemoveStale removes unfinished folders and files that killed commands left in the
// study's folder. The caller holds the study's lease, and commands fill folders only
// with that lease, so a folder of another command belongs to one that lost it. The
// lease's file gives the time, by the file server's clock.
func (s Study) RemoveStale() error {
	lease, err := os.Stat(s.Lease())
	if err != nil {
		return err
	}
	entries, err := sharedfs.ReadDir(string(s))
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), unfinished) {
			continue
		}
		path := filepath.Join(string(s), e.Name())
		if latest, err := changed(path); err != nil || lease.ModTime().Sub(latest) < staleAfter {
			continue // the file was renamed or removed meanwhile
		}
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

// changed returns when a file, or a folder or anything directly in it, last changed.
func changed(path string) (time.Time, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}, err
	}
	latest := info.ModTime()
	if !info.IsDir() {
		return latest, nil
	}
	entries, err := sharedfs.ReadDir(path)
	if err != nil {
		return time.Time{}, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return time.Time{}, err
		}
		if info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return latest, nil
}
