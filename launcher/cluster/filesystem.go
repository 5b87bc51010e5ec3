package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fileSystem returns the type of the file system of a folder that may not exist yet, in the kernel's terms
// ("ext4", "nfs4", "lustre").
func fileSystem(dir string) (string, error) {
	for ; ; dir = filepath.Dir(dir) { // find the nearest existing folder
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			dir = real
			break
		}
		if dir == filepath.Dir(dir) {
			return "", err
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return mountType(string(mounts), dir)
}

// mountType finds the mount of a path in /proc/self/mountinfo (proc(5)): the deepest mount point,
// and the last of several mounts there.
func mountType(mounts, path string) (string, error) {
	best, kind := -1, ""
	for _, line := range strings.Split(mounts, "\n") {
		// ID PARENT MAJOR:MINOR ROOT MOUNT OPTIONS [TAG…] - TYPE SOURCE SUPER
		head, tail, ok := strings.Cut(line, " - ")
		place, what := strings.Fields(head), strings.Fields(tail)
		if !ok || len(place) < 6 || len(what) < 1 {
			continue
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(place[4])
		below := at == "/" || path == at || strings.HasPrefix(path, at+"/")
		if below && len(at) >= best {
			best, kind = len(at), what[0]
		}
	}
	if kind == "" {
		return "", fmt.Errorf("no mount of %s is listed: %w", path, errors.ErrUnsupported)
	}
	return kind, nil
}
