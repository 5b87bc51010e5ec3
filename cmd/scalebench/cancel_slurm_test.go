//go:build slurm

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmCancel cancels a run, a study and everything, with every packing, while they
// wait and while they run. Each run ends as cancelled, the queue is empty, and only retry
// starts it again. The program has printed its whole result, and exits with 0 when it is
// stopped.
func TestSlurmCancel(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	for _, packing := range []string{"job", "array", "allocation"} {
		for _, state := range []metrics.Status{metrics.Pending, metrics.Running} {
			t.Run(fmt.Sprint(packing, " ", state), func(t *testing.T) {
				b := newBench(t, c)
				to := map[metrics.Status]string{metrics.Pending: "DRAIN", metrics.Running: "RESUME"}[state]
				b.slurm(c, "scontrol", "update", "nodename=node[1-4]", "state="+to, "reason=test")
				for _, scope := range []string{"run", "study", "all"} {
					b.write(scope+".toml", fmt.Sprintf(`
[study]
name = %q
repeats = 3
[command]
run = ["sh", "-c", "echo score 1; trap 'exit 0' TERM; sleep 1000 & wait"]
[[extract]]
name = "score"
pattern = '^score (?P<value>[0-9]+)$'
per = "run"
[resources]
time = "1h"
exclusive = false
[policy]
packing = %q
retries = { lost = 3, failed = 3, node_failed = 3 }
[sweep]
framework = ["command"]
workers = [1]
`, scope, packing))
				}
				for _, scope := range []string{"run", "study"} {
					cancelScope(t, b, c, packing, scope, state)
				}
				for _, study := range []string{"all", "run"} {
					b.must(0, nil, map[string]string{"all": "submit", "run": "retry"}[study], study+".toml")
				}
				b.until("all", string(state), func(r statusRow) bool { return r.Status == state })
				b.must(0, nil, "cancel", "--all")
				b.emptied(c)
				for _, study := range []string{"all", "run"} {
					b.allCancelled(study)
				}
			})
		}
	}
}

// cancelScope submits a study and waits, cancels one run or the whole study, and checks the
// state of each run.
func cancelScope(t *testing.T, b *bench, c *slurmtest.Cluster, packing, scope string, state metrics.Status) {
	b.must(0, nil, "submit", scope+".toml")
	var out bytes.Buffer
	wait := exec.Command(filepath.Join(b.dir, "bin", "scalebench"), "submit", scope+".toml", "--wait", "--interval", "1s")
	wait.Dir, wait.Env, wait.Stdout, wait.Stderr = b.dir, b.env, &out, &out
	if err := wait.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- wait.Wait() }()
	first := b.until(scope, string(state), func(r statusRow) bool { return r.Status == state })
	if state == metrics.Running { // its program has started, so that the cancellation ends it
		log := filepath.Join(b.dir, "runs", first.Run, "rank-00000.log")
		for deadline := time.Now().Add(longest); ; time.Sleep(100 * time.Millisecond) {
			if _, err := os.Stat(log); err == nil {
				break
			} else if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	var endings []struct {
		Run   string
		Asked bool
		What  string
	}
	if scope == "run" {
		b.must(0, &endings, "cancel", first.Run, "--format", "json")
	} else {
		b.must(0, &endings, "cancel", scope, "--format", "json")
	}
	if want := map[string]int{"run": 1, "study": 3}[scope]; len(endings) != want {
		t.Errorf("%d endings, want %d: %+v", len(endings), want, endings)
	}
	for _, e := range endings {
		if !e.Asked {
			t.Errorf("cancel %s: %+v", scope, e)
		}
	}
	b.until(scope, "cancelled", func(r statusRow) bool { return r.Run == first.Run && r.Status == metrics.Cancelled })
	if scope == "run" { // the others continue
		var rows []statusRow
		b.must(0, &rows, "status", scope, "--format", "json")
		for _, r := range rows {
			if r.Run != first.Run && r.Status.Terminal() {
				t.Errorf("%s is %s, and was not cancelled", r.Run, r.Status)
			}
		}
		b.must(0, nil, "cancel", scope)
	}
	b.emptied(c)
	select {
	case <-ended: // the command has ended
	case <-time.After(longest):
		t.Fatalf("submit --wait goes on:\n%s", out.String())
	}
	b.allCancelled(scope)
	if _, said, code := b.run("submit", scope+".toml"); code != 0 || !strings.Contains(said, "left alone: 3 cancelled runs; `scalebench retry "+scope+"` submits them again") {
		t.Errorf("submit: exit code %d\n%s", code, said)
	}
	b.allCancelled(scope)
}

// emptied waits until no job of the user's is in the queue.
func (b *bench) emptied(c *slurmtest.Cluster) {
	b.t.Helper()
	for deadline := time.Now().Add(longest); ; time.Sleep(100 * time.Millisecond) {
		left := strings.TrimSpace(b.slurm(c, "squeue", "--noheader", "--states=PENDING,RUNNING,COMPLETING"))
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("still in the queue:\n%s", left)
		}
	}
}

