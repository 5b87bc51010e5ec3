// Package file writes files whole: under a temporary name in the same folder,
// synced, then renamed, so that a reader sees all of the new content or all of
// the old, whenever the writer dies.
//
// Permissions are what the caller asks for less what the umask takes away, and
// less what the file that is replaced did not have: nothing here ever calls
// chmod, which knows no umask. A file that its owner has made private stays so.
package file

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Permissions of what is written, before the umask.
const (
	Open    fs.FileMode = 0o644 // results and records
	Private fs.FileMode = 0o600 // what may hold a secret
	Script  fs.FileMode = 0o700 // a script, which may export one
	Folder  fs.FileMode = 0o755
)

// Write writes a file whole.
func Write(path string, content []byte, perm fs.FileMode) error {
	return Replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Replace writes a file whole; write is given where its content goes.
func Replace(path string, perm fs.FileMode, write func(io.Writer) error) (err error) {
	f, err := create(path, perm)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	w := bufio.NewWriter(f)
	if err := errors.Join(write(w), w.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Create makes a file that must not be there yet and writes it; one that
// cannot be finished is removed. The error is fs.ErrExist when it is there.
func Create(path string, content []byte, perm fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// TemporaryFolder makes a folder of a new name that begins with prefix.
func TemporaryFolder(parent, prefix string, perm fs.FileMode) (string, error) {
	for {
		path := filepath.Join(parent, prefix+rand.Text())
		if err := os.Mkdir(path, perm); !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}

// create opens a new file beside path.
func create(path string, perm fs.FileMode) (*os.File, error) {
	if before, err := os.Stat(path); err == nil && before.Mode().IsRegular() {
		perm &= before.Mode().Perm() | Script // what the owner may do stays
	}
	for {
		name := filepath.Join(filepath.Dir(path), ".new-"+rand.Text())
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
