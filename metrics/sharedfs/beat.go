package sharedfs

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Beat rewrites a file that is there every quarter of Time, until the function
// that it returns is called: a sign of life for those on other hosts who cannot
// see this process. They tell by Age when the last one came. Nothing is said of
// a beat that fails: it is missing, as it would be from a host that is gone.
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

// beat writes a file's text over itself, which gives it the file server's time;
// utimes would set that of this host.
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

// Age is how long ago a file was last written, by the clock of the file system
// that it is on: it is held against a file written to the folder temporary,
// which must be on the same one. Network file systems may show times that are
// up to a minute old, so that it may be too long by so much. It is never
// negative: a date that is yet to come is set to the present. A folder that
// cannot be written to is an error, and so is a path that is not a file.
func Age(path, temporary string) (age time.Duration, err error) {
	err = RetryStale(func() error { age, err = ageOnce(path, temporary); return err })
	return age, err
}

func ageOnce(path, temporary string) (time.Duration, error) {
	// A network file system looks at the file's time again when it is opened.
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
	_, err = reference.Write([]byte("\n")) // an empty file may get its time from this host
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
