//go:build slurm

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var leaseClasses = []class{
	{name: "lease in a strange state", fire: leaseStrange, lane: onThisHost},
	{name: "lease of a killed holder", fire: leaseOfKilled, lane: onThisHost},
	{name: "command stopped past its lease", fire: leaseSlept, lane: onThisHost},
	{name: "several commands at once", fire: severalCommands, lane: onThisHost},
}

// nobody is the ID of the ordinary user nobody.
const nobody = 65534

// leaseWait is longer than a command waits for a lease that is not renewed, 90 s.
const leaseWait = 150 * time.Second

// holder is the content of a lease that another host's command holds.
const holder = `{"host":"elsewhere","pid":4711,"space":"another boot pid:[1]","since":"2026-01-01T00:00:00Z","nonce":"N"}` + "\n"

// leaseStates are things that may be in the place of a study's lease. A regular file that
// was not touched for hours must not block the study. For anything else, a command must say
// what blocks it, and must not wait forever.
var leaseStates = []struct {
	name    string
	make    func(tr *trial, path string) error
	regular bool
}{
	{"another host's", leaseText(holder), true},
	{"empty", leaseText(""), true},
	{"garbage", leaseText("\x00\xff}{ no lease"), true},
	{"half written", leaseText(holder[:40]), true},
	{"huge", leaseText(strings.Repeat("[", 8<<20)), true},
	{"holes", func(_ *trial, path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<33))
	}, true},
	{"mode 000", func(tr *trial, path string) error {
		return errors.Join(os.WriteFile(path, []byte(holder), 0o600), os.Chmod(path, 0))
	}, true},
	{"another user's", func(tr *trial, path string) error {
		return errors.Join(os.WriteFile(path, []byte(holder), 0o600), os.Chown(path, 12345, 12345))
	}, true},
	{"a directory", func(_ *trial, path string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o755) }, false},
	{"an empty directory", func(_ *trial, path string) error { return os.Mkdir(path, 0o755) }, false},
	{"a link to nowhere", func(_ *trial, path string) error { return os.Symlink("nowhere", path) }, false},
	{"a link to itself", func(_ *trial, path string) error { return os.Symlink("lease", path) }, false},
	{"a link to a file", func(tr *trial, path string) error {
		tr.file("precious", "precious\n", 0o644)
		return os.Symlink(filepath.Join(tr.dir, "precious"), path)
	}, false},
	{"a link to /dev/zero", func(_ *trial, path string) error { return os.Symlink("/dev/zero", path) }, false},
	{"a FIFO", func(_ *trial, path string) error { return syscall.Mkfifo(path, 0o600) }, false},
}

func leaseText(text string) func(*trial, string) error {
	return func(_ *trial, path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

func leaseStrange(tr *trial) error {
	state := leaseStates[tr.rng.IntN(len(leaseStates))]
	age := tr.one("old", "old", "old", "new", "in the future")
	tr.how = state.name + ", " + age
	// Permissions and owners do not restrict root.
	if os.Getuid() == 0 && (state.name == "mode 000" || state.name == "another user's" || tr.rng.IntN(4) == 0) {
		if err := tr.as(nobody); err != nil {
			return err
		}
		tr.how += ", for an ordinary user"
	}
	study := filepath.Join(tr.runs, tr.name)
	path := filepath.Join(study, "lease")
	if err := errors.Join(os.MkdirAll(study, 0o755), state.make(tr, path), tr.own()); err != nil {
		return err
	}
	if state.name == "another user's" {
		if err := os.Chown(path, 12345, 12345); err != nil {
			return err
		}
	}
	if when := map[string]time.Duration{"old": -2 * time.Hour, "in the future": 2 * time.Hour}[age]; when != 0 {
		at := time.Now().Add(when)
		_ = os.Chtimes(path, at, at) // some links are broken
	}
	out, code := tr.submit()
	switch {
	case code == 0:
	case state.regular && age == "old":
		tr.problem("a lease that nobody has touched for 2 h keeps the study: exit code %d: %s", code, out)
	case !strings.Contains(out, "lease"):
		tr.problem("exit code %d, and the lease is not named: %s", code, out)
	}
	if text := tr.lines("precious"); state.name == "a link to a file" && (len(text) != 1 || text[0] != "precious") {
		tr.problem("the file that the lease was a link to now holds %.80q", text)
	}
	return os.RemoveAll(path)
}

// as runs the trial's commands as another user, and gives that user the folder.
func (tr *trial) as(user int) error {
	tr.user = user
	return errors.Join(os.MkdirAll(tr.runs, 0o755), tr.own())
}

// own changes the owner of the trial's files to its user.
func (tr *trial) own() error {
	if tr.user == 0 {
		return nil
	}
	return filepath.WalkDir(tr.dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, tr.user, tr.user))
	})
}

