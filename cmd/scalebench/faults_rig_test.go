//go:build slurm

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// A rig holds what all faults of a test share: the cluster and the programs.
type rig struct {
	*bench
	cluster *slurmtest.Cluster
	small   string // a file system of 64 MB that the nodes see; "" where none can be mounted
	took    map[string]time.Duration
	// stepped builds both programs with a clock that jumps, and returns their folder.
	stepped func() (string, error)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{took: map[string]time.Duration{}}
	if dir := t.TempDir(); os.Getuid() == 0 { // before the nodes get their own view of the mounts
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, smallSize); err != nil {
			t.Logf("run folders are made read-only, but not full: no small file system can be mounted: %v", err)
		} else {
			r.small = dir
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
		}
	}
	clocks := t.TempDir()
	r.stepped = sync.OnceValues(func() (string, error) { return clocks, buildStepped(clocks) })
	built := make(chan struct{})
	go func() { _, _ = r.stepped(); close(built) }() // the trials that need it report the error
	t.Cleanup(func() { <-built })
	r.cluster = startCluster(t, slurmtest.Options{Conf: "AccountingStorageEnforce=associations,limits,qos\nMinJobAge=10"})
	r.bench = newBench(t, r.cluster)
	if err := os.Chmod(r.dir, 0o755); err != nil { // for commands of an ordinary user
		t.Fatal(err)
	}

	// Studies without a fault measure the commands' usual durations and must succeed.
	for _, l := range []lane{onCluster, onThisHost} {
		calm := r.trial(fmt.Sprintf("calm%d", l), class{name: "no fault", lane: l}, rand.New(rand.NewPCG(0, 0)))
		for _, args := range [][]string{calm.command(), {"collect"}} {
			began := time.Now()
			if out, code := calm.run(args...); code != 0 {
				t.Fatalf("scalebench %v: exit code %d\n%s", args, code, out)
			}
			r.took[args[0]] = time.Since(began)
		}
		calm.settle(longest)
		newTally().add(t, calm)
	}
	r.took["retry"], r.took["forget"] = r.took["submit"], r.took["collect"]
	if t.Failed() {
		t.FailNow()
	}
	ctx, dismiss := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.administer(ctx); close(ended) }()
	t.Cleanup(func() { dismiss(); <-ended })
	return r
}

const smallSize = "size=64m"

// calm waits until Slurm has recovered from an earlier fault: no foreign jobs are left and
// every node is back.
func (r *rig) calm() error {
	if _, err := r.slurm("scancel", "--name=stranger"); err != nil {
		return err
	}
	return r.await("nodes that are all up", func() bool {
		states, err := r.nodes()
		for _, state := range states {
			if !slices.Contains([]string{"idle", "mix", "alloc"}, state) {
				return false
			}
		}
		return err == nil && len(states) > 0
	})
}

// nodes returns the states of the nodes.
func (r *rig) nodes() (map[string]string, error) {
	out, err := r.slurm("sinfo", "--noheader", "--Node", "--partition=main", "--format=%n %t")
	states := map[string]string{}
	for line := range strings.Lines(out) {
		node, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		states[node] = state
	}
	return states, err
}

// administer acts as the cluster's administrator until the test ends: it resumes nodes that
// Slurm drained because of a fault, and releases jobs that Slurm held after a failed
// launch.
func (r *rig) administer(ctx context.Context) {
	for ctx.Err() == nil {
		states, _ := r.nodes()
		for node, state := range states {
			if strings.HasPrefix(state, "drain") || strings.HasPrefix(state, "drng") {
				_, _ = r.slurm("scontrol", "update", "NodeName="+node, "State=RESUME")
			}
		}
		held, _ := r.slurm("squeue", "--noheader", "--states=PD", "--format=%i %r")
		for line := range strings.Lines(held) {
			if id, reason, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasSuffix(reason, "requeued held") {
				_, _ = r.slurm("scontrol", "release", id)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

func (r *rig) await(what string, done func() bool) error { return awaitFor(longest, what, done) }

func awaitFor(limit time.Duration, what string, done func() bool) error {
	for end := time.Now().Add(limit); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%s: none within %v", what, limit)
		}
	}
	return nil
}

// slurm runs one of Slurm's commands without the trial's wrapper.
func (r *rig) slurm(name string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(r.cluster.Dir, "bin", name), args...)
	cmd.Env = r.cluster.Env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}
