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

// Permissions of written files, before the umask.
const (
	ModeOpen    fs.FileMode = 0o644 // results and records
	ModePrivate fs.FileMode = 0o600 // files that may contain a secret
	ModeScript  fs.FileMode = 0o700 // scripts, which may export a secret
	ModeFolder  fs.FileMode = 0o755
)

// Write replaces a file's content atomically.
func Write(path string, content []byte, perm fs.FileMode) error {
	return Replace(path, perm, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// Replace replaces a file's content atomically by what the function write writes.
func Replace(path string, perm fs.FileMode, write func(io.Writer) error) (err error) {
	f, err := create(path, perm)
	var own *fs.PathError // names the temporary file, which means nothing to users
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
		err = w.Flush() // also returns earlier write errors
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
		// Only this process uses the temporary name. So the rename succeeded, its reply was lost,
		// and another writer has replaced the file since.
		err = nil
	}
	return err
}

// create creates a temporary file in the folder of path.
func create(path string, perm fs.FileMode) (*os.File, error) {
	if before, err := os.Stat(path); err == nil && before.Mode().IsRegular() {
		perm &= before.Mode().Perm() | ModeScript // the owner keeps all permissions
	}
	return createTemp(filepath.Dir(path), ".new-", perm)
}
