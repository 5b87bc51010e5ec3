package sharedfs

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Only regular files are opened, and nothing blocks. If it does, the test runs into its time limit.
func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.WriteFile(at("file"), []byte("12345"), 0o644))
	check(os.Symlink(at("file"), at("link")))
	check(os.Mkdir(at("folder"), 0o755))
	check(syscall.Mkfifo(at("fifo"), 0o644))
	check(os.Symlink("/dev/zero", at("zero")))
	check(os.Symlink(at("loop"), at("loop")))
	check(os.Symlink(at("nowhere"), at("dangling")))
	socket, err := net.Listen("unix", at("socket"))
	check(err)
	defer socket.Close()

	for _, name := range []string{"file", "link"} {
		if text, err := ReadFile(at(name), 5); err != nil || string(text) != "12345" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := ReadFile(at("file"), 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("5 bytes where 4 are the most: %v", err)
	}
	// Its reported size is 0.
	if _, err := ReadFile("/proc/self/maps", 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file that says that it is empty: %v", err)
	}
	for name, want := range map[string]string{
		"folder": "a folder, not a regular file", "fifo": "a FIFO, not a regular file", "zero": "a device, not a regular file",
		"socket": "a socket or a FIFO, not a regular file", "loop": "too many levels of symbolic links",
	} {
		for _, open := range []func(string) (*os.File, error){Open, func(path string) (*os.File, error) {
			_, err := ReadFile(path, 1<<20)
			return nil, err
		}} {
			if _, err := open(at(name)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), at(name)) {
				t.Errorf("%s: %v, want its path and %q", name, err, want)
			}
		}
	}
	for name, want := range map[string]string{"fifo": "a socket or a FIFO", "folder": "a folder", "zero": "a device"} {
		if _, err := openFile(at(name), os.O_WRONLY); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s to write: %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"link", "zero", "dangling", "loop"} {
		if _, err := openFile(at(name), os.O_RDWR|syscall.O_NOFOLLOW); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "a symbolic link") {
			t.Errorf("%s, links not followed: %v", name, err)
		}
	}
	for _, name := range []string{"missing", "dangling"} {
		if _, err := Open(at(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want fs.ErrNotExist", name, err)
		}
	}
}

// Data that are appended while a file is read are not part of Present.
func TestPresent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "growing")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for from, want := range map[int64]string{0: "0123456789", 4: "456789", 10: "", 99: ""} {
		now, err := Present(f, from)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("more"); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(now); err != nil || string(got) != want {
			t.Errorf("from %d: %q, %v; want %q", from, got, err, want)
		}
		if err := f.Truncate(10); err != nil {
			t.Fatal(err)
		}
	}
}

// A link may only lead to a file in the folder.
func TestOpenIn(t *testing.T) {
	top := t.TempDir()
	run := filepath.Join(top, "run")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.MkdirAll(filepath.Join(run, "events"), 0o755))
	check(os.MkdirAll(filepath.Join(top, "elsewhere"), 0o755))
	for _, path := range []string{"run/events/own", "elsewhere/other"} {
		check(os.WriteFile(filepath.Join(top, path), []byte(path), 0o644))
	}
	check(os.Symlink("run", filepath.Join(top, "moved")))
	check(syscall.Mkfifo(filepath.Join(run, "fifo"), 0o644))
	for link, target := range map[string]string{
		"events/near": "own", "events/up": "../events/own", "events/out": "../../elsewhere/other", "events/absolute": filepath.Join(top, "elsewhere/other"), "events/inside": filepath.Join(run, "events/own"),
		"events/device": "/dev/zero", "events/chain": "out", "folder": "../elsewhere", "events/loop": "loop", "events/gone": "gone-too",
	} {
		check(os.Symlink(target, filepath.Join(run, link)))
	}
	for _, c := range []struct {
		folder, name string
		want         string // part of the error; "": no error, and the content of events/own
	}{
		{"run", "events/own", ""},
		{"run", "events/near", ""},
		{"run", "events/up", ""},
		{"run", "events/inside", ""},
		{"moved", "events/own", ""},
		{"run", "events/out", "a link out of "},
		{"run", "events/absolute", "a link out of "},
		{"run", "events/device", "a link out of "},
		{"run", "events/chain", "a link out of "},
		{"run", "folder/other", "a link out of "},
		{"run", "../elsewhere/other", "not in the folder "},
		{"run", "fifo", "a FIFO, not a regular file"},
		{"run", "events", "a folder, not a regular file"},
		{"run", "events/loop", "too many levels of symbolic links"},
		{"run", "events/gone", "no such file"},
	} {
		folder := filepath.Join(top, c.folder)
		path := folder + "/" + c.name
		f, err := OpenIn(folder, path)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s in %s: %v, want its path and %q", c.name, c.folder, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s in %s: %v", c.name, c.folder, err)
			continue
		}
		if text, err := io.ReadAll(f); err != nil || string(text) != "run/events/own" {
			t.Errorf("%s in %s: %q, %v", c.name, c.folder, text, err)
		}
		f.Close()
	}
}

// A FIFO instead of a folder is an error, and does not wait for a writer.
func TestOpenInFIFO(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	if err := syscall.Mkfifo(folder, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenIn(folder, filepath.Join(folder, "point.json"))
	if want := "open " + folder + ": not a directory"; err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}
