package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fileSystem is the type of the file system that a folder lies on, or will lie
// on, in the kernel's word ("ext4", "nfs4", "lustre").
func fileSystem(dir string) (string, error) {
	for ; ; dir = filepath.Dir(dir) { // up to a folder that is there
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

// mountType finds the mount of a path in /proc/self/mountinfo (proc(5)): the
// deepest one, and of several at one place the last.
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
