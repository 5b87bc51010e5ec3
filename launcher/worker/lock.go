package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A StagedFolder is an item's locked folder. The lock is the kernel's (flock): it ends with the process and is
// valid on one node, like the folder.
type StagedFolder struct {
	path string
	file *os.File
}

// Release gives the lock up.
func (f *StagedFolder) Release() { f.file.Close() }

// errReplaced reports that the folder was removed while waiting for its lock.
var errReplaced = errors.New("removed by another process")

// open locks an existing folder.
func open(path string, how int) (*StagedFolder, error) {
	file, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return locked(path, file, how)
}

func locked(path string, file *os.File, how int) (*StagedFolder, error) {
	err := syscall.Flock(int(file.Fd()), how)
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(file.Name()); err == nil {
			var mine os.FileInfo
			if mine, err = file.Stat(); err == nil && !os.SameFile(there, mine) {
				err = errReplaced
			}
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &StagedFolder{path, file}, nil
}

// lock creates a folder and locks it, waiting for another holder.
func lock(ctx context.Context, path string, how int) (*StagedFolder, error) {
	for {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		file, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			var f *StagedFolder
			if f, err = locked(path, file, how|syscall.LOCK_NB); err == nil {
				return f, nil
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errReplaced): // removed this moment
		case errors.Is(err, syscall.EWOULDBLOCK):
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("another process is staging the same (%s): %w", path, context.Cause(ctx))
			case <-time.After(100 * time.Millisecond):
			}
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
			return nil, fmt.Errorf("%s: the file system does not support locks (%w); name a folder on the node's own disk in the site file (stage.dir)", path, err)
		default:
			return nil, err
		}
	}
}