// leaseOfKilled kills commands that hold the lease, while they create, renew or release
// it.
func leaseOfKilled(tr *trial) error {
	tr.steps = 100
	tr.files()
	path := filepath.Join(tr.runs, tr.name, "lease")
	for range 1 + tr.rng.IntN(3) {
		at := tr.one("unlinkat 1", "unlinkat 2", "renameat 1", "mkdirat 2", "mkdirat 3")
		call, when, _ := strings.Cut(at, " ")
		tr.how += "; at " + at
		tr.runUnder([]string{"strace", "-f", "-qq", "--detach-on=execve", "-o", "/dev/null", "-e", "trace=" + call,
			"-e", "inject=" + call + ":signal=SIGKILL:when=" + when}, tr.command()...)
		text, _ := os.ReadFile(path)
		switch {
		case len(text) == 0:
			tr.how += ", when there was no lease"
			continue
		case tr.rng.IntN(2) == 0: // as another host would see it hours later
			tr.how += ", as of another host 2 h ago"
			at := time.Now().Add(-2 * time.Hour)
			other := strings.ReplaceAll(string(text), `"space":"`, `"space":"other `)
			if err := errors.Join(os.WriteFile(path, []byte(other), 0o600), os.Chtimes(path, at, at)); err != nil {
				return err
			}
		}
		began := time.Now()
		if out, code := tr.run(tr.command()...); code != 0 && code != exitRunsFailed {
			tr.problem("after a killed holder: exit code %d: %s", code, out)
		}
		if took := time.Since(began); took > 50*time.Second {
			tr.problem("a killed holder's lease kept the next command for %.0f s", took.Seconds())
		}
	}
	tr.how = strings.TrimPrefix(tr.how, "; ")
	return nil
}

// over reports whether a child process has ended.
func (tr *trial) over(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

// leaseSlept stops a command at some call while it may hold the lease, lets another one
// take over what expired meanwhile, and resumes the first.
func leaseSlept(tr *trial) error {
	tr.steps = 60
	tr.files()
	call := []string{"linkat", "renameat", "mkdirat", "fsync", "unlinkat"}[tr.rng.IntN(5)]
	when := 1 + tr.rng.IntN(3)
	tr.how = fmt.Sprintf("at %s %d", call, when)
	tracer := []string{"strace", "-f", "-qq", "--detach-on=execve", "-o", "/dev/null", "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:signal=SIGSTOP:when=%d", call, when)}
	ctx, cancel := context.WithTimeout(context.Background(), 2*longest+patience)
	defer cancel()
	cmd, out := tr.startUnder(ctx, tracer, tr.command()...)
	sleeper := 0
	err := awaitFor(time.Minute, "a command that is stopped", func() bool {
		sleeper = tr.stopped(cmd.Process.Pid)
		return sleeper != 0 || tr.over(cmd.Process.Pid)
	})
	if err != nil {
		_ = cmd.Process.Kill()
		tr.finish(cmd, out)
		return err
	}
	path := filepath.Join(tr.runs, tr.name, "lease")
	if sleeper == 0 {
		tr.how += ", which it never came to"
	} else {
		// Age the lease by hours.
		at := time.Now().Add(-2 * time.Hour)
		if os.Chtimes(path, at, at) == nil {
			tr.how += ", with the lease"
		}
		// A command that drives a run keeps the lease while it sleeps, so the other command waits.
		other, otherOut := tr.start(ctx, tr.command()...)
		_ = awaitFor(leaseWait, "the other command", func() bool { return tr.over(other.Process.Pid) })
		// strace counts calls per thread, so a call of another thread may stop the command again.
		awake := make(chan struct{})
		defer close(awake)
		go func() {
			for {
				_ = syscall.Kill(sleeper, syscall.SIGCONT)
				select {
				case <-awake:
					return
				case <-time.After(200 * time.Millisecond):
				}
			}
		}()
		// A command that sleeps in a transaction blocks the database meanwhile. The runs are
		// complete, and the next command collects them.
		locked := "database is locked by another process that is writing; try again when it is done"
		if out, code := tr.finish(other, otherOut); code != 0 && code != exitRunsFailed && !strings.Contains(out, locked) {
			tr.problem("beside a command that is stopped: exit code %d: %s", code, out)
		}
	}
	tr.finish(cmd, out)
	return nil
}

// stopped returns the child of a process if the child is stopped, else 0.
func (tr *trial) stopped(pid int) int {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var child int
	if n, _ := fmt.Sscan(string(children), &child); n == 0 {
		return 0
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", child))
	if strings.Contains(string(stat), "State:\tT") || strings.Contains(string(stat), "State:\tt (tracing stop)") && tr.still(child) {
		return child
	}
	return 0
}

// still reports whether a process stays stopped for 200 ms.
func (tr *trial) still(pid int) bool {
	read := func() string {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		return string(text) + string(status)
	}
	before := read()
	time.Sleep(200 * time.Millisecond)
	return read() == before
}

// severalCommands runs the same study with several commands at the same time, from two folders
// and under two names of the runs folder.
func severalCommands(tr *trial) error {
	other := filepath.Join(tr.dir, "other")
	if err := errors.Join(os.Mkdir(other, 0o755), os.Symlink(tr.runs, filepath.Join(other, "link")), os.MkdirAll(tr.runs, 0o755)); err != nil {
		return err
	}
	n := 2 + tr.rng.IntN(3)
	tr.how = fmt.Sprint(n)
	type ended struct {
		out  string
		code int
	}
	all := make(chan ended, n)
	for i := range n {
		time.Sleep(tr.between(0, 300*time.Millisecond))
		args := tr.command()
		if i%2 == 1 {
			args = append(args, "--runs", filepath.Join(other, "link"))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		cmd, out := tr.start(ctx, args...)
		go func() {
			defer cancel()
			_ = cmd.Wait()
			all <- ended{out.String(), cmd.ProcessState.ExitCode()}
		}()
	}
	for range n {
		e := <-all
		fmt.Fprintf(&tr.log, "$ one of %d\n%s[%d]\n", n, e.out, e.code)
		if e.code != 0 || strings.Contains(e.out, "this is a bug") {
			tr.problem("one of %d commands at once: exit code %d: %s", n, e.code, e.out)
		}
	}
	return nil
}
