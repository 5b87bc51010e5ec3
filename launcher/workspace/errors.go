package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics/number"
)

// An Error is a request that cannot be carried out as given. Hint says what to do; it may be empty.
type Error struct {
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error without a hint.
func Errorf(format string, a ...any) error { return &Error{Err: fmt.Errorf(format, a...)} }

// A PartialError reports that a part of the request was not carried out. A warning has already
// named that part.
type PartialError struct {
	Err  error
	Hint string
	Runs int // runs that cannot be read; 0 if the part is something else
}

func (e *PartialError) Error() string { return e.Err.Error() }
func (e *PartialError) Unwrap() error { return e.Err }

// Unread returns an error that states that n runs cannot be read; nil if n is 0.
func Unread(n int) error {
	if n == 0 {
		return nil
	}
	err := errors.New("1 run cannot be read, see the warning")
	if n > 1 {
		err = fmt.Errorf("cannot read %s, see the warnings", number.Count(n, "run"))
	}
	return &PartialError{Runs: n, Err: err, Hint: MendRuns}
}

// MendRuns is the hint for runs that cannot be read.
const MendRuns = "The other runs are not affected. Fix the cause, such as a file's owner, mode or content, or move the run's folder away: while it is there, the run is not repeated."

// AskOwner returns advice for the user if err is caused by a path of another user that this user
// may not read: what to ask its owner for. For any other error it returns "".
func AskOwner(err error) string {
	var at *fs.PathError
	if !errors.As(err, &at) || !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	for path := at.Path; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil && path != filepath.Dir(path) {
			continue // the path is in a folder that this user may not enter
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

// Foreign returns the name of the user who owns a study's folder, if only that user can start and end runs
// there; "" if this user can.
func Foreign(folder rundir.Study) string {
	info, err := os.Stat(folder.Path())
	if errors.Is(err, fs.ErrPermission) {
		info, err = os.Stat(folder.Runs())
	}
	if err != nil {
		return ""
	}
	of, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(of.Uid) == os.Geteuid() || of.Uid == 0 && unix.Access(folder.Path(), unix.W_OK) == nil {
		return ""
	}
	return userName(of.Uid)
}

// mustBeOurs returns an error if this user may not do something, such as "cancel", with the runs of a study.
func mustBeOurs(folder rundir.Study, do string) error {
	owner := Foreign(folder)
	if owner == "" {
		return nil
	}
	name := filepath.Base(folder.Path())
	hint := fmt.Sprintf("Ask %s to %s them.", owner, do)
	if unix.Access(folder.Path(), unix.R_OK|unix.X_OK) == nil {
		hint += fmt.Sprintf(" You can read the results: `scalebench collect %s`.", name)
	}
	return &Error{Err: fmt.Errorf("study %s belongs to %s, so you cannot %s its runs", name, owner, do), Hint: hint}
}

// userName returns a user's name, or the number if it has no name.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return "user " + number
}
