package store

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Shared reports whether a folder, or the place where it is to be, lies on a
// file system that other hosts can write to as well. A database there has a
// rollback journal instead of a write-ahead log.
func Shared(dir string) (bool, error) {
	for {
		shared, err := onNetwork(dir)
		if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
			dir = parent
			continue
		}
		return shared, err
	}
}