// allCancelled waits until every attempt of a study has ended, and checks that the last attempt
// of each repeat was cancelled, and that only retry started another one.
func (b *bench) allCancelled(study string) {
	b.t.Helper()
	var rows []statusRow
	for deadline := time.Now().Add(longest); ; time.Sleep(300 * time.Millisecond) {
		rows = nil
		b.must(0, &rows, "status", study, "--format", "json")
		if !slices.ContainsFunc(rows, func(r statusRow) bool { return !r.Status.Terminal() }) || time.Now().After(deadline) {
			break
		}
	}
	retried := slices.ContainsFunc(rows, func(r statusRow) bool { return strings.HasSuffix(r.Run, "-a2") })
	if want := map[bool]int{false: 3, true: 6}[retried && study == "run"]; len(rows) != want {
		b.t.Errorf("%s: %d attempts, want %d", study, len(rows), want)
	}
	for _, r := range rows {
		if r.Status != metrics.Cancelled {
			b.t.Errorf("%s is %s, want cancelled", r.Run, r.Status)
		}
	}
}

// If a user ends a waiting run with scancel, also as a task of a job array, it counts as
// cancelled, but submit starts it again: only `scalebench cancel` prevents that.
func TestSlurmCancelByHand(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	b := newBench(t, c)
	b.slurm(c, "scontrol", "update", "nodename=node[1-4]", "state=DRAIN", "reason=test")
	for _, packing := range []string{"job", "array"} {
		b.write(packing+".toml", fmt.Sprintf(`
[study]
name = %q
repeats = 4
[command]
run = ["true"]
extract = ["time"]
[policy]
packing = %q
[sweep]
framework = ["command"]
workers = [1]
`, packing, packing))
		b.must(0, nil, "submit", packing+".toml")
		victim := b.until(packing, "pending", func(r statusRow) bool { return r.Status == metrics.Pending && strings.Contains(r.Run, "-r3-") })
		var rows []struct {
			Run, Job string
			Status   metrics.Status
		}
		b.must(0, &rows, "status", packing, "--format", "json")
		for _, r := range rows {
			if r.Run == victim.Run {
				b.slurm(c, "scancel", r.Job)
			}
		}
		b.until(packing, "cancelled", func(r statusRow) bool { return r.Run == victim.Run && r.Status == metrics.Cancelled })
		var again []struct{ Run string }
		b.must(0, &again, "submit", packing+".toml", "--format", "json")
		if want := strings.Replace(victim.Run, "-a1", "-a2", 1); len(again) != 1 || again[0].Run != want {
			t.Errorf("%s: submit began %+v, want %s", packing, again, want)
		}
		b.must(0, nil, "cancel", packing)
	}
}
