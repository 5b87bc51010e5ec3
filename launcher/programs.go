package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/rundir"
)

// install writes a framework's programs into a folder of the run and returns
// their SHA-256 by name: what a run executed stands beside its results, and a
// newer scalebench does not change a job that still waits. Without programs
// there is no folder.
func install(programs fs.FS, folder string) (map[string]string, error) {
	if programs == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(programs, ".")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, e := range entries {
		text, err := fs.ReadFile(programs, e.Name())
		if err != nil {
			return nil, err
		}
		if err := rundir.WriteFile(filepath.Join(folder, e.Name()), text, 0o644); err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		sums[e.Name()] = hex.EncodeToString(sum[:])
	}
	return sums, nil
}
