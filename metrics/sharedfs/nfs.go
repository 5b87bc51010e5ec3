// Package sharedfs reads, writes and locks files on file systems that several
// hosts share and other users may write to.
//
// Names (nfs.go): an NFS client that gets no reply sends the request again. If the first one had
// succeeded, mkdir and link then fail with "exists", and rename and remove with "no such file". So
// this package does not rely on such errors: it examines the file. For this, temporary names must
// be unique to the caller, so that it can recognise its file by inode. NFS only repeats exclusive
// creation (O_EXCL) safely, by a verifier that it stores with the file (RFC 1813, 3.3.8). But a
// file made by Create must have its complete content when it appears, so Create writes a temporary
// file and links it to its name.
//
// Reading (read.go): in a run folder, a name that we expect to be a file may be a FIFO, whose
// opening waits for a writer. It may also be a link to /dev/zero, which never ends, or a file that
// would fill the memory. os.Open or os.ReadFile would hang or fail; here each is an error with the
// path and the kind of file.
//
// Writing (write.go): a file is written under a temporary name in the same folder, synced, then
// renamed, so a reader sees either the complete new content or the old. Permissions are those
// requested, restricted by the umask and the replaced file's permissions. A file that its owner has
// made private therefore stays private. Nothing here calls chmod, which ignores the umask.
//
// A lease (lease.go) is a lock between hosts: a file that its holder touches as long as it lives.
// Byte-range locks do not work between hosts on every network file system. Ages use only the file
// server's clock, as the difference between the times of two files, so that hosts with different
// clocks agree.
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

// How often a check is repeated whose result may come from a stale cache: for 620 ms in total.
const (
	looks     = 6
	firstWait = 20 * time.Millisecond
)

// again calls f at growing intervals until it returns true.
func again(f func() bool) {
	for look, wait := 0, firstWait; !f() && look+1 < looks; look, wait = look+1, 2*wait {
		time.Sleep(wait)
	}
}

// RetryStale calls f, and repeats it a few times while it returns ESTALE: another host replaced the
// file after this one looked up its name. It must be safe to repeat f.
func RetryStale(f func() error) (err error) {
	again(func() bool { err = f(); return !errors.Is(err, syscall.ESTALE) })
	return err
}

// RetryMissing calls f, and repeats it a few times while it returns that a file does not exist. Use
// it for files that are known to exist: this host may have cached that they did not.
func RetryMissing(f func() error) (err error) {
	again(func() bool { err = f(); return !errors.Is(err, fs.ErrNotExist) })
	return err
}

// ReadDir is os.ReadDir for a folder that may change meanwhile. It returns each name once, and
// omits the names that NFS clients give to files that are removed while open (".nfs…").
func ReadDir(path string) (entries []fs.DirEntry, err error) {
	err = RetryStale(func() error { entries, err = os.ReadDir(path); return err })
	entries = slices.CompactFunc(entries, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() })
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), ".nfs") }), err
}

// same reports whether path is the file described by info. If path does not exist, it checks again,
// because this host may have cached that.
func same(info fs.FileInfo, path string) (ok bool) {
	again(func() bool {
		there, err := os.Lstat(path)
		ok = err == nil && os.SameFile(info, there)
		return ok || err == nil
	})
	return ok
}

// linkTo gives the file own a second name, path. The error is fs.ErrExist if another file has that
// name, and errors.ErrUnsupported if the file system has no hard links.
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

// Rename is os.Rename, but succeeds if only the reply was lost.
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

// Place gives a folder, which must not be empty, its final name. The error is fs.ErrExist if the
// name is taken.
func Place(folder, path string) error {
	// rename(2) replaces an empty folder, but never a non-empty one.
	err := Rename(folder, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, there := os.Lstat(path); there == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	return err
}

// Remove removes a file that only this process uses. It succeeds if the file does not exist.
func Remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MkdirTemp creates a folder with a unique name: prefix and a random text.
func MkdirTemp(dir, prefix string, mode fs.FileMode) (string, error) {
	path := filepath.Join(dir, prefix+rand.Text())
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, nil
}

// createTemp creates a file with a unique name, as MkdirTemp does, and opens it for writing.
func createTemp(dir, prefix string, mode fs.FileMode) (*os.File, error) {
	// No O_EXCL: the name is unique, and a retried create would find the file that its own lost
	// request made.
	return os.OpenFile(filepath.Join(dir, prefix+rand.Text()), os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, mode)
}

// Create creates a file that has its complete content as soon as it appears. The error is
// fs.ErrExist if the file exists.
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

// Put makes the file own appear at path too, unless path exists; the error is then fs.ErrExist.
// Without hard links, path is a copy. Readers may then see it incomplete, and after a lost reply
// Put takes its own copy for another's file.
func Put(own, path string) error {
	if err := linkTo(own, path); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return copyTo(own, path)
}

// copyTo is Put without hard links. It removes an incomplete copy.
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
