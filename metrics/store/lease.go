package store

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	leaseTime  = 60 * time.Second // a lock not renewed for so long belongs to a process that is gone
	leaseRenew = leaseTime / 4
)

// A lease is a lock between hosts: a file beside the database that its holder
// touches as long as it lives. Byte-range locks, which SQLite relies on, do
// not reach other hosts on every network file system; a file made with O_EXCL
// does, and one that is no longer touched can be taken over. Ages are told by
// the file server's clock alone, from the times of two files.
//
// It keeps two login nodes from writing at once. Readers need none.
type lease struct {
	path  string
	owner owner
	stop  chan struct{}
	done  sync.WaitGroup
}

// owner is what the lock file says.
type owner struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Nonce string `json:"nonce"`
}

// takeLease waits up to wait for the lock at path.
func takeLease(path string, wait time.Duration) (*lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	l := &lease{path: path, owner: owner{host, os.Getpid(), rand.Text()}, stop: make(chan struct{})}
	for deadline := time.Now().Add(wait); ; {
		holder, err := l.try()
		if err != nil {
			return nil, err
		}
		if holder == nil {
			break
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%w: %s, process %d, is writing to it (%s); wait for it to end, or end it; the lock of a process that is gone lapses after %s",
				ErrLocked, holder.Host, holder.PID, path, leaseTime)
		}
		time.Sleep(min(200*time.Millisecond, wait))
	}
	l.done.Go(l.renew)
	return l, nil
}

// try takes the lock, or returns who holds it.
func (l *lease) try() (*owner, error) {
	text, err := json.Marshal(l.owner)
	if err != nil {
		return nil, err
	}
	// Written under another name and linked: the lock is never seen half
	// written, and link fails if it is there.
	own := l.path + "." + l.owner.Nonce
	if err := os.WriteFile(own, append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	defer os.Remove(own)
	if err := os.Link(own, l.path); err == nil {
		return nil, nil
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}

	holder, err := readOwner(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return &owner{Host: "another host"}, nil // gone this moment: try again
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
	if now, err := readOwner(aside); err != nil || now != holder {
		_ = os.Link(aside, l.path) // fails if a third one was faster; check() will tell its owner
		return &now, nil
	}
	if err := os.Link(own, l.path); err != nil {
		return &holder, nil
	}
	return nil, nil
}

// gone reports whether the holder can no longer be writing. reference is a
// file just written to the same folder.
func (l *lease) gone(holder owner, reference string) (bool, error) {
	if holder.Host == l.owner.Host && holder.PID > 0 && errors.Is(syscall.Kill(holder.PID, 0), syscall.ESRCH) {
		return true, nil
	}
	lock, err := os.Stat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := os.Stat(reference)
	if err != nil {
		return false, err
	}
	return now.ModTime().Sub(lock.ModTime()) > leaseTime, nil
}

// readOwner reads a lock file. One that says nothing sensible has no owner
// that could be asked, and lapses like any other.
func readOwner(path string) (owner, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return owner{}, err
	}
	var o owner
	if err := json.Unmarshal(text, &o); err != nil {
		return owner{Host: "an unknown host (" + filepath.Base(path) + " is unreadable)"}, nil
	}
	return o, nil
}

// renew rewrites the lock file in place, which gives it the server's time.
func (l *lease) renew() {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			_ = l.touch() // check() says so before the next write
		}
	}
}

func (l *lease) touch() error {
	if err := l.check(); err != nil {
		return err
	}
	text, err := json.Marshal(l.owner)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

// check says whether the lock is still ours.
func (l *lease) check() error {
	now, err := readOwner(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: our lock %s was removed; run the command again", ErrLocked, l.path)
	case err != nil:
		return err
	case now != l.owner:
		return fmt.Errorf("%w: %s, process %d, took over our lock %s, which was not renewed for %s; run the command again",
			ErrLocked, now.Host, now.PID, l.path, leaseTime)
	}
	return nil
}

// release gives the lock up, if it is still ours.
func (l *lease) release() error {
	close(l.stop)
	l.done.Wait()
	if l.check() != nil {
		return nil
	}
	return os.Remove(l.path)
}
