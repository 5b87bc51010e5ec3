package sharedfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// strange has functions that create, at a path, a file that no holder wrote.
var strange = map[string]func(path string) error{
	"empty":       text(""),
	"garbage":     text("damaged"),
	"torn":        text(`{"host":"login7","pid":4711,"spa`),
	"nameless":    text("{}"),
	"wrong types": text(`{"host":1,"pid":"x","nonce":[]}`),
	"no object":   text("[[[[[1]]]]]"),
	"deep":        text(strings.Repeat("[", 3000)),
	"huge":        func(path string) error { return errors.Join(text("{")(path), os.Truncate(path, 1<<40)) },
	"evil nonce":  text(`{"host":"login7","pid":4711,"nonce":"../../x"}`),
	"evil host":   text(`{"host":"\u001b[31mlogin7\n","pid":4711,"nonce":"x"}`),
	"every pid":   text(`{"host":"login7","pid":-1,"nonce":"x"}`),
	"large pid":   text(`{"host":"login7","pid":1e300,"nonce":"x"}`),
	"dangling":    func(path string) error { return os.Symlink("nowhere", path) },
	"loop":        func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"endless":     func(path string) error { return os.Symlink("/dev/zero", path) },
	"to a file":   func(path string) error { return os.Symlink("/etc/hostname", path) },
	"FIFO":        func(path string) error { return syscall.Mkfifo(path, 0o600) },
	"no mode":     func(path string) error { return errors.Join(text("damaged")(path), os.Chmod(path, 0)) },
}

func text(content string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(content), 0o600) }
}

// date sets the modification time of a file; it does not follow a link.
func date(t *testing.T, path string, age time.Duration) {
	t.Helper()
	at := unix.NsecToTimespec(time.Now().Add(-age).UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t.Fatal(err)
	}
}

// promptly fails the test if f hangs.
func promptly(t *testing.T, what string, f func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() { f(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("%s: hangs", what)
	}
}

// Any kind of file blocks the lease while it is fresh, is taken over when older than LeaseTime, and
// gets the present time if its time is in the future.
func TestStrangeFilesLapse(t *testing.T) {
	for name, make := range strange {
		path := filepath.Join(t.TempDir(), "lease")
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		for _, when := range []struct {
			age  time.Duration
			free bool
		}{{0, false}, {-time.Hour, false}, {-24 * 365 * time.Hour, false}, {LeaseTime - 5*time.Second, false}, {2 * time.Hour, true}} {
			date(t, path, when.age)
			promptly(t, name, func() {
				l, err := TakeLease(t.Context(), path, 0)
				if (err == nil) != when.free || err != nil && !strings.Contains(err.Error(), path) {
					t.Errorf("%s, %v old: taken %v, want %v (%v)", name, when.age, err == nil, when.free, err)
				}
				if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
					t.Errorf("%s: the message is %q", name, err)
				}
				if err == nil {
					if err := l.Check(); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					release(t, l)
				}
			})
			if info, err := os.Lstat(path); err != nil || time.Until(info.ModTime()) > renew {
				t.Errorf("%s is still dated %v (%v)", name, info.ModTime(), err)
			}
		}
		if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 1 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}
	}
	if _, err := os.Stat("/etc/hostname"); err != nil {
		t.Error(err)
	}
}

// A folder cannot be a lease and cannot be replaced, so it is an error at once.
func TestFolderInPlaceOfLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	date(t, path, time.Hour)
	promptly(t, "folder", func() {
		if _, err := TakeLease(t.Context(), path, time.Hour); err == nil || !strings.Contains(err.Error(), path+" is a folder") {
			t.Errorf("a folder: %v", err)
		}
	})
}

