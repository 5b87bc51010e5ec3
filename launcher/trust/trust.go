// Package trust reports whether only this user or root can have put a file at a path. scalebench
// runs, hands to a scheduler, or obeys only files at such paths. Files that it merely reads as data
// (collect, status) may belong to anyone. It also starts Python interpreters to ask them something
// (AskPython), isolated from what others can write.
//
// The rules for the path itself and for each symbolic link on the way to it:
//
//   - This user or root owns it.
//   - Other users cannot write to it. Its group may, if this user is the only member (a user-private
//     group, which distributions create together with umask 002). In a folder with the sticky bit
//     others may add files but cannot touch ours; each file there is judged separately.
//
// The folders above it must not be writable by others unless the sticky bit is set, because others
// could replace the file. A group that this user belongs to may write there, as in a shared project
// folder: a file that another member puts there belongs to that member and is refused.
package trust

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// An Error is a path that another user may have written.
type Error struct {
	Path   string
	Reason string // "belongs to user mallory", …
	Remedy string // what to do
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s; refusing to use it. %s", e.Path, e.Reason, e.Remedy)
}

// Check judges paths, and the folders on the way to each. A path that is not there yet is judged by
// the folders that are. The error is an *Error, or says that a path cannot be examined.
func Check(paths ...string) error {
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if err := walk(absolute, common); err != nil {
			return err
		}
	}
	return nil
}

// checkProgram is Check for programs that are started without the user asking for it. In addition, the folders on
// the way must belong to this user or root, since their owners could replace the contents.
func checkProgram(paths ...string) error {
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		if err := walk(absolute, rules{link, ourAbove, own}); err != nil {
			return err
		}
	}
	return nil
}

// System reports whether a path exists and only root can write it or replace anything on the way to
// it. It returns false when root runs scalebench, because then the answer says nothing.
func System(path string) bool {
	if _, err := os.Stat(path); err != nil || os.Geteuid() == 0 {
		return false
	}
	link := func(path string, info fs.FileInfo) error {
		if uid(info) != 0 {
			return foreign(path, uid(info))
		}
		return nil
	}
	alone := func(path string, info fs.FileInfo) error {
		if info.Mode()&0o002 != 0 || info.Mode()&0o020 != 0 && gid(info) != 0 {
			return &Error{path, "can be written by others", ""}
		}
		return link(path, info)
	}
	return walk(path, rules{link, alone, alone}) == nil
}

// CheckFilesOnly checks the paths but not the folders above them. It is for processes inside a job, where a
// container may show other folders. A path that does not exist passes.
func CheckFilesOnly(paths ...string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = own(path, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Named judges files that the user has named, or that such a file names: a
// study, a site file, a template, a program. Whom they belong to the user knows;
// but everybody may not write to them.
func Named(paths ...string) error {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.Mode()&0o002 != 0 {
			return &Error{path, "can be written by every user", "Check what is in it, then `chmod o-w` it"}
		}
	}
	return nil // a missing file is reported when it is used
}

// Tree is Check for a folder and everything in it.
func Tree(folder string) error {
	if err := Check(folder); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Type()&fs.ModeSymlink != 0: // leads elsewhere
			return Check(path)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return own(path, info)
	})
}

// maxFile is the maximum size in bytes of a file that ReadFile accepts, many times the size of any study.
const maxFile = 64 << 20

// ReadFile reads a file that scalebench acts on. It checks the file that it has opened, so replacing it during
// the read has no effect. It does not check the folders above; Check does.
func ReadFile(path string) ([]byte, error) {
	return read(path, maxFile, func(fs.FileInfo) error { return nil })
}

func read(path string, most int64, judge func(fs.FileInfo) error) (text []byte, err error) {
	err = sharedfs.RetryStale(func() error { text, err = readOnce(path, most, judge); return err })
	return text, err
}

func readOnce(path string, most int64, judge func(fs.FileInfo) error) ([]byte, error) {
	f, err := sharedfs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(own(path, info), judge(info)); err != nil {
		return nil, err
	}
	return sharedfs.Read(f, most)
}

// ReadSecret is ReadFile for a file of up to most bytes that must not be readable by every user. Group access
// is the owner's choice.
func ReadSecret(path string, most int64) ([]byte, error) {
	return read(path, most, func(info fs.FileInfo) error {
		if info.Mode()&0o004 != 0 {
			return &Error{path, "can be read by every user", "Start the run again: a new attempt gets a new one"}
		}
		return nil
	})
}

// maxLinks is the maximum number of symbolic links followed, as in the kernel.
const maxLinks = 40

