package sharedfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Permissions of what is written, before the umask.
const (
	ModeOpen    fs.FileMode = 0o644 // results and records
	ModePrivate fs.FileMode = 0o600 // what may hold a secret
	ModeScript  fs.FileMode = 0o700 // a script, which may export one
	ModeFolder  fs.FileMode = 0o755
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
	var own *fs.PathError // of the file under its first name, which nobody else knows
	if errors.As(err, &own) {
		err = fmt.Errorf("its folder %s: %w", filepath.Dir(path), own.Err)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = Remove(f.Name())
			if errors.As(err, &own) && own.Path == f.Name() {
				err = own.Err
			}
			err = fmt.Errorf("cannot write %s: %w", path, err)
		}
	}()
	w := bufio.NewWriter(f)
	if err = write(w); err == nil {
		err = w.Flush() // says what went wrong before, if it did
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	err = Rename(f.Name(), path)
	if _, left := os.Lstat(f.Name()); errors.Is(err, fs.ErrNotExist) && errors.Is(left, fs.ErrNotExist) {
		// Nobody else knows the name: it was renamed, the answer was lost, and
		// another writer's file has taken its place since.
		err = nil
	}
	return err
}

// create opens a new file beside path.
func create(path string, perm fs.FileMode) (*os.File, error) {
	if before, err := os.Stat(path); err == nil && before.Mode().IsRegular() {
		perm &= before.Mode().Perm() | ModeScript // what the owner may do stays
	}
	return createTemp(filepath.Dir(path), ".new-", perm)
}
