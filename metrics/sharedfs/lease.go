package sharedfs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How a lease is taken. Requests may be done late, twice, or without an answer.
// So the file is made once and never removed: giving the lease up makes the file
// old. A taker needs the right to succeed the holder, a file (PATH.over-HOLDER)
// that only one taker can make, and then renames a file that only it uses
// (PATH.NONCE) over the holder's. If it pauses on the way, its successor removes
// that file first, and the rename, however late, does nothing. A holder touches
// the file through a descriptor, so it never touches another holder's file.
//
// A lease keeps two commands from working at once; it cannot stop a holder that
// slept for longer than LeaseTime and continues. A holder calls Check before each
// step that must not be done twice, and such a step is also guarded by itself (a
// transaction, a claim).

const (
	LeaseTime = 60 * time.Second // a lease not renewed for so long has lapsed
	renew     = LeaseTime / 4
	retry     = 50 * time.Millisecond // between two tries for one that is held
)

// LeasePatience is how long to wait for a lease so that one of a process that is gone
// has lapsed by then, whatever its date says.
const LeasePatience = LeaseTime + 30*time.Second

var began = time.Now()

// A Lease is held until Release, or until it lapses because this process or
// host stands still.
type Lease struct {
	path    string
	owner   Holder
	file    *os.File     // the lease's own, whatever path names by now
	renewed atomic.Int64 // by running
	stop    chan struct{}
	done    sync.WaitGroup
}

// LeaseHeldError says that somebody else holds the lease, or has taken it over.
type LeaseHeldError struct {
	Path   string
	Holder Holder
	Lost   bool // it was ours and lapsed
}

func (e *LeaseHeldError) Error() string {
	if e.Lost {
		return fmt.Sprintf("%s took over our lock %s, which was not renewed for %s; run the command again", e.Holder, e.Path, LeaseTime)
	}
	return fmt.Sprintf("%s holds the lock %s; wait for it to end, or end it; the lock of a process that is gone lapses after %s", e.Holder, e.Path, LeaseTime)
}

// TakeLease takes the lease at path, for which it waits up to wait; the error is
// then a *HeldError.
func TakeLease(ctx context.Context, path string, wait time.Duration) (*Lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	l := &Lease{path: path, owner: Holder{Host: host, PID: os.Getpid(), Space: space(), Since: time.Now().Round(time.Second)}, stop: make(chan struct{})}
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
			return nil, &LeaseHeldError{Path: path, Holder: *holder}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(min(retry, left)):
		}
	}
}

// try takes the lease, or returns who holds it. Every try has a nonce of its
// own: what is left of one that was given up cannot be mistaken for the next.
func (l *Lease) try() (holder *Holder, err error) {
	l.owner.Nonce = rand.Text()
	defer func() {
		if holder != nil || err != nil {
			// The link or the rename may have been done all the same: its reply was lost,
			// and this host saw the file that was there before.
			given.Store(l.owner.Nonce, true)
		}
	}()
	own, started := l.own(l.owner.Nonce), running()
	defer Remove(own)
	if err := os.WriteFile(own, l.owner.text(), 0o600); err != nil {
		var path *fs.PathError // of a name that nobody knows
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("cannot write in %s: %w", filepath.Dir(l.path), err)
	}
	now, err := lookAtLease(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = Put(own, l.path)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("the lock %s cannot be taken: %w", l.path, err)
		}
	case err != nil:
		return nil, err
	default:
		if gone, err := l.gone(now, own); err != nil || !gone {
			return &now.Holder, err
		}
		if holder, err := l.succeed(now, own, started); holder != nil || err != nil {
			return holder, err
		}
	}
	// Whatever was said of the link or the rename: the file's word counts.
	return l.hold(started)
}

// own is the name that a holder's file has before it becomes the lease.
func (l *Lease) own(nonce string) string { return l.path + "." + nonce }

// over is the name of the right to succeed whoever has that id.
func (l *Lease) over(id string) string { return l.path + ".over-" + id }

