package worker

import (
	"maps"
	"os"
	"path/filepath"

	"github.com/scalebench/scalebench/launcher/framework"
)

// ownFiles returns the SHA-256 of the user's files that a program uses, by name: copies in the run folder, and
// files that a command's arguments name. It is called when the run starts, since a command's files are used in
// place and may have changed since the run was created.
func ownFiles(f framework.Framework, s framework.Rank) map[string]string {
	paths := map[string]string{} // name to path
	if entries, err := os.ReadDir(s.Run.OwnFiles()); err == nil {
		for _, e := range entries {
			paths[e.Name()] = filepath.Join(s.Run.OwnFiles(), e.Name())
		}
	}
	maps.Copy(paths, framework.NamedFiles(f, s))
	var sums map[string]string
	for name, path := range paths {
		if sum := framework.Digest(path); sum != "" {
			if sums == nil {
				sums = map[string]string{}
			}
			sums[name] = sum
		}
	}
	return sums
}
