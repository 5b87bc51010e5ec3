//go:build slurm

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// packingStudy has 1, 2 and 4 workers on 1, 1 and 2 nodes, twice each.
func packingStudy(name, packing string) string {
	return fmt.Sprintf(`
[study]
name = %q
repeats = 2
[workload]
model = "mlp"
batch = 16
max_steps = 40
warmup_epochs = 0
learning_rate = 0.01
[data]
kind = "synthetic"
train_samples = 2048
test_samples = 128
[resources]
time = "1h"
workers_per_node = 2
[policy]
packing = %q
[sweep]
workers = [1, 2, 4]
`, name, packing)
}

// jobsOf checks that every run of a study is done and trained once, and returns the number of
// runs per job.
func jobsOf(t *testing.T, b *bench, name string) map[string]int {
	t.Helper()
	var rows []statusRow
	b.must(0, &rows, "status", name, "--format", "json")
	if len(rows) != 6 {
		t.Errorf("%s: %d attempts, want 6", name, len(rows))
	}
	jobs := map[string]int{}
	for _, r := range rows {
		if r.Status != metrics.Done || r.Job == nil {
			t.Errorf("%s: %+v, want done, with its job", name, r)
			continue
		}
		array, _, _ := strings.Cut(*r.Job, "_")
		jobs[array]++
	}
	attempts, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(b.dir, "runs"), name))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attempts {
		files, err := a.Run.EventFiles()
		if err != nil {
			t.Fatal(err)
		}
		ranks := 0
		for _, f := range files {
			if f.Writer == "rank" {
				ranks++
			}
		}
		if ranks != a.Point.Workers {
			t.Errorf("%s: %d ranks wrote events, want %d", a.Record.ID, ranks, a.Point.Workers)
		}
	}
	return jobs
}

// TestSlurmPacking runs a study as job arrays, within one allocation, and inside an existing
// allocation.
func TestSlurmPacking(t *testing.T) {
	t.Parallel()
	b := newBench(t, startCluster(t, slurmtest.Options{}))
	b.write("array.toml", packingStudy("array", "array"))
	b.must(0, nil, "submit", "array.toml", "--wait", "--interval", "1s")
	// Three shapes (1 and 2 tasks on a node, 2 nodes), an array each.
	if jobs := jobsOf(t, b, "array"); len(jobs) != 3 {
		t.Errorf("arrays %v, want 3 of 2 runs", jobs)
	}

	b.write("allocation.toml", packingStudy("allocation", "allocation"))
	b.must(0, nil, "submit", "allocation.toml", "--wait", "--interval", "1s")
	if jobs := jobsOf(t, b, "allocation"); len(jobs) != 1 {
		t.Errorf("jobs %v, want one for all", jobs)
	}
	out, complaint, code := b.run("scaling", "allocation")
	if !strings.Contains(complaint, "share the allocation of job") {
		t.Errorf("repeats that share an allocation are not marked (exit code %d):\n%s%s", code, out, complaint)
	}

	b.write("inside.toml", packingStudy("inside", "job"))
	salloc := exec.Command("salloc", "--nodes=2", "--ntasks-per-node=2", filepath.Join(b.dir, "bin", "scalebench"), "run", "inside.toml")
	salloc.Dir, salloc.Env = b.dir, b.env
	salloc.Path = lookUp(t, b.env, "salloc")
	if text, err := salloc.CombinedOutput(); err != nil {
		t.Fatalf("salloc: %v\n%s", err, text)
	}
	if jobs := jobsOf(t, b, "inside"); len(jobs) != 1 {
		t.Errorf("jobs %v, want the allocation's alone", jobs)
	}
}

// lookUp finds a program on the PATH of an environment that is not ours.
func lookUp(t *testing.T, env []string, name string) string {
	t.Helper()
	for i := len(env) - 1; i >= 0; i-- {
		path, ok := strings.CutPrefix(env[i], "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if file := filepath.Join(dir, name); executable(file) {
				return file
			}
		}
		break
	}
	t.Fatalf("%s is not on the cluster's PATH", name)
	return ""
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}
