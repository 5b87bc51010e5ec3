// Package sharedfs reads, writes and locks files on file systems that several
// hosts share and other users may write to.
//
// Names (nfs.go): over NFS a client that hears no reply asks again, and an mkdir
// or a link that had succeeded then fails with "exists", a rename or a remove with
// "no such file". So nothing here believes such an error: it looks at the file
// itself. That needs temporary names that only the caller uses, so that its file
// can be recognised by inode. NFS repeats only exclusive creation (O_EXCL) safely,
// by a verifier that it keeps with the file (RFC 1813, 3.3.8); Create still makes
// a file that must be recognised as ours whole, and links it to its name.
//
// Reading (read.go): in a run folder, one of our names may belong to a FIFO, whose
// opening waits for a writer, to a link to /dev/zero, which never ends, or to a
// file that would fill the memory. A plain os.Open or os.ReadFile hangs or fails
// on these; here each is an error with the path and the kind of file.
//
// Writing (write.go): a file is written under a temporary name in the same folder,
// synced, then renamed: a reader sees all of the new content or all of the old.
// Permissions are those requested, less the umask and less what the replaced file
// did not have: nothing here calls chmod, which ignores the umask. So a file that
// its owner has made private stays private.
//
// A lease (lease.go) is a lock between hosts: a file that its holder touches as
// long as it lives. Byte-range locks do not reach other hosts on every network
// file system. Ages are determined by the file server's clock alone, from the
// times of two files, so that hosts whose clocks differ agree.
package sharedfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// How often, and for how long in all, a look is repeated that may show an old
// state: 620 ms.
const (
	looks     = 6
	firstWait = 20 * time.Millisecond
)

// again calls f until it is content, at growing intervals.
func again(f func() bool) {
	for look, wait := 0, firstWait; !f() && look+1 < looks; look, wait = look+1, 2*wait {
		time.Sleep(wait)
	}
}

// RetryStale calls f, and a few times more as long as it says ESTALE: the file was
// replaced on another host after its name was looked up here. What f did
// before must not matter.
func RetryStale(f func() error) (err error) {
	again(func() bool { err = f(); return !errors.Is(err, syscall.ESTALE) })
	return err
}

// RetryMissing calls f, and a few times more as long as it says that a file is missing
// which is known to be there: this host may remember that it was not.
func RetryMissing(f func() error) (err error) {
	again(func() bool { err = f(); return !errors.Is(err, fs.ErrNotExist) })
	return err
}

// ReadDir is os.ReadDir of a folder that changes meanwhile: each name comes
// once, and none of those that clients give to files which were removed while
// they were open (".nfs…").
func ReadDir(path string) (entries []fs.DirEntry, err error) {
	err = RetryStale(func() error { entries, err = os.ReadDir(path); return err })
	entries = slices.CompactFunc(entries, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() })
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".nfs") }), err
}

// same reports whether the file called path is the one that info is of. One that
// is missing is looked for again: this host may remember that it was.
func same(info fs.FileInfo, path string) (ok bool) {
	again(func() bool {
		there, err := os.Lstat(path)
		ok = err == nil && os.SameFile(info, there)
		return ok || err == nil
	})
	return ok
}

// linkTo gives the file own a second name, path. The error is fs.ErrExist when
// another file has it, errors.ErrUnsupported where there are no hard links.
func linkTo(own, path string) error {
	mine, err := os.Lstat(own)
	if err != nil {
		return err
	}
	switch err := os.Link(own, path); {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EPERM), errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("%w: %w", err, errors.ErrUnsupported)
	case !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) || !same(mine, path):
		return err
	}
	return nil
}

// Rename is os.Rename.
func Rename(from, to string) error {
	mine, err := os.Lstat(from)
	if err != nil {
		return err
	}
	err = os.Rename(from, to)
	if err == nil || errors.Is(err, syscall.EXDEV) || !same(mine, to) {
		return err
	}
	return nil
}

// Place gives a folder that is not empty its final name. The error is
// fs.ErrExist when that is taken.
func Place(folder, path string) error {
	// rename(2) replaces an empty folder, and never one that is not.
	err := Rename(folder, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, there := os.Lstat(path); there == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	return err
}

// Remove removes a file that is ours, or is gone already.
func Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MkdirTemp makes a folder of a name that nobody else has, prefix and a random
// text.
func MkdirTemp(dir, prefix string, mode fs.FileMode) (string, error) {
	path := filepath.Join(dir, prefix+rand.Text())
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, nil
}

// createTemp opens a new file of such a name for writing.
func createTemp(dir, prefix string, mode fs.FileMode) (*os.File, error) {
	// Not O_EXCL: the name is ours, and made by a request whose reply was lost
	// it would be said to exist.
	return os.OpenFile(filepath.Join(dir, prefix+rand.Text()), os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, mode)
}

// Create makes a file with that content, which nobody sees in part. The error is
// fs.ErrExist when there is one.
func Create(path string, content []byte, mode fs.FileMode) error {
	f, err := createTemp(filepath.Dir(path), ".new-", mode)
	if err != nil {
		return err
	}
	defer Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return Put(f.Name(), path)
}

// Put makes the file own appear at path too, if there is none. The error is
// fs.ErrExist when there is. Without hard links path is a copy, which can be seen
// half written, and a reply that was lost is taken for another's file.
func Put(own, path string) error {
	if err := linkTo(own, path); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return copyTo(own, path)
}

// copyTo is Put without hard links. What could not be written whole is removed.
func copyTo(own, path string) error {
	content, err := os.ReadFile(own)
	if err != nil {
		return err
	}
	info, err := os.Lstat(own)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, Remove(path))
	}
	return nil
}
