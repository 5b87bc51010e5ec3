//go:build slurm

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/metrics/sharedfs/nfstest"
)

// host imitates a separate host: another host name, another boot, other processes (many
// with the same IDs), another clock, and a separate client of a file system that has the
// runs folder and the database at the same path.
type host struct {
	*desk
	name   string
	client *nfstest.Client
}

// up starts process 1 of a host, with the folder from mounted at the path at. stop ends it and
// all other processes of the host.
func up(name, bootID, from, at string) (init int, stop func(), err error) {
	text := make([]byte, 16)
	_, _ = rand.Read(text) // never fails
	if err := os.WriteFile(bootID, fmt.Appendf(nil, "%x-%x-%x-%x-%x\n", text[:4], text[4:6], text[6:8], text[8:10], text[10:]), 0o444); err != nil {
		return 0, nil, err
	}
	cmd := exec.Command("sh", "-ec", `mount --make-rprivate / && hostname "$1" && mount -t proc proc /proc &&
mount --bind "$2" /proc/sys/kernel/random/boot_id && mount --bind "$3" "$4" && echo up && exec sleep 1000000`, "sh", name, bootID, from, at)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	// Pdeathsig is the death of the thread that started it, and a goroutine that was
	// locked to its thread and never unlocked takes that with it: this one is kept.
	started, over := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-over
	}()
	if err := <-started; err != nil {
		close(over)
		return 0, nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		close(over)
	}
	if n, _ := out.Read(make([]byte, 3)); n != 3 {
		stop()
		return 0, nil, fmt.Errorf("host %s does not come up: %s", name, &said)
	}
	return cmd.Process.Pid, stop, nil
}

// enter returns a command prefix that runs a program on the host with this process 1.
func enter(init int, dir string) []string {
	return []string{"nsenter", "--target", strconv.Itoa(init), "--uts", "--pid", "--mount", "--wdns=" + dir}
}

// boot starts a host that sees the client's file system at the path shared.
func boot(t *testing.T, name, clock, bin, shared string, client *nfstest.Client) *host {
	t.Helper()
	h := &host{name: name, client: client}
	h.desk = newDesk(t, filepath.Join(bin, "scalebench-worker"), filepath.Join(shared, "runs"), filepath.Join(shared, "scalebench.db"))
	h.env = append(h.env, steppedClock+"="+clock, "PATH="+bin+":"+os.Getenv("PATH"))
	init, stop, err := up(name, filepath.Join(t.TempDir(), "boot_id"), client.Path, shared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	h.under = enter(init, h.dir)
	return h
}

// decoy starts a process with this ID on the host, which runs until the host ends.
func (h *host) decoy(pid int) {
	h.t.Helper()
	// Entering the host also creates processes, so repeat this until the sleep gets the ID.
	const script = `for i in $(seq 200); do
	echo $(($1 - 1)) >/proc/sys/kernel/ns_last_pid; sleep 1000000 >/dev/null 2>&1 & [ $! = $1 ] && exit; kill $!; wait $!; done; exit 1`
	line := append(h.under, "sh", "-c", script, "sh", strconv.Itoa(pid))
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		h.t.Fatalf("no process %d on %s: %v\n%s", pid, h.name, err, out)
	}
}

// hosts boots two hosts with these clocks and returns them and their shared folder.
func hosts(t *testing.T, bin string, seed uint64, clocks [2]string) (a, b *host, folder string) {
	t.Helper()
	shared := t.TempDir()
	folder = t.TempDir()
	plan := nfstest.Plan{Lost: 0.1, Stale: 0.05, Memory: 100 * time.Millisecond, Delay: 2 * time.Millisecond}
	var list [2]*host
	for i, name := range []string{"login1", "login2"} {
		plan.Seed = 2*seed + uint64(i)
		list[i] = boot(t, name, clocks[i], bin, shared, nfstest.Mount(t, folder, plan))
	}
	a, b = list[0], list[1]
	b.dir, b.slurm = a.dir, a.slurm // one home, one cluster
	b.env = append(b.env, "HOME="+a.dir, "SCALEBENCH_FAKE_SLURM="+a.slurm)
	b.under[len(b.under)-1] = "--wdns=" + a.dir
	return a, b, folder
}

// both runs a command on both hosts at the same time; both must end with exit code 0.
func both(t *testing.T, a, b *host, args ...string) {
	t.Helper()
	var all sync.WaitGroup
	for _, h := range []*host{a, b} {
		all.Go(func() {
			if out, code := h.run(args...); code != 0 || strings.Contains(out, "this is a bug") {
				t.Errorf("%s: %v: exit code %d\n%s", h.name, args, code, out)
			}
		})
	}
	all.Wait()
}

