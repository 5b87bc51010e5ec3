package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// maxOwn is the maximum size of one of the study's files in bytes.
const maxOwn = 1 << 30

// copyOwn copies the user's own files into a folder of the run, under the names
// that the plan gives them, and returns their SHA-256 by name.
func copyOwn(files map[string]string, folder string) (map[string]string, error) {
	if len(files) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(folder, sharedfs.ModeFolder); err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for name, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("the study's own file: %w", err)
		}
		text, err := sharedfs.ReadFile(path, maxOwn)
		if err != nil {
			return nil, fmt.Errorf("the study's own file: %w", err)
		}
		if err := rundir.WriteFile(filepath.Join(folder, name), text, info.Mode()&sharedfs.ModeOpen|sharedfs.ModePrivate); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		sums[name] = hex.EncodeToString(sum[:])
	}
	return sums, nil
}

// install writes a framework's programs into a folder of the run and returns their SHA-256 by name. Keeping the
// programs with the run documents what it executed, and upgrading scalebench does not change waiting jobs.
// Without programs no folder is created.
func install(programs fs.FS, folder string) (map[string]string, error) {
	if programs == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(programs, ".")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, sharedfs.ModeFolder); err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, e := range entries {
		text, err := fs.ReadFile(programs, e.Name())
		if err != nil {
			return nil, err
		}
		if err := rundir.WriteFile(filepath.Join(folder, e.Name()), text, sharedfs.ModeOpen); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		sums[e.Name()] = hex.EncodeToString(sum[:])
	}
	return sums, nil
}