// The lease of another user, whose file is neither readable nor writable, also lapses if the
// folder's permissions allow its replacement.
func TestAnotherUsersLease(t *testing.T) {
	if path := os.Getenv("LEASE_OF_ANOTHER"); path != "" {
		l, err := TakeLease(t.Context(), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		release(t, l)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can be two users")
	}
	dir, err := os.MkdirTemp("", "lease") // other users cannot enter the parents of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path, program := filepath.Join(dir, "lease"), filepath.Join(dir, "test")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.WriteFile(program, self, 0o755), os.Chmod(dir, 0o777), os.WriteFile(path, []byte(`{"host":"a","pid":1,"nonce":"x"}`), 0), os.Chmod(path, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func() (string, error) {
		cmd := exec.Command(program, "-test.run", "^TestAnotherUsersLease$", "-test.v")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LEASE_OF_ANOTHER="+path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err == nil || !strings.Contains(out, path) || !strings.Contains(out, "an unknown process holds") {
		t.Errorf("fresh: %v\n%s", err, out)
	}
	date(t, path, -time.Hour)
	if out, err := run(); err == nil || !strings.Contains(out, "dated in the future") || !strings.Contains(out, "remove it") {
		t.Errorf("of the future: %v\n%s", err, out)
	}
	date(t, path, time.Hour)
	if out, err := run(); err != nil {
		t.Errorf("lapsed: %v\n%s", err, out)
	}
}

// A holder is paused within touch, loses the lease, and then continues.
func TestTouchSparesAnothersLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	first := take(t, path)
	date(t, path, 2*LeaseTime)
	second := take(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	date(t, path, LeaseTime/2)
	_ = first.touch()
	after, err := os.ReadFile(path)
	if err != nil || string(before) != string(after) {
		t.Errorf("the successor's file holds %q, then %q (%v)", before, after, err)
	}
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) < LeaseTime/4 {
		t.Errorf("the successor's file was renewed by the one that lost it: %v, %v", info.ModTime(), err)
	}
	release(t, first)
	if err := second.Check(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > LeaseTime {
		t.Errorf("the one that lost it gave up the successor's: %v, %v", info.ModTime(), err)
	}
	release(t, second)
}

// A process that takes the lease over is paused between two of its steps, while others take the
// lease. It must not take the lease from them.
func TestDelayedTakeover(t *testing.T) {
	for _, paused := range []string{"before the right", "before the rename"} {
		path := filepath.Join(t.TempDir(), "lease")
		write(t, path, Holder{Host: "other", PID: 1, Nonce: "x"}, 2*LeaseTime)
		late := &Lease{path: path, owner: Holder{Host: "here", PID: 1, Nonce: "late"}}
		own := late.own("late")
		if err := os.WriteFile(own, late.owner.text(), 0o600); err != nil {
			t.Fatal(err)
		}
		stale, err := lookAtLease(path)
		if err != nil {
			t.Fatal(err)
		}
		if paused == "before the rename" { // paused for longer than LeaseTime, with the right to succeed
			if err := os.Link(own, late.over("x")); err != nil {
				t.Fatal(err)
			}
			date(t, own, 2*LeaseTime)
		}
		now := take(t, path)
		if paused == "before the rename" {
			if err := os.Rename(own, path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the late rename: %v", err)
			}
		} else if holder, err := late.succeed(stale, own, running()); err != nil || holder == nil {
			t.Errorf("%s: a late taker succeeds: %v, %v", paused, holder, err)
		}
		if err := now.Check(); err != nil {
			t.Errorf("%s: %v", paused, err)
		}
		release(t, now)
		os.Remove(own)
		if left, err := filepath.Glob(path + "*"); err != nil || len(left) != 1 {
			t.Errorf("%s: left behind: %v, %v", paused, left, err)
		}
	}
}

// A holder that was suspended calls Check while another process takes the lease over. One of the
// two has the lease, not both.
func TestCheckWhileAnotherTakesOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	l := take(t, path)
	defer release(t, l)
	l.renewed.Store(int64(running() - 2*LeaseTime))
	date(t, path, 2*LeaseTime)
	if err := l.Check(); err != nil {
		t.Errorf("stood still, and nobody came: %v", err)
	}
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > LeaseTime/4 {
		t.Errorf("Check did not renew what had lapsed: %v, %v", info.ModTime(), err)
	}
	l.renewed.Store(int64(running() - 2*LeaseTime))
	write(t, l.over(l.owner.Nonce), Holder{Host: "other", PID: 1, Nonce: "x"}, 0)
	var held *LeaseHeldError
	if err := l.Check(); !errors.As(err, &held) || !held.Lost {
		t.Errorf("while another takes over: %v", err)
	}
	os.Remove(l.over(l.owner.Nonce))
}
