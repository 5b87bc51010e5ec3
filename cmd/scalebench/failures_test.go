package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher/gpu/gputest"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
)

const failingRanks = 3

// failingStudy trains without end, on more ranks than most machines have CPUs.
const failingStudy = `
[study]
name = "f"
[workload]
model = "cnn"
batch = 4
warmup_epochs = 0
learning_rate = 0.001
epochs = 1000000
[data]
kind = "synthetic"
train_samples = 600
test_samples = 12
[sweep]
workers = [3]
`

// A localRun is "scalebench run" of a study with one point, as a user starts
// it.
type localRun struct {
	cmd     *exec.Cmd
	dir     string
	run     rundir.Folder
	output  bytes.Buffer
	ranks   []int // process IDs of the programs, by rank
	watches []int // process IDs of their supervisors
}

// scalebench returns a command that runs this test binary as scalebench.
func (l *localRun) scalebench(t testing.TB, arguments ...string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: program, Args: append([]string{"scalebench"}, arguments...), Dir: l.dir,
		Env: append(os.Environ(), "SCALEBENCH_DB="+filepath.Join(l.dir, "history.db"), "NO_COLOR=1", "HOME="+l.dir)}
}

// An engine is the trainer that failingStudy's ranks use.
type engine struct {
	worker, device string
	environment    string // lines of the site file
}

// onCPUs and onGPUs return the two engines; GPUs, cuBLAS and NCCL are fakes.
func onCPUs(t *testing.T) engine { return engine{buildWorker(t), "cpu", ""} }

func onGPUs(t *testing.T) engine {
	library, err := gputest.BuildKernels(t.TempDir(), "libgpu-double.so", os.DirFS("../../launcher/native/train/gpu/ptx"))
	if err != nil {
		t.Fatal(err)
	}
	environment := fmt.Sprintf("CUDA_DOUBLE_GPUS = \"%d\"\n", failingRanks)
	for _, variable := range []string{"SCALEBENCH_CUDA", "SCALEBENCH_CUBLAS", "SCALEBENCH_NCCL"} {
		environment += fmt.Sprintf("%s = %q\n", variable, library)
	}
	return engine{program(t, "scalebench-worker-gpu"), "gpu", environment}
}

// startFailing starts failingStudy. The ranks wait for each other for at most
// timeout.
func startFailing(t *testing.T, e engine, timeout string) *localRun {
	t.Helper()
	study := failingStudy + fmt.Sprintf("[resources]\ndevice = %q\n", e.device)
	return startLocal(t, failingRanks, study, fmt.Sprintf("worker = %q\n[environment]\nSCALEBENCH_PEER_TIMEOUT = %q\n%s", e.worker, timeout, e.environment))
}

// startLocal starts a study and returns once all ranks train.
func startLocal(t testing.TB, ranks int, study, site string) *localRun {
	t.Helper()
	l := &localRun{dir: t.TempDir()}
	for name, content := range map[string]string{"study.toml": study, "site.toml": site} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.cmd = l.scalebench(t, "run", "study.toml", "--site", "site.toml", "--oversubscribe")
	l.cmd.Stdout, l.cmd.Stderr = &l.output, &l.output
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range append(l.ranks, l.watches...) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = l.cmd.Process.Kill()
	})
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if runs, _ := filepath.Glob(filepath.Join(l.dir, "runs", "*", "*", "events")); len(runs) == 1 {
			l.run = rundir.Folder(filepath.Dir(runs[0]))
			if l.training(t, ranks) {
				return l
			}
		}
		if time.Now().After(deadline) || !alive(l.cmd.Process.Pid) {
			t.Fatalf("no %d ranks that train: %s", ranks, &l.output)
		}
	}
}

// training reports whether every rank has recorded steps, and stores the process IDs.
func (l *localRun) training(t testing.TB, ranks int) bool {
	l.ranks, l.watches = nil, nil
	for rank := range ranks {
		steps := false
		for _, e := range l.events(t, "rank", rank) {
			if e.Start != nil {
				l.ranks = append(l.ranks, e.Start.PID)
			}
			steps = steps || e.Steps != nil
		}
		for _, e := range l.events(t, "supervisor", rank) {
			if e.Start != nil {
				l.watches = append(l.watches, e.Start.PID)
			}
		}
		if !steps || len(l.watches) != rank+1 {
			return false
		}
	}
	return true
}

func (l *localRun) events(t testing.TB, writer string, rank int) (list []metrics.Event) {
	t.Helper()
	path := l.run.EventFile(writer, rank, 0)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := metrics.NewReader(f, path, 0, 0); ; {
		e, err := r.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
}

// ended waits for the whole command and checks what must hold after any failure: its exit
// code reports it, no process or file remains, and status names the reason.
func (l *localRun) ended(t *testing.T, reason string) {
	t.Helper()
	err := l.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("scalebench run: %v, want exit code 3\n%s", err, &l.output)
	}
	for _, pid := range append(l.ranks, l.watches...) {
		for deadline := time.Now().Add(time.Minute); alive(pid); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("process %d is left behind", pid)
				break
			}
		}
	}
	out, err := l.scalebench(t, "status", "f").CombinedOutput()
	if err != nil {
		t.Errorf("status: %v", err)
	}
	if text := string(out); !strings.Contains(text, "failed") || !regexp.MustCompile(reason).MatchString(text) {
		t.Errorf("status says neither failed nor %s:\n%s", reason, text)
	}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(text, []byte(") Z "))
}

