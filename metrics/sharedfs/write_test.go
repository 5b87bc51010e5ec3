package sharedfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Permissions never exceed the umask, nor the replaced file's permissions.
func TestPermissions(t *testing.T) {
	for _, test := range []struct {
		umask        int
		before, perm fs.FileMode // before 0: no file exists
		want         fs.FileMode
	}{
		{0o022, 0, ModeOpen, 0o644},
		{0o027, 0, ModeOpen, 0o640},
		{0o077, 0, ModeOpen, 0o600},
		{0o002, 0, ModeOpen, 0o644},
		{0o022, 0, ModePrivate, 0o600},
		{0o000, 0, ModeScript, 0o700},
		{0o022, 0o600, ModeOpen, 0o600},
		{0o022, 0o640, ModeOpen, 0o640},
		{0o022, 0o666, ModeOpen, 0o644},
		{0o022, 0o444, ModeOpen, 0o644}, // replaced by renaming
	} {
		path := filepath.Join(t.TempDir(), "file")
		if test.before != 0 {
			if err := errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chmod(path, test.before)); err != nil {
				t.Fatal(err)
			}
		}
		old := syscall.Umask(test.umask)
		err := Write(path, []byte("new"), test.perm)
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != test.want {
			t.Errorf("umask %03o, %03o asked for over %03o: %03o, want %03o", test.umask, test.perm, test.before, got, test.want)
		}
		if text, _ := os.ReadFile(path); string(text) != "new" {
			t.Errorf("content %q", text)
		}
	}
}

// If writing fails, the old content stays, and no temporary file remains.
func TestFailure(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := Write(path, []byte("old"), ModeOpen); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := Replace(path, ModeOpen, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if text, _ := os.ReadFile(path); string(text) != "old" {
		t.Errorf("content %q", text)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files are left, want 1", len(entries))
	}
}

// The error about a file that cannot be written is reported once, and names the file instead of the
// temporary one.
func TestErrorNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	for what, write := range map[string]func(io.Writer) error{
		"while it is written": func(w io.Writer) error {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
			return nil
		},
		"at its end": func(w io.Writer) error { _, err := w.Write([]byte("short")); return err },
	} {
		var before syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
		limit := before
		limit.Cur = 1 // byte; writing more fails with EFBIG, as with ENOSPC on a full disk
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		err := Replace(path, ModeOpen, write)
		if back := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); back != nil {
			t.Fatal(back)
		}
		if !errors.Is(err, syscall.EFBIG) || err.Error() != "cannot write "+path+": file too large" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

// The error names the path as the caller gave it, and the folder that cannot be written, but not
// the temporary file.
func TestUnwritableFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "none")
	path := filepath.Join(folder, "a.html")
	err := Write(path, []byte("x"), ModeOpen)
	if want := "cannot write " + path + ": its folder " + folder + ": no such file or directory"; err == nil || err.Error() != want || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want %s", err, want)
	}
}
