package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// strange lists things that may be at the path of one of our files.
var strange = map[string]func(path string) error{
	"a folder":         func(path string) error { return os.Mkdir(path, 0o755) },
	"a FIFO":           func(path string) error { return syscall.Mkfifo(path, 0o644) },
	"a dangling link":  func(path string) error { return os.Symlink("nowhere/at/all", path) },
	"a link to itself": func(path string) error { return os.Symlink(filepath.Base(path), path) },
	"a device":         func(path string) error { return os.Symlink("/dev/zero", path) },
	"empty":            func(path string) error { return os.WriteFile(path, nil, 0o644) },
	"damaged":          func(path string) error { return os.WriteFile(path, []byte("{\"a\": [1, \xff\x00"), 0o644) },
	"unreadable":       func(path string) error { return os.WriteFile(path, []byte("{}"), 0) },
}

// With anything at one of our paths, no command hangs or reports a bug in scalebench. With
// -short, each path has one of them.
func TestStrangeFiles(t *testing.T) {
	top := t.TempDir()
	worker, scalebench := buildWorker(t), program(t, "scalebench")
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	model := filepath.Join(top, "model")
	if err := os.MkdirAll(filepath.Join(model, "slurm"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(model, "site.toml", fmt.Sprintf("worker = %q\n[[partitions]]\nname = \"cpu\"\n", worker))
	const study = "[study]\nname = \"odd\"\nrepeats = %d\n[workload]\nmodel = \"mlp\"\nmax_steps = 3\n[data]\nkind = \"synthetic\"\n[sweep]\nworkers = [1]\n"
	write(model, "study.toml", fmt.Sprintf(study, 2))
	run := func(dir string, args ...string) (string, int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a hang
		defer cancel()
		c := exec.CommandContext(ctx, scalebench, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "HOME="+dir, "SCALEBENCH_DB="+filepath.Join(dir, "history.db"), slurmtest.FakeVariable+"="+filepath.Join(dir, "slurm"))
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		err := powerless(c)
		if ctx.Err() != nil {
			return "it hangs", -1
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out.String(), c.ProcessState.ExitCode()
	}
	if out, code := run(model, "run", "study.toml", "--site", "site.toml"); code != 0 {
		t.Fatalf("run: %d\n%s", code, out)
	}
	write(model, "study.toml", fmt.Sprintf(study, 3))
	if out, code := run(model, "submit", "study.toml", "--site", "site.toml"); code != 0 {
		t.Fatalf("submit: %d\n%s", code, out)
	}
	runs, err := filepath.Glob(filepath.Join(model, "runs/odd/*-r?-a1"))
	if err != nil || len(runs) != 3 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	first, last := filepath.Base(runs[0]), filepath.Base(runs[2])
	// true: the run or plan of the file cannot be read, and all other runs are still collected.
	places := map[string]bool{"runs/odd/study.toml": false, "runs/odd/site.toml": false, "runs/odd/plan.json": true, "runs/odd/identity.json": false, "runs/odd/lease": false,
		"history.db": false, "history.db.lock": false, "history.db.key": false, "history.db-wal": false, "history.db-shm": false, "history.db-journal": false,
		"runs/odd": false, "runs": false}
	for _, name := range []string{"point.json", "command.json", "secrets.json", "attempt.json", "heartbeat", "nonce", "programs", "own", "output", "job.json", "state.json", "claim-0", "exit-0.json", "job.log", "rank-00000.log", "events", "events/rank-00000-0.jsonl"} {
		places[filepath.Join("runs/odd", first, name)] = true
	}
	for _, name := range []string{"point.json", "attempt.json", "job.sh", "job.json", "state.json", "claim-0", "exit-0.json", "events", "job.log"} {
		places[filepath.Join("runs/odd", last, name)] = true
	}
	commands := [][]string{{"status"}, {"collect", "odd"}, {"scaling", "odd"}, {"cancel", "odd"}, {"submit", "study.toml", "--site", "site.toml"}}
	pristine := filepath.Join(top, "pristine")
	if err := os.Rename(model, pristine); err != nil {
		t.Fatal(err)
	}
	n := 0
	whats := slices.Sorted(maps.Keys(strange))
	for _, place := range slices.Sorted(maps.Keys(places)) {
		tried := whats
		if n++; testing.Short() {
			tried = whats[n%len(whats):][:1]
		}
		for _, what := range tried {
			name, put := place+" is "+what, strange[what]
			// The folder is the same each time, because the database stores where runs are.
			dir := model
			if out, err := exec.Command("cp", "-a", pristine, dir).CombinedOutput(); err != nil {
				t.Fatalf("cp: %v\n%s", err, out)
			}
			path := filepath.Join(dir, place)
			if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o755), put(path)); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(name, err)
			}
			for _, args := range commands {
				out, code := run(dir, args...)
				if code != 0 && code != 2 && code != 3 || strings.Contains(out, "goroutine") {
					t.Errorf("%s: %v: exit code %d: %s", name, args, code, out)
				}
				if args[0] == "collect" && places[place] && !strings.Contains("\n"+out, "\ncollected ") {
					t.Errorf("%s: the other runs are not collected: %s", name, out)
				}
			}
			os.RemoveAll(dir)
		}
	}
}

// powerless runs a command without root's access to other users' files.
func powerless(c *exec.Cmd) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		if os.Geteuid() == 0 {
			for _, power := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
				if err := unix.Prctl(unix.PR_CAPBSET_DROP, power, 0, 0, 0); err != nil {
					ended <- err
					return
				}
			}
		}
		ended <- c.Run()
	}()
	return <-ended
}