// said checks that these ranks ended with an error event and a stop event with the cause,
// in the same words after the collective that each was in (one rank may already be in the
// next). It returns when the last of them did, in seconds since the Unix epoch.
func (l *localRun) said(t *testing.T, cause string, ranks ...int) (at float64) {
	t.Helper()
	want, first := regexp.MustCompile(cause), ""
	for _, rank := range ranks {
		events := l.events(t, "rank", rank)
		n := len(events)
		if n < 2 || events[n-2].Error == nil || events[n-1].Stop == nil || events[n-1].Stop.Status != metrics.StopFailed {
			t.Errorf("the last events of rank %d are not an error and a failed stop: %+v", rank, events[max(0, n-2):])
			continue
		}
		words := events[n-2].Error.Message
		_, verdict, _ := strings.Cut(words, ": ")
		if first == "" {
			first = verdict
		}
		if stop := events[n-1].Stop.Cause; verdict != first || !want.MatchString(words) || !strings.Contains(stop, words) {
			t.Errorf("rank %d: error %q and stop %q, want %s in both; rank %d says %q", rank, words, stop, cause, ranks[0], first)
		}
		at = max(at, events[0].Start.Unix+events[n-1].Time)
	}
	return at
}

// If one rank fails, all ranks end within the deadline with an error that names that rank, and
// no process is left.
func TestLocalFailures(t *testing.T) { localFailures(t, onCPUs(t)) }

// The same for ranks that wait for their GPU or for NCCL.
func TestLocalFailuresOnGPUs(t *testing.T) { localFailures(t, onGPUs(t)) }

func localFailures(t *testing.T, e engine) {
	const timeout, slack = 10.0, 30.0 // seconds: enough for a busy machine, half of the patience that would pass for notice
	now := func() float64 { return float64(time.Now().UnixNano()) / 1e9 }

	t.Run("killed rank", func(t *testing.T) {
		l := startFailing(t, e, "60s")
		if info, err := os.Stat(l.run.Nonce()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the nonce is %v (%v), want mode 0600", info.Mode(), err)
		}
		begin := now()
		if err := syscall.Kill(l.ranks[2], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.ended(t, "rank 2 is gone|rank 2 was killed by SIGKILL; its last output was: rank 2 of 3")
		if at := l.said(t, "rank 2 is gone", 0, 1); at-begin > slack {
			t.Errorf("noticed after %.1f s", at-begin)
		}
	})
	t.Run("killed supervisor", func(t *testing.T) {
		l := startFailing(t, e, "60s")
		if err := syscall.Kill(l.watches[1], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.ended(t, "rank 1 is gone")
		l.said(t, "rank 1 is gone", 0, 2)
	})
	t.Run("stopped rank", func(t *testing.T) {
		l := startFailing(t, e, fmt.Sprint(timeout, "s"))
		begin := now()
		if err := syscall.Kill(l.ranks[1], syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		l.ended(t, "rank 1 has")
		if at := l.said(t, "rank 1 has been silent for", 0, 2); at-begin > timeout+slack || at-begin < timeout/3 {
			t.Errorf("gave up after %.1f s, with a deadline of %v s", at-begin, timeout)
		}
	})
	t.Run("lost connections", func(t *testing.T) {
		l := startFailing(t, e, "60s")
		begin := now()
		disconnect(t, l.ranks[1])
		l.ended(t, `rank \d is gone`)
		if at := l.said(t, "rank 1 is gone", 0, 2); at-begin > slack {
			t.Errorf("noticed after %.1f s", at-begin)
		}
		l.said(t, "rank 0 is gone", 1) // the connection between it and the others was cut
	})
}

// disconnect shuts down all TCP connections of another process, as a network failure would,
// while the process keeps running.
func disconnect(t *testing.T, pid int) {
	t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(process)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	shut := 0
	for _, e := range entries {
		var number int
		if target, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name())); !strings.HasPrefix(target, "socket:") {
			continue
		}
		if _, err := fmt.Sscan(e.Name(), &number); err != nil {
			t.Fatal(err)
		}
		own, err := unix.PidfdGetfd(process, number, 0)
		if err != nil {
			t.Fatal(err)
		}
		if domain, _ := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_DOMAIN); domain == unix.AF_INET || domain == unix.AF_INET6 {
			if unix.Shutdown(own, unix.SHUT_RDWR) == nil {
				shut++
			}
		}
		unix.Close(own)
	}
	if shut == 0 {
		t.Fatalf("process %d has no connection to lose", pid)
	}
}
