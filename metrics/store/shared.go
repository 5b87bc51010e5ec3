package store

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Shared reports whether other hosts can write to the file system of a folder. The folder need
// not exist yet. A database there uses a rollback journal instead of a write-ahead log.
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
