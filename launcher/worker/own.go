package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/metrics/regular"
)

// ownLimit is the largest file that is taken for a program, in bytes: what is
// longer is data.
const ownLimit = 4 << 20

// ownFiles are the SHA-256 of the user's own files that a program works with,
// by name: the copies in the run folder, and, of a command, the files beside
// the study that its arguments name. It looks when the run starts, since a
// command's files are used in place and may have changed since it was made.
func ownFiles(f framework.Framework, s framework.Start) map[string]string {
	paths := map[string]string{} // name to path
	if entries, err := os.ReadDir(s.Run.Own()); err == nil {
		for _, e := range entries {
			paths[e.Name()] = filepath.Join(s.Run.Own(), e.Name())
		}
	}
	if f.UserProgram {
		for _, argument := range f.Command(s) {
			path := argument
			if !filepath.IsAbs(path) {
				path = filepath.Join(f.Directory(s), path)
			}
			if name, err := filepath.Rel(s.Point.Command.Folder, path); err == nil && filepath.IsLocal(name) {
				paths[name] = path
			}
		}
	}
	sums := map[string]string{}
	for name, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > ownLimit {
			continue
		}
		file, err := regular.Open(path)
		if err != nil {
			continue // the program will say so, if it needs it
		}
		sum := sha256.New()
		_, err = io.Copy(sum, file)
		file.Close()
		if err == nil {
			sums[name] = hex.EncodeToString(sum.Sum(nil))
		}
	}
	if len(sums) == 0 {
		return nil
	}
	return sums
}