// succeed puts our file in the place of one whose holder is gone. It returns the holder if
// that is another one.
func (l *Lease) succeed(gone leaseState, own string, started time.Duration) (*Holder, error) {
	chain, holder, err := l.claim(gone, own)
	if holder != nil || err != nil {
		return holder, err
	}
	last := l.over(chain[len(chain)-1].id)
	// Only we can replace any of these now. The holder may have been another one for a long
	// time, or one of these that runs again.
	now, err := lookAtLease(l.path)
	if err == nil {
		known := slices.ContainsFunc(chain, func(s leaseState) bool { return s.id == now.id })
		lapsed, wrong := l.gone(now, own)
		if err = wrong; err == nil && (!known || !lapsed || !soon(started)) {
			return &now.Holder, Remove(last)
		}
	}
	if err == nil {
		err = Rename(own, l.path)
	}
	if errors.Is(err, fs.ErrNotExist) { // we were succeeded, or the file was deleted by hand
		return &Holder{Host: "another command"}, Remove(last)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the lock %s cannot be taken over: %w; remove it", l.path, err), Remove(last))
	}
	for _, s := range chain {
		if err := Remove(l.over(s.id)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// claim takes the right to succeed a holder that is gone, and every taker that died while it
// took over. chain lists all that may have the lease. It returns the holder, or a taker that
// still runs, if there is one.
func (l *Lease) claim(gone leaseState, own string) (chain []leaseState, holder *Holder, err error) {
	chain = []leaseState{gone}
	for {
		over := l.over(chain[len(chain)-1].id)
		err := Put(own, over)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, nil, fmt.Errorf("the lock %s cannot be taken over: %w", l.path, err)
		}
		taker, err := lookAtLease(over)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(chain) > maxChain {
			return nil, &Holder{Host: "another command"}, nil // it has just been succeeded: try again
		}
		if err != nil {
			return nil, nil, err
		}
		if taker.same(l.owner) {
			return chain, nil, nil
		}
		if gone, err := l.gone(taker, own); err != nil || !gone {
			return nil, &taker.Holder, err
		}
		if taker.Nonce != "" {
			if err := Remove(l.own(taker.Nonce)); err != nil {
				return nil, nil, err
			}
		}
		chain = append(chain, taker)
	}
}

// maxChain is how many takers in a row may have died while they took over.
const maxChain = 100

// soon reports whether what began then is still so recent that none of it can
// have lapsed.
func soon(started time.Duration) bool { return running()-started < LeaseTime/2 }

// hold opens the lease's file if it is ours, or returns whose it is. Read and
// touched through one descriptor it is ours for good.
func (l *Lease) hold(started time.Duration) (*Holder, error) {
	now, f, err := openLease(l.path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return &Holder{Host: "another command"}, nil
	}
	if err != nil || now.same(l.owner) && !soon(started) {
		return &now.Holder, errors.Join(err, closed(f))
	}
	if !now.same(l.owner) {
		return &now.Holder, closed(f)
	}
	l.file = f
	l.renewed.Store(int64(started))
	return nil, nil
}

// gone reports whether a holder is no longer there. reference is a file that was
// written to the same folder no later than the holder's was looked at.
func (l *Lease) gone(s leaseState, reference string) (bool, error) {
	if s.mode.IsDir() {
		return false, fmt.Errorf("the lock %s is a folder, %w; remove it", s.path, ErrNotRegular)
	}
	if _, mine := given.Load(s.Nonce); mine && s.Nonce != "" { // whatever its date says
		return true, nil
	}
	if s.Space != "" && s.Space == l.owner.Space && s.PID > 0 && errors.Is(syscall.Kill(s.PID, 0), syscall.ESRCH) {
		return true, nil
	}
	now, err := os.Lstat(reference)
	if errors.Is(err, fs.ErrNotExist) { // we were succeeded while we stood still
		return false, nil
	}
	if err != nil {
		return false, err
	}
	age := now.ModTime().Sub(s.written)
	if age < -renew {
		if err := checkPresent(s.path); err != nil {
			return false, err
		}
	}
	return age > LeaseTime, nil
}

// checkPresent brings a date that is yet to come to the present, from where the file
// ages like any other: the server's clock was set back, or somebody set the
// date. A holder that lives would have done it itself within renew.
func checkPresent(path string) error {
	if err := touchNow(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is dated in the future by the file server's clock, and its date cannot be set: %w; remove it if its command no longer runs", path, err)
	}
	return nil
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

// touch writes the file's text over itself, which gives it the server's time. It
// is told from when on the lease is renewed by when it began to.
func (l *Lease) touch() error {
	now := running()
	if _, err := l.file.WriteAt(l.owner.text(), 0); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil { // not at the next close, which never comes
		return err
	}
	l.renewed.Store(int64(now))
	return nil
}

// Check says whether the lease is still ours; the error is a *HeldError when
// another has it.
func (l *Lease) Check() error {
	if err := l.ours(); err != nil || soon(time.Duration(l.renewed.Load())) {
		return err
	}
	// We stood still, and somebody may be about to take over. Whoever has not yet
	// got the right to will see that the file is touched.
	if err := l.touch(); err != nil {
		return err
	}
	taker, err := lookAtLease(l.over(l.owner.Nonce))
	if err == nil {
		return &LeaseHeldError{Path: l.path, Holder: taker.Holder, Lost: true}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.ours()
}

// ours is a *HeldError unless the file is ours.
func (l *Lease) ours() error {
	now, err := lookAtLease(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &LeaseHeldError{Path: l.path, Holder: Holder{Host: "somebody"}, Lost: true}
	case err != nil:
		return err
	case !now.same(l.owner):
		return &LeaseHeldError{Path: l.path, Holder: now.Holder, Lost: true}
	}
	return nil
}

// given are the nonces of the leases that this process gave up, and of its tries for
// one.
var given sync.Map

// Release gives the lease up, if it is still ours: the file is older than any
// lease that is held.
func (l *Lease) Release() error {
	close(l.stop)
	l.done.Wait()
	given.Store(l.owner.Nonce, true)
	err := syscall.Futimes(int(l.file.Fd()), []syscall.Timeval{{}, {}})
	if errors.Is(err, syscall.ESTALE) || errors.Is(err, fs.ErrNotExist) { // another has taken it over
		err = nil
	}
	return errors.Join(err, l.file.Close())
}
