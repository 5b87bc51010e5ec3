package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics/sharedfs"
)

// info is a file's metadata with a chosen owner.
type info struct {
	mode     fs.FileMode
	uid, gid int
}

func (i info) Name() string       { return "" }
func (i info) Size() int64        { return 0 }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return &syscall.Stat_t{Uid: uint32(i.uid), Gid: uint32(i.gid)} }

// No account has these numbers.
const stranger, strangers = 1<<31 - 7, 1<<31 - 9

func TestRules(t *testing.T) {
	me, mine := os.Geteuid(), os.Getegid()
	dir, sticky := fs.ModeDir, fs.ModeDir|fs.ModeSticky
	for _, test := range []struct {
		what       string
		info       info
		own, above string // part of the refusal; "" is let through
	}{
		{"mine", info{dir | 0o755, me, mine}, "", ""},
		{"my file", info{0o644, me, mine}, "", ""},
		{"root's", info{dir | 0o755, 0, 0}, "", ""},
		{"a stranger's", info{dir | 0o755, stranger, strangers}, "belongs to user", ""}, // who leads a project owns its folder
		{"a stranger's file", info{0o644, stranger, mine}, "belongs to user", ""},
		{"for all", info{dir | 0o777, me, mine}, "every user", "every user"},
		{"for others", info{dir | 0o757, me, mine}, "every user", "every user"},
		{"a file for all", info{0o666, me, mine}, "every user", "every user"},
		{"sticky, as /tmp", info{sticky | 0o777, 0, 0}, "", ""},
		{"a stranger's, sticky", info{sticky | 0o777, stranger, strangers}, "belongs to user", ""},
		{"a group of others", info{dir | 0o775, me, strangers}, "the group", "which you do not belong to"},
		{"a file for a group of others", info{0o664, me, strangers}, "the group", "which you do not belong to"},
		{"sticky for a group", info{sticky | 0o775, me, strangers}, "", ""},
		{"sticky file", info{fs.ModeSticky | 0o666, me, mine}, "every user", ""},
	} {
		for name, check := range map[string]struct {
			judge func(string, fs.FileInfo) error
			want  string
		}{"itself": {own, test.own}, "above": {above, test.above}} {
			err := check.judge("/path", test.info)
			var refused *Error
			switch {
			case check.want == "" && err != nil, check.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), check.want) || !strings.Contains(err.Error(), "/path")):
				t.Errorf("%s, %s: %v, want %q", test.what, name, err, check.want)
			}
		}
	}
}

// A folder of the given permissions; MkdirAll's are the umask's.
func folder(t *testing.T, perm fs.FileMode, elements ...string) string {
	t.Helper()
	path := filepath.Join(elements...)
	if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, perm)); err != nil {
		t.Fatal(err)
	}
	return path
}

func refused(err error) bool {
	var e *Error
	return errors.As(err, &e)
}

func TestCheck(t *testing.T) {
	top := t.TempDir()
	open := folder(t, 0o777, top, "open")
	inOpen := folder(t, 0o755, open, "runs")
	temporary := folder(t, 0o777|fs.ModeSticky, top, "temporary")
	inTemporary := folder(t, 0o755, temporary, "runs")
	private := folder(t, 0o755, top, "private", "runs")
	link := filepath.Join(private, "link")
	absolute := filepath.Join(top, "absolute")
	loop := filepath.Join(top, "loop")
	if err := errors.Join(os.Symlink("../../open/runs", link), os.Symlink(private, absolute), os.Symlink("loop", loop)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		open: true, inOpen: true, filepath.Join(inOpen, "new/study"): true, link: true, filepath.Join(link, "new"): true,
		temporary: false, inTemporary: false, private: false, absolute: false, filepath.Join(private, "new/study"): false,
		filepath.Join(top, "open/../private/runs"): false, "/": false,
	} {
		if err := Check(path); refused(err) != want || !want && err != nil {
			t.Errorf("%s: %v; refused is to be %t", path, err, want)
		}
	}
	if err := Check(loop); err == nil || refused(err) {
		t.Errorf("a link to itself: %v", err)
	}
}

func TestTreeAndReadFile(t *testing.T) {
	top := folder(t, 0o755, t.TempDir(), "run")
	file := filepath.Join(folder(t, 0o755, top, "programs"), "rank.py")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(file); err != nil || string(text) != "text" || Tree(top) != nil || CheckFilesOnly(top, file, file+".missing") != nil || Named(file, file+".missing") != nil {
		t.Fatalf("%q %v, %v", text, err, Tree(top))
	}
	if err := os.Truncate(file, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if text, err := ReadFile(file); !errors.Is(err, sharedfs.ErrTooLarge) {
		t.Errorf("%d bytes are read: %v", len(text), err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(file); !refused(err) || !refused(Tree(top)) || !refused(CheckFilesOnly(file)) || !refused(Named(file)) {
		t.Errorf("a file that all may write: %v, %v, %v", err, Tree(top), CheckFilesOnly(file))
	}
	if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(file); !errors.Is(err, sharedfs.ErrNotRegular) {
		t.Errorf("a pipe was read: %v", err)
	}
}

// Where a test may give files away, the whole way is tried out.
func TestStranger(t *testing.T) {
	if os.Geteuid() != 0 {
		// Only root may; the rule itself is TestRules'.
		if err := Check("/"); err != nil {
			t.Fatal(err)
		}
		return
	}
	top := t.TempDir()
	theirs := folder(t, 0o755, top, "theirs")
	mine := folder(t, 0o755, theirs, "mine")
	link := filepath.Join(top, "link")
	if err := errors.Join(os.Symlink(mine, link), os.Chown(theirs, stranger, strangers)); err != nil {
		t.Fatal(err)
	}
	if err := Check(theirs); !refused(err) || !strings.Contains(err.Error(), theirs) {
		t.Errorf("their folder: %v", err)
	}
	if err := Check(link); err != nil {
		t.Errorf("my folder, by my link: %v", err)
	}
	if err := os.Lchown(link, stranger, strangers); err != nil {
		t.Fatal(err)
	}
	if err := Check(link); !refused(err) {
		t.Errorf("my folder, by their link: %v", err)
	}
}