// Hosts whose clocks differ by hours or drift apart, and whose processes have the same IDs,
// run, submit, cancel and collect one study concurrently. One dies with the lock, and its
// process IDs are reused. Every run is made once and stored once, with what its ranks
// wrote, and no command waits forever.
func TestTwoHosts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a host its own name, processes and mounts")
	}
	bin := t.TempDir()
	if err := buildStepped(bin); err != nil {
		t.Fatal(err)
	}
	for seed, clocks := range [][2]string{
		{"0:7200", "0:-7200"},
		{"", "0:-300,300:-60,600:-60,900:-60,1200:600,1500:-60"}, // drifts, and is set once
		{"0:-86400,700:172800", "0:2592000"},
	} {
		t.Run(clocks[0]+" "+clocks[1], func(t *testing.T) {
			t.Run("run", func(t *testing.T) {
				a, b, folder := hosts(t, bin, uint64(seed), clocks)
				both(t, a, b, "run", "study.toml", "--site", "site.toml", "--oversubscribe")
				settled(t, a, b, folder)
			})
			t.Run("submit", func(t *testing.T) {
				a, b, folder := hosts(t, bin, uint64(seed), clocks)
				both(t, a, b, "submit", "study.toml", "--site", "site.toml")
				jobs, err := os.ReadFile(filepath.Join(a.slurm, "jobs"))
				if n := strings.Count(string(jobs), "\n"); n != 2 || err != nil {
					t.Errorf("sbatch accepted %d jobs, want 2 (%v):\n%s", n, err, jobs)
				}
				both(t, a, b, "status", "s")
				both(t, a, b, "cancel", "s")
				if err := os.WriteFile(filepath.Join(a.slurm, "states"), []byte("* CANCELLED 0:15\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				both(t, a, b, "collect", "s")
				both(t, a, b, "submit", "study.toml", "--site", "site.toml") // a cancelled run stays cancelled
				attempts, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(folder, "runs"), "s"))
				if err != nil || len(attempts) != 2 {
					t.Errorf("%d attempts, %v; want 2", len(attempts), err)
				}
				for _, a := range attempts {
					if a.Verdict == nil || a.Verdict.Status != metrics.Cancelled {
						t.Errorf("%s: %+v; want cancelled", a.Record.ID, a.Verdict)
					}
				}
			})
			t.Run("killed", func(t *testing.T) { killedHolder(t, bin, uint64(seed), clocks) })
		})
	}
}

// killedHolder kills a command that holds the study's lock and drives a run. Afterwards, other
// processes on both hosts have its process ID. The lock and the run expire by the file
// server's clock, which the test advances by hours.
func killedHolder(t *testing.T, bin string, seed uint64, clocks [2]string) {
	a, b, folder := hosts(t, bin, seed, clocks)
	study := rundir.OpenStudy(filepath.Join(folder, "runs"), "s")
	ctx, cancel := context.WithTimeout(t.Context(), longest)
	defer cancel()
	// Its ranks are stopped, so that the run is under way when the command dies.
	cmd := a.command(ctx, "run", "study.toml", "--site", "slow.toml", "--oversubscribe")
	slow := fmt.Sprintf("worker = %q\n[[partitions]]\nname = \"main\"\nmax_nodes = 4\n", filepath.Join(a.dir, "slow"))
	if err := errors.Join(os.WriteFile(filepath.Join(a.dir, "slow.toml"), []byte(slow), 0o644),
		os.WriteFile(filepath.Join(a.dir, "slow"), fmt.Appendf(nil, "#!/bin/sh\ncase $1 in run) sleep 1000000;; esac\nexec %q \"$@\"\n", filepath.Join(bin, "scalebench-worker")), 0o755)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var driven launcher.Record
	err := awaitFor(longest, "an attempt", func() bool {
		attempts, _ := launcher.Attempts(study)
		if len(attempts) > 0 {
			driven = attempts[0].Record
		}
		return driven.PID != 0
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	// A live holder keeps its lock independent of the hosts' clocks, and both hosts see
	// that its run is in progress.
	for _, h := range []*host{a, b} {
		text, code := h.run("status", "s", "--format", "json")
		var rows []struct{ Status metrics.Status }
		if err := json.Unmarshal([]byte(text), &rows); err != nil || code != 0 || len(rows) == 0 || rows[0].Status.Terminal() {
			t.Errorf("%s, while it is under way: exit code %d, %v\n%s", h.name, code, err, text)
		}
	}
	kill := append(slices.Clone(a.under), "sh", "-c", "kill -KILL -1") // all but process 1 and itself
	if text, err := exec.CommandContext(ctx, kill[0], kill[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	_ = cmd.Wait() // it was killed
	a.decoy(driven.PID)
	b.decoy(driven.PID)
	then := time.Now().Add(-2 * time.Hour)
	lease := study.Lease()
	if err := os.WriteFile(lease, fmt.Appendf(nil, `{"host":"login1","pid":%d,"space":%q,"since":"2026-01-01T00:00:00Z","nonce":"KILLED"}`+"\n", driven.PID, driven.PIDSpace), 0o600); err != nil {
		t.Fatal(err)
	}
	beats, err := filepath.Glob(filepath.Join(study.Path(), "*", "heartbeat"))
	if err != nil || len(beats) == 0 {
		t.Fatalf("no heartbeat: %v", err)
	}
	for _, path := range append(beats, lease) {
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	both(t, b, a, "run", "study.toml", "--site", "site.toml", "--oversubscribe")
	settled(t, a, b, folder)
}

// settled collects from both hosts at the same time and checks the results.
func settled(t *testing.T, a, b *host, folder string) {
	t.Helper()
	both(t, a, b, "collect", "s")
	study := rundir.OpenStudy(filepath.Join(folder, "runs"), "s")
	for _, h := range []*host{a, b} {
		if wrong := h.wholeStudy(study); len(wrong) > 0 {
			t.Errorf("seen from %s:\n  %s\n%s", h.name, strings.Join(wrong, "\n  "), logs(filepath.Join(folder, "runs")))
		}
	}
	attempts, err := launcher.Attempts(study)
	if err != nil {
		t.Error(err)
	}
	f := &findings{}
	for _, at := range attempts {
		if at.Verdict != nil && at.Verdict.Status.Good() {
			f.rightFigures(b.run, at)
		}
	}
	if all := append(f.lost, f.wrong...); len(all) > 0 {
		t.Errorf("figures:\n  %s", strings.Join(all, "\n  "))
	}
}
