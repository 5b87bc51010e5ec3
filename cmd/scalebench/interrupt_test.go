package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command that computes, or waits for its input, ends at the first signal, with
// the exit code that shells give it, and leaves the database as it was.
func TestInterrupt(t *testing.T) {
	dir, scalebench := t.TempDir(), program(t, "scalebench")
	var long strings.Builder // 90,000 points are seconds of work
	for i := range 90_000 {
		fmt.Fprintf(&long, "%d,", i+1)
	}
	for name, text := range map[string]string{
		"long.toml": "[study]\nname = \"long\"\n[workload]\nmodel = \"mlp\"\nmax_steps = 3\n[data]\nkind = \"synthetic\"\n[sweep]\nworkers = [1]\nbatch = [" + long.String() + "]\n",
		"table.csv": "rate\n100\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	db := filepath.Join(dir, "history.db")
	start := func(args ...string) (*exec.Cmd, io.Writer, *bytes.Buffer) {
		t.Helper()
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), scalebench, args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
		cmd.Env = append(os.Environ(), "HOME="+dir, "SCALEBENCH_DB="+db)
		in, err := cmd.StdinPipe()
		if err := errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		return cmd, in, &out
	}
	csv := []string{"--format", "csv", "--set", "study=old", "--set", "workers=1", "--map", "throughput=rate"}
	first, _, out := start(append([]string{"import", "table.csv"}, csv...)...)
	if err := first.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		signal syscall.Signal
		code   int
	}{
		{[]string{"check", "long.toml"}, syscall.SIGINT, 130},
		{[]string{"check", "long.toml"}, syscall.SIGTERM, 143},
		{[]string{"render", "long.toml", "-o", "scripts"}, syscall.SIGINT, 130},
		{[]string{"run", "long.toml"}, syscall.SIGINT, 130},
		{[]string{"run", "long.toml"}, syscall.SIGHUP, 129},
		{[]string{"check", "long.toml"}, syscall.SIGQUIT, 131},
		{[]string{"submit", "long.toml"}, syscall.SIGTERM, 143},
		{append([]string{"import", "/dev/stdin"}, csv...), syscall.SIGINT, 130},
		{[]string{"extract", "/dev/stdin", "--from", "timm"}, syscall.SIGTERM, 143},
	} {
		cmd, _, out := start(test.args...)
		reads := strings.HasSuffix(test.args[1], "stdin")
		for begun := false; !begun; time.Sleep(5 * time.Millisecond) {
			if reads {
				begun = opened(t, cmd.Process.Pid)
			} else {
				begun = computed(t, cmd.Process.Pid) >= 300*time.Millisecond
			}
		}
		if err := cmd.Process.Signal(test.signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its exit code says more
		if code := cmd.ProcessState.ExitCode(); code != test.code || out.String() != "scalebench: interrupted\n" {
			t.Errorf("%v: %v: exit code %d, want %d: %.500s", test.args, test.signal, code, test.code, out)
		}
	}
	if after, err := os.ReadFile(db); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the database was changed (%v)", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if e.Name() != "long.toml" && e.Name() != "table.csv" && !strings.HasPrefix(e.Name(), "history.db") {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// If a signal ends a command while git looks up the study's commit, neither git nor its
// temporary files remain.
func TestInterruptedGit(t *testing.T) {
	dir, scalebench := t.TempDir(), program(t, "scalebench")
	site := "worker = \"" + filepath.Join(dir, "bin/git") + "\"\n" // any program: it is never started
	for name, text := range map[string]string{
		"study.toml": "[study]\nname = \"s\"\n[workload]\nmodel = \"mlp\"\nmax_steps = 3\n[data]\nkind = \"synthetic\"\n[sweep]\nworkers = [1]\n",
		".git/HEAD":  "ref: refs/heads/main\n",
		"bin/git":    "#!/bin/sh\necho $$ >$MARK.new\nmv $MARK.new $MARK\nexec sleep 1000\n",
		"tmp/none":   "",
		"site.toml":  site,
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	mark := filepath.Join(dir, "mark")
	for _, test := range []struct {
		verb   []string
		signal syscall.Signal
	}{
		{[]string{"render", "-o", "scripts"}, syscall.SIGTERM}, {[]string{"run"}, syscall.SIGTERM}, {[]string{"submit"}, syscall.SIGTERM},
		{[]string{"render", "-o", "scripts"}, syscall.SIGHUP}, {[]string{"run"}, syscall.SIGQUIT}, {[]string{"submit"}, syscall.SIGHUP},
	} {
		verb := test.verb
		os.Remove(mark)
		cmd := exec.CommandContext(t.Context(), scalebench, append(verb, "study.toml", "--site", "site.toml")...)
		var out bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
		cmd.Env = append(os.Environ(), "HOME="+dir, "SCALEBENCH_DB="+filepath.Join(dir, "db"), "TMPDIR="+filepath.Join(dir, "tmp"), "MARK="+mark,
			"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(mark); err == nil {
				break
			}
			if computed(t, cmd.Process.Pid) > time.Minute {
				t.Fatalf("%v never asked git", verb)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := cmd.Process.Signal(test.signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its exit code says more
		if code := cmd.ProcessState.ExitCode(); code != 128+int(test.signal) || out.String() != "scalebench: interrupted\n" {
			t.Errorf("%v: exit code %d: %s", verb, code, out.String())
		}
		if left, err := filepath.Glob(filepath.Join(dir, "tmp", "scalebench-*")); err != nil || len(left) > 0 {
			t.Errorf("%v left %v (%v)", verb, left, err)
		}
		pid, err := os.ReadFile(mark)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil {
			t.Errorf("%v: git is still there", verb)
		}
	}
}

// A command that was started to outlive its terminal, as with nohup, continues.
func TestHangupIgnored(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap "" HUP; exec "$0" extract /dev/stdin --from timm`, program(t, "scalebench"))
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, &out, &out, append(os.Environ(), "HOME="+dir)
	in, err := cmd.StdinPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	for !opened(t, cmd.Process.Pid) {
		time.Sleep(5 * time.Millisecond)
	}
	if err := errors.Join(cmd.Process.Signal(syscall.SIGHUP), in.Close()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code says more
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(out.String(), "nothing found") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// computed returns the CPU time of a process, which must be alive.
func computed(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // of proc(5), from the third on
	if err != nil || len(fields) < 12 || fields[0] == "Z" {
		t.Fatalf("process %d has ended too early: %q, %v", pid, stat, err)
	}
	var ticks int
	if _, err := fmt.Sscan(fields[11], &ticks); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100 on every Linux that Go knows
}

// opened reports whether a process has opened its standard input again.
func opened(t *testing.T, pid int) bool {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	in, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
	n := 0
	for _, fd := range fds {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())); err == nil && to == in {
			n++
		}
	}
	return n > 1
}
