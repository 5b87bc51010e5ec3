package sharedfs

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Beat keeps a file's modification time recent, as a sign of life for processes on other hosts. It
// rewrites the existing file every LeaseTime/4 until stop is called. Other hosts call Age to see
// how long ago the last beat was. Errors are not reported: a beat that fails is missing, as if this
// host had died.
func Beat(path string) (stop func()) {
	ended := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(renew)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				_ = beat(path)
			}
		}
	})
	return func() { close(ended); done.Wait() }
}

// beat overwrites a file with its own content, so that its modification time comes from the file
// server. utimes would set this host's time.
func beat(path string) error {
	f, err := openFile(path, os.O_RDWR|syscall.O_NOFOLLOW)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, textLimit))
	if len(text) == 0 {
		text = []byte("\n")
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	return errors.Join(err, f.Close())
}

// Age returns how long ago a file was last written, by the file server's clock. It compares the
// file's time with the time of a new file in the folder temporary, which must be on the same file
// system. Network file systems may cache times for up to a minute, so the age may be too large by
// that much. It is never negative: a modification time in the future is first set to the present. A
// folder that is not writable is an error, and so is a path that is not a regular file.
func Age(path, temporary string) (age time.Duration, err error) {
	err = RetryStale(func() error { age, err = ageOnce(path, temporary); return err })
	return age, err
}

func ageOnce(path, temporary string) (time.Duration, error) {
	// NFS clients refresh a file's attributes when they open it.
	f, err := openFile(path, os.O_RDONLY|syscall.O_NOFOLLOW)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	reference, err := createTemp(temporary, ".new-", 0o600)
	if err != nil {
		return 0, err
	}
	defer Remove(reference.Name())
	_, err = reference.Write([]byte("\n")) // an empty file may get its time from this host's clock
	if err := errors.Join(err, reference.Close()); err != nil {
		return 0, err
	}
	now, err := os.Lstat(reference.Name())
	if err != nil {
		return 0, err
	}
	then, err := f.Stat()
	if err != nil {
		return 0, err
	}
	age := now.ModTime().Sub(then.ModTime())
	if age < -renew {
		err = checkPresent(path)
	}
	return max(age, 0), err
}