// rules judges each part of the way to a path, and the file itself.
type rules struct {
	link, above, own func(path string, info fs.FileInfo) error
}

var common = rules{link, above, own}

// follow returns the folder in which a link's target starts, and the names to go through from there.
func follow(link string, rest []string) (string, []string, error) {
	target, err := os.Readlink(link)
	rest = append(strings.Split(target, "/"), rest...) // not Clean: "link/.." means the parent of the link's target
	if filepath.IsAbs(target) {
		return "/", rest, err
	}
	return filepath.Dir(link), rest, err
}

// walk follows an absolute path from the root on.
func walk(path string, judge rules) error {
	rest := strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	at, links := "/", 0
	for {
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if err := judge.link(at, info); err != nil {
				return err
			}
			if links++; links > maxLinks {
				return &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
			}
			if at, rest, err = follow(at, rest); err != nil {
				return err
			}
			continue
		}
		rest = slices.DeleteFunc(rest, func(name string) bool { return name == "" || name == "." })
		if len(rest) > 0 && rest[0] == ".." {
			at, rest = filepath.Dir(at), rest[1:]
			continue
		}
		if len(rest) == 0 {
			return judge.own(at, info)
		}
		if err := judge.above(at, info); err != nil {
			return err
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
	}
}

// own judges a file that will be run or trusted.
func own(path string, info fs.FileInfo) error {
	if owner := uid(info); !ours(owner) {
		return foreign(path, owner)
	}
	mode := info.Mode()
	sticky := mode.IsDir() && mode&fs.ModeSticky != 0
	switch {
	case sticky, mode&fs.ModeSymlink != 0:
		return nil
	case mode&0o002 != 0:
		return &Error{path, "can be written by every user", "Check what is in it, then `chmod go-w` it"}
	case mode&0o020 != 0 && !private(gid(info)):
		return &Error{path, fmt.Sprintf("can be written by the group %s", groupName(gid(info))), "Check what is in it, then `chmod g-w` it"}
	}
	return nil
}

// above judges a folder on the way.
func above(path string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSticky != 0:
		return nil
	case mode&0o002 != 0:
		return &Error{path, "can be written by every user", "`chmod o-w` or `chmod +t` it, or choose another folder with --runs"}
	case mode&0o020 != 0 && !private(gid(info)) && !member(gid(info)):
		return &Error{path, fmt.Sprintf("can be written by the group %s, which you do not belong to", groupName(gid(info))), "`chmod g-w` or `chmod +t` it, or choose another folder with --runs"}
	}
	return nil
}

// ourAbove is above for a folder that must also belong to this user or root.
func ourAbove(path string, info fs.FileInfo) error {
	return errors.Join(link(path, info), above(path, info))
}

// link judges a symbolic link by its owner.
func link(path string, info fs.FileInfo) error {
	if owner := uid(info); !ours(owner) {
		return foreign(path, owner)
	}
	return nil
}

func foreign(path string, owner int) error {
	name := strconv.Itoa(owner)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return &Error{path, "belongs to user " + name, "Copy the study file, read it, and run the copy with --runs naming a folder of your own"}
}

func ours(owner int) bool { return owner == 0 || owner == os.Geteuid() }

// member reports whether this process is in a group; root's group is root.
func member(group int) bool {
	groups, err := os.Getgroups()
	return group == 0 || group == os.Getegid() || err == nil && slices.Contains(groups, group)
}

// private reports whether a group contains this user only: the primary group, with the user's name or number
// and no other members. If group names are not stored on this host, which a static binary cannot look up
// elsewhere, the number decides. For root's group no other users matter.
func private(group int) bool {
	if group == 0 {
		return true
	}
	if group != os.Getgid() {
		return false
	}
	self, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	name, members, known := lookUp(group)
	if !known || err != nil {
		return group == os.Geteuid()
	}
	return name == self.Username && !slices.ContainsFunc(members, func(m string) bool { return m != self.Username })
}

// lookUp finds a group on this host.
func lookUp(group int) (name string, members []string, known bool) {
	f, err := os.Open("/etc/group")
	if err != nil {
		return "", nil, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) == 4 && fields[2] == strconv.Itoa(group) {
			return fields[0], slices.DeleteFunc(strings.Split(fields[3], ","), func(m string) bool { return m == "" }), true
		}
	}
	return "", nil, false
}

func groupName(group int) string {
	if g, err := user.LookupGroupId(strconv.Itoa(group)); err == nil {
		return g.Name
	}
	return strconv.Itoa(group)
}

func uid(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
func gid(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Gid) }
