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

// How a lease is taken. NFS requests may be executed late, twice, or without a reply. So the
// lease's file is created once and never removed; releasing the lease makes the file old. To take
// over from a dead holder, a process first needs the right to succeed it: a file (PATH.over-HOLDER)
// that only one process can create. It then renames a file that only it uses (PATH.NONCE) over the
// holder's. If it pauses in between, its own successor removes PATH.NONCE first, so that a late
// rename has no effect. A holder touches the file through an open descriptor, so it never touches
// another holder's file.
//
// A lease prevents two commands from working at the same time. It cannot stop a holder that was
// suspended for longer than LeaseTime and then continues. So a holder calls Check before each step
// that must not be done twice, and such a step also has its own protection (a transaction, a
// claim).

const (
	LeaseTime = 60 * time.Second // a lease lapses if it is not renewed for this long
	renew     = LeaseTime / 4
	retry     = 50 * time.Millisecond // interval between attempts to take a lease that another process has
)

// LeasePatience is the longest wait for a lease: long enough for the lease of a dead process to
// lapse, regardless of its file's date.
const LeasePatience = LeaseTime + 30*time.Second

var began = time.Now()

// A Lease lasts until Release, or until it lapses because this process or host was suspended.
type Lease struct {
	path    string
	owner   Holder
	file    *os.File     // this lease's file, even if path now names another one
	renewed atomic.Int64 // on the clock of running
	stop    chan struct{}
	done    sync.WaitGroup
}

// LeaseHeldError reports that another process has the lease, or has taken it over.
type LeaseHeldError struct {
	Path   string
	Holder Holder
	Lost   bool // this process held the lease, and it expired
}

func (e *LeaseHeldError) Error() string {
	if e.Lost {
		return fmt.Sprintf("%s took over our lock %s, which was not renewed for %s; run the command again", e.Holder, e.Path, LeaseTime)
	}
	return fmt.Sprintf("%s holds the lock %s; wait for it to end, or end it; the lock of a process that is gone lapses after %s", e.Holder, e.Path, LeaseTime)
}

// TakeLease takes the lease at path. It waits for it up to wait, and then returns a
// *LeaseHeldError.
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

// try takes the lease, or returns its holder. Every attempt has a new nonce, so that files left by
// an earlier attempt are not mistaken for answers to the present one.
func (l *Lease) try() (holder *Holder, err error) {
	l.owner.Nonce = rand.Text()
	defer func() {
		if holder != nil || err != nil {
			// The link or rename may have succeeded although it seemed to fail: its reply was lost,
			// and this host saw the previous file.
			given.Store(l.owner.Nonce, true)
		}
	}()
	own, started := l.own(l.owner.Nonce), running()
	defer Remove(own)
	if err := os.WriteFile(own, l.owner.text(), 0o600); err != nil {
		var path *fs.PathError // names a temporary file, which means nothing to users
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
	// The content of the file decides, not the result of the link or rename.
	return l.hold(started)
}

// own returns the name of a holder's file before it becomes the lease.
func (l *Lease) own(nonce string) string { return l.path + "." + nonce }

// over returns the name of the file that grants the right to succeed the holder with this id.
func (l *Lease) over(id string) string { return l.path + ".over-" + id }

// succeed replaces the file of a dead holder by ours. If another process has the lease by then, it
// returns that holder.
func (l *Lease) succeed(gone leaseState, own string, started time.Duration) (*Holder, error) {
	chain, holder, err := l.claim(gone, own)
	if holder != nil || err != nil {
		return holder, err
	}
	last := l.over(chain[len(chain)-1].id)
	// Only this process can now replace any file in chain. But another process may have had the
	// lease for a long time, or a process in chain may be running again.
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
	if errors.Is(err, fs.ErrNotExist) { // another process succeeded us, or the user deleted the file
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

// claim takes the right to succeed a dead holder, and every process that died while it took over.
// chain lists all that may have the lease. If the holder or one of these still runs, claim returns
// it.
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
			return nil, &Holder{Host: "another command"}, nil // another process has just succeeded it: try again
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

// maxChain is the maximum number of processes in a row that died while they took over.
const maxChain = 100

// soon reports whether less than LeaseTime has passed since started, so that nothing done since
// then can have lapsed.
func soon(started time.Duration) bool { return running()-started < LeaseTime/2 }

// hold opens the lease's file if it is ours, or else returns its holder. Since the file is read and
// later touched through one descriptor, it stays the same file.
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

// gone reports whether a holder has died or released the lease. reference is a file in the same
// folder that was written before s was read.
func (l *Lease) gone(s leaseState, reference string) (bool, error) {
	if s.mode.IsDir() {
		return false, fmt.Errorf("the lock %s is a folder, %w; remove it", s.path, ErrNotRegular)
	}
	if _, mine := given.Load(s.Nonce); mine && s.Nonce != "" { // regardless of its date
		return true, nil
	}
	if s.Space != "" && s.Space == l.owner.Space && s.PID > 0 && errors.Is(syscall.Kill(s.PID, 0), syscall.ESRCH) {
		return true, nil
	}
	now, err := os.Lstat(reference)
	if errors.Is(err, fs.ErrNotExist) { // another process succeeded us while we were suspended
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

// checkPresent sets a modification time in the future to the present, so that the file ages
// normally. Such a time results if the server's clock was set back, or if someone set the file's
// date. A live holder would have corrected it within the renewal interval.
func checkPresent(path string) error {
	if err := touchNow(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is dated in the future by the file server's clock, and its date cannot be set: %w; remove it if its command no longer runs", path, err)
	}
	return nil
}

// renew touches the file regularly until Release.
func (l *Lease) renew() {
	tick := time.NewTicker(renew)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			_ = l.touch() // Check reports the error before the next step
		}
	}
}

// touch overwrites the file with its own content, which sets the server's time. The lease counts as
// renewed from when touch started.
func (l *Lease) touch() error {
	now := running()
	if _, err := l.file.WriteAt(l.owner.text(), 0); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil { // otherwise the error appears only at close, which never happens
		return err
	}
	l.renewed.Store(int64(now))
	return nil
}

// Check returns nil if the lease is still ours, and a *LeaseHeldError if another process has it.
func (l *Lease) Check() error {
	if err := l.ours(); err != nil || soon(time.Duration(l.renewed.Load())) {
		return err
	}
	// This process was suspended, and another one may be about to take over. If that does not have
	// the right to succeed yet, it will see the touch.
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

// ours returns a *LeaseHeldError unless the file is ours.
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

// given has the nonces of this process's released leases and failed attempts.
var given sync.Map

// Release releases the lease if it is still ours: it makes the file older than the file of any lease in
// use.
func (l *Lease) Release() error {
	close(l.stop)
	l.done.Wait()
	given.Store(l.owner.Nonce, true)
	err := syscall.Futimes(int(l.file.Fd()), []syscall.Timeval{{}, {}})
	if errors.Is(err, syscall.ESTALE) || errors.Is(err, fs.ErrNotExist) { // another process has taken the lease over
		err = nil
	}
	return errors.Join(err, l.file.Close())
}
