// Package lease is a lock between hosts that share a file system: a file that
// its holder touches as long as it lives. Byte-range locks do not reach other
// hosts on every network file system; a file made by link(2) or O_EXCL does,
// and one that is no longer touched can be taken over. Ages are told by the file server's
// clock alone, from the times of two files, so that hosts whose clocks differ
// agree.
//
// A lease keeps two commands from working at once; it cannot stop a holder that
// slept for longer than Time and goes on. Whoever holds one calls Check before
// each step that must not be done twice, and such a step has a guard of its own
// besides (a transaction, a claim).
package lease

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	Time  = 60 * time.Second // a lease not renewed for so long has lapsed
	renew = Time / 4
	retry = 50 * time.Millisecond // between two tries for one that is held
)

// A Lease is held until Release, or until it lapses because this process or
// host stands still.
type Lease struct {
	path  string
	owner Holder
	stop  chan struct{}
	done  sync.WaitGroup
}

// Holder is what the file says of who holds the lease.
type Holder struct {
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Space string    `json:"space"` // in which PID counts: boot and pid namespace
	Since time.Time `json:"since"` // by the holder's clock, for people
	Nonce string    `json:"nonce"`
}

func (h Holder) String() string {
	if h.PID == 0 {
		return h.Host
	}
	return fmt.Sprintf("process %d on %s", h.PID, h.Host)
}

func (h Holder) same(o Holder) bool { return h.Nonce == o.Nonce && h.PID == o.PID && h.Host == o.Host }

// HeldError says that somebody else holds the lease, or has taken it over.
type HeldError struct {
	Path   string
	Holder Holder
	Lost   bool // it was ours and lapsed
}

func (e *HeldError) Error() string {
	if e.Lost {
		return fmt.Sprintf("%s took over our lock %s, which was not renewed for %s; run the command again", e.Holder, e.Path, Time)
	}
	return fmt.Sprintf("%s holds the lock %s; wait for it to end, or end it; the lock of a process that is gone lapses after %s", e.Holder, e.Path, Time)
}

// Take takes the lease at path, for which it waits up to wait; the error is
// then a *HeldError.
func Take(ctx context.Context, path string, wait time.Duration) (*Lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	l := &Lease{path: path, owner: Holder{host, os.Getpid(), space(), time.Now().Round(time.Second), rand.Text()}, stop: make(chan struct{})}
	for deadline := time.Now().Add(wait); ; {
		holder, err := l.try()
		if err != nil {
			return nil, err
		}
		if holder == nil {
			l.done.Go(l.renew)
			return l, nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, &HeldError{Path: path, Holder: *holder}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(min(retry, left)):
		}
	}
}

// space names the set of processes in which this one's pid counts; "" when it
// cannot be told. Two containers of one host name may share neither.
func space() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + pids
}

// try takes the lease, or returns who holds it.
func (l *Lease) try() (*Holder, error) {
	text, err := json.Marshal(l.owner)
	if err != nil {
		return nil, err
	}
	// Written under another name and linked: the file is never seen half
	// written, and link fails if it is there.
	own := l.path + "." + l.owner.Nonce
	if err := os.WriteFile(own, append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(own)
	if err := place(own, l.path, text); err == nil {
		return nil, nil
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}

	holder, err := read(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Holder{Host: "another command"}, nil // gone this moment: try again
	}
	if err != nil {
		return nil, err
	}
	gone, err := l.gone(holder, own)
	if err != nil || !gone {
		return &holder, err
	}
	// Two hosts may come to this at once. Whoever renames takes the file
	// away; if it was not the stale one any more, it is put back.
	aside := own + ".stale"
	if err := os.Rename(l.path, aside); err != nil {
		return &holder, nil
	}
	defer os.Remove(aside)
	if now, err := read(aside); err != nil || !now.same(holder) {
		if text, err := os.ReadFile(aside); err == nil {
			_ = place(aside, l.path, bytes.TrimSpace(text)) // fails if a third one was faster; Check tells its owner
		}
		return &now, nil
	}
	if err := place(own, l.path, text); err != nil {
		return &holder, nil
	}
	return nil, nil
}

// place makes own appear at path, if nothing is there.
func place(own, path string, text []byte) error {
	err := os.Link(own, path)
	for _, cannot := range []error{syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS} {
		if errors.Is(err, cannot) {
			return create(path, text)
		}
	}
	return err
}

// create is place for file systems without hard links. There the file can be
// seen half written, as that of an unknown holder who has just touched it.
func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// gone reports whether the holder is no longer there. reference is a file just
// written to the same folder.
func (l *Lease) gone(holder Holder, reference string) (bool, error) {
	if holder.Space != "" && holder.Space == l.owner.Space && holder.PID > 0 && errors.Is(syscall.Kill(holder.PID, 0), syscall.ESRCH) {
		return true, nil
	}
	age, err := between(l.path, reference)
	if errors.Is(err, fs.ErrNotExist) { // released this moment
		return false, nil
	}
	return age > Time, err
}

// read reads a lease's file. One that says nothing sensible has no holder that
// could be asked, and lapses like any other.
func read(path string) (Holder, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Holder{}, err
	}
	var h Holder
	if err := json.Unmarshal(text, &h); err != nil {
		return Holder{Host: "an unknown host (" + filepath.Base(path) + " is unreadable)"}, nil
	}
	return h, nil
}

// renew touches the file until Release.
func (l *Lease) renew() {
	tick := time.NewTicker(renew)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			_ = l.touch() // Check says so before the next step
		}
	}
}

// touch rewrites the file in place, which gives it the server's time.
func (l *Lease) touch() error {
	if err := l.Check(); err != nil {
		return err
	}
	text, err := json.Marshal(l.owner)
	if err != nil {
		return err
	}
	return rewrite(l.path, append(text, '\n'))
}

// Check says whether the lease is still ours; the error is a *HeldError when
// another has it.
func (l *Lease) Check() error {
	now, err := read(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &HeldError{Path: l.path, Holder: Holder{Host: "somebody"}, Lost: true}
	case err != nil:
		return err
	case !now.same(l.owner):
		return &HeldError{Path: l.path, Holder: now, Lost: true}
	}
	return nil
}

// Release gives the lease up, if it is still ours.
func (l *Lease) Release() error {
	close(l.stop)
	l.done.Wait()
	if l.Check() != nil {
		return nil
	}
	return os.Remove(l.path)
}
