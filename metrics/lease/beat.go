package lease

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/scalebench/scalebench/metrics/regular"
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
	text, err := regular.ReadFile(path, 64<<10)
	if err != nil {
		return err
	}
	return rewrite(path, text)
}

// rewrite writes over the start of a file that is there, in place.
func rewrite(path string, text []byte) error {
	f, err := regular.OpenToWrite(path)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// Age is how long ago a file was last written, by the clock of the file system
// that it is on: it is held against a file written to the folder temporary,
// which must be on the same one. Network file systems may show times that are
// up to a minute old, so that it may be too long by so much. A folder that
// cannot be written to is an error.
func Age(path, temporary string) (time.Duration, error) {
	// A network file system looks at the file's time again when it is opened.
	f, err := regular.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	reference, err := os.CreateTemp(temporary, ".new-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(reference.Name())
	_, err = reference.Write([]byte("\n")) // an empty file may get its time from this host
	if err := errors.Join(err, reference.Close()); err != nil {
		return 0, err
	}
	return between(path, reference.Name())
}

// between is how much later reference was written than path.
func between(path, reference string) (time.Duration, error) {
	then, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	now, err := os.Stat(reference)
	if err != nil {
		return 0, err
	}
	return now.ModTime().Sub(then.ModTime()), nil
}
