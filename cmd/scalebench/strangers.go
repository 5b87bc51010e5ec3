package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/workspace"
	"github.com/scalebench/scalebench/metrics/store"
)

// askOwner is what to ask the owner of a path for that somebody else may not read; ""
// where err is about something else, or about a path of this user's own.
func askOwner(err error) string {
	var at *fs.PathError
	if !errors.As(err, &at) || !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	for path := at.Path; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil && path != filepath.Dir(path) {
			continue // within a folder that may not be entered
		}
		if err != nil {
			return ""
		}
		of, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(of.Uid) == os.Geteuid() {
			return ""
		}
		return fmt.Sprintf("%s belongs to %s. Ask for read access to it (chmod -R g+rX, in a group of yours), or for share = \"group\" in [study] from now on.", path, userName(of.Uid))
	}
}

// userName is a user's name, or the number where there is no name for it.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return "user " + number
}

// missing is a store's error about a study that it does not have: where run folders of
// that name are not this user's to read, that is why.
func (s *session) missing(ctx context.Context, study string, err error) error {
	if !errors.Is(err, store.ErrNotFound) {
		return workspace.StoreError(err)
	}
	folder, wrong := s.folderNamed(ctx, study)
	if wrong != nil {
		return workspace.StoreError(err)
	}
	attempts, wrong := launcher.Attempts(folder)
	for _, a := range attempts {
		wrong = cmp.Or(a.Unreadable, wrong)
	}
	if ask := askOwner(wrong); ask != "" {
		return &usageError{err: fmt.Errorf("study %q: its runs in %s cannot be read: permission denied", study, folder.Path()), hint: ask}
	}
	return workspace.StoreError(err)
}
