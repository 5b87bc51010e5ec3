//go:build slurm

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/notation"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// smallStudy returns a study with short runs; more is appended to it.
func smallStudy(name string, steps int, more string) string {
	return fmt.Sprintf(`
[study]
name = %q
[workload]
model = "mlp"
batch = 16
max_steps = %d
[data]
kind = "synthetic"
train_samples = 256
test_samples = 32
[resources]
time = "1h"
exclusive = false
`, name, steps) + more
}

// slurm runs one of Slurm's commands.
func (b *bench) slurm(c *slurmtest.Cluster, name string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command(filepath.Join(c.Dir, "bin", name), args...)
	cmd.Env = b.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// attempts returns a study's attempts on disk, sorted by the name of the run folder.
func (b *bench) attempts(study string) []*launcher.Attempt {
	b.t.Helper()
	list, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(b.dir, "runs"), study))
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// until waits for a row of status that ok accepts.
func (b *bench) until(study, what string, ok func(statusRow) bool) statusRow {
	b.t.Helper()
	var rows []statusRow
	for deadline := time.Now().Add(longest); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		rows = nil
		b.must(0, &rows, "status", study, "--format", "json")
		if i := slices.IndexFunc(rows, ok); i >= 0 {
			return rows[i]
		}
	}
	b.t.Fatalf("no run was %s within %v: %+v", what, longest, rows)
	return statusRow{}
}

// TestSlurmPolicy tests limits, cancellation and concurrent commands on one
// cluster.
func TestSlurmPolicy(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{Conf: "AccountingStorageEnforce=associations,limits,qos"})
	b := newBench(t, c)
	t.Run("limit", func(t *testing.T) { submitLimit(t, b, c) })
	t.Run("cancel", func(t *testing.T) { cancelOnSlurm(t, b, c) })
	t.Run("at once", func(t *testing.T) { submitAtOnce(t, b, c) })
	t.Run("preempted", func(t *testing.T) { preempted(t, b, c) })
}

func setMaxSubmit(b *bench, c *slurmtest.Cluster, n int) {
	me, err := exec.Command("id", "-un").Output()
	if err != nil {
		b.t.Fatal(err)
	}
	b.slurm(c, "sacctmgr", "-i", "modify", "user", strings.TrimSpace(string(me)), "set", fmt.Sprint("MaxSubmitJobs=", n))
	limits := regexp.MustCompile(`MaxSubmitJobs=(\d*)`)
	for deadline := time.Now().Add(longest); ; time.Sleep(100 * time.Millisecond) { // until slurmctld has heard of it
		most := -1
		for _, m := range limits.FindAllStringSubmatch(b.slurm(c, "scontrol", "show", "assoc_mgr", "flags=assoc"), -1) {
			if limit, err := strconv.Atoi(m[1]); err == nil {
				most = limit
			}
		}
		if most == n {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("slurmctld's MaxSubmitJobs is %d after %v, want %d", most, longest, n)
		}
	}
}

// If the cluster accepts no more jobs, nothing has failed: submit says how many are left,
// and --wait continues to the end with one attempt each.
func submitLimit(t *testing.T, b *bench, c *slurmtest.Cluster) {
	b.t = t
	b.write("limit.toml", smallStudy("limit", 20, "[sweep]\nworkers = [1]\nlearning_rate = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]\n"))
	setMaxSubmit(b, c, 2)
	defer setMaxSubmit(b, c, -1)
	// None of the first two may end meanwhile.
	b.slurm(c, "scontrol", "update", "nodename=node[1-4]", "state=DRAIN", "reason=test")
	out, complaint, code := b.run("submit", "limit.toml")
	if code != 0 || !strings.Contains(complaint, "4 runs left to submit: ") || !strings.Contains(complaint, "AssocMaxSubmitJobLimit; sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)") {
		t.Errorf("exit code %d\n%s%s", code, out, complaint)
	}
	waits := b.until("limit", "refused", func(r statusRow) bool { return strings.Contains(r.Detail, "AssocMaxSubmitJobLimit") })
	if waits.Status != metrics.Planned || !strings.Contains(waits.Detail, "`submit` tries again") {
		t.Errorf("a run that the limit refused: %+v", waits)
	}
	b.slurm(c, "scontrol", "update", "nodename=node[1-4]", "state=RESUME")
	b.must(0, nil, "submit", "limit.toml", "--wait", "--interval", "1s")
	attempts := b.attempts("limit")
	if len(attempts) != 6 {
		t.Errorf("%d attempts, want 6", len(attempts))
	}
	for _, a := range attempts {
		if a.Verdict == nil || a.Verdict.Status != metrics.Done || a.Number != 1 {
			t.Errorf("%s: %+v", a.Record.ID, a.Verdict)
		}
	}
}

func cancelOnSlurm(t *testing.T, b *bench, c *slurmtest.Cluster) {
	b.t = t
	b.write("cancel.toml", smallStudy("cancel", 1_000_000, "[sweep]\nworkers = [1, 2]\n"))
	b.must(0, nil, "submit", "cancel.toml")
	first := b.until("cancel", "running", func(r statusRow) bool { return r.Status == metrics.Running && r.Epoch != nil })
	b.must(0, nil, "cancel", first.Run)
	b.until("cancel", "cancelled", func(r statusRow) bool { return r.Run == first.Run && r.Status == metrics.Cancelled })
	b.must(0, nil, "cancel", "--all")
	b.until("cancel", "cancelled too", func(r statusRow) bool { return r.Run != first.Run && r.Status == metrics.Cancelled })
	b.emptied(c)
	// Both were asked to end, and their records say so; or one had not started a program
	// yet.
	for _, a := range b.attempts("cancel") {
		text, err := os.ReadFile(a.Run.Exit(0))
		log, _ := os.ReadFile(a.Run.JobLog())
		if err != nil || !bytes.Contains(text, []byte(`"signal":"TERM"`)) && !bytes.Contains(log, []byte("cancelled before the programs were started")) {
			t.Errorf("%s left no record of its end by SIGTERM: %s %v", a.Record.ID, text, err)
		}
	}
}

// Two commands at once submit each of thirty points once.
func submitAtOnce(t *testing.T, b *bench, c *slurmtest.Cluster) {
	b.t = t
	var rates []string
	for i := range 30 {
		rates = append(rates, fmt.Sprintf("%.3f", 0.001*float64(i+1)))
	}
	b.write("both.toml", smallStudy("both", 2, "[sweep]\nworkers = [1]\nlearning_rate = ["+strings.Join(rates, ", ")+"]\n"))
	b.slurm(c, "scontrol", "update", "nodename=node[1-4]", "state=DRAIN", "reason=test")
	defer b.slurm(c, "scontrol", "update", "nodename=node[1-4]", "state=RESUME")
	var all sync.WaitGroup
	lines := make([]int, 2)
	for i := range lines {
		all.Go(func() {
			out, complaint, code := b.run("submit", "both.toml", "--format", "csv")
			if code != 0 {
				t.Errorf("submit: exit code %d\n%s", code, complaint)
			}
			lines[i] = strings.Count(out, "both/")
		})
	}
	all.Wait()
	if lines[0]+lines[1] < 30 {
		t.Errorf("submitted %v, want 30 together", lines)
	}
	seen := map[string]int{}
	for _, a := range b.attempts("both") {
		seen[a.Point.ID]++
		if a.Submission == nil {
			t.Errorf("%s was not handed over", a.Record.ID)
		}
	}
	names := strings.Fields(b.slurm(c, "squeue", "--noheader", "--format=%j"))
	slices.Sort(names)
	if len(seen) != 30 || len(b.attempts("both")) != 30 || len(names) != 30 || len(slices.Compact(names)) != 30 {
		t.Errorf("%d points, %d attempts, %d jobs; want 30 of each", len(seen), len(b.attempts("both")), len(names))
	}
	b.must(0, nil, "cancel", "both")
}

// A run that was preempted by a job of higher priority is retried.
func preempted(t *testing.T, b *bench, c *slurmtest.Cluster) {
	b.t = t
	b.write("site.toml", "[[partitions]]\nname = \"scavenge\"\n")
	attempts := b.disturb(c, "driven-out", 1, "", func(string) error {
		b.slurm(c, "sbatch", "--partition=main", "--nodes=4", "--exclusive", "--time=5", "--output=/dev/null", "--wrap=sleep 3")
		return nil
	})
	if len(attempts) != 2 || attempts[0].Verdict.Status != metrics.Preempted || attempts[1].Verdict.Status != metrics.Done {
		for _, a := range attempts {
			t.Errorf("%s: %+v", a.Record.ID, a.Verdict)
		}
	}
}

// TestSlurmRetry lets a node crash during a run; submit --wait retries the run on the other
// nodes.
func TestSlurmRetry(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{Nodes: 3})
	b := newBench(t, c)
	b.write("site.toml", "")
	var node string
	// The last of the job's two nodes crashes; the retry excludes only that one.
	attempts := b.disturb(c, "crash", 2, "[policy.retries]\nnode_failed = 1\n", func(on string) error {
		nodes, err := notation.ExpandHosts(on)
		if err != nil || len(nodes) != 2 {
			return fmt.Errorf("the job runs on %q, want two nodes (%v)", on, err)
		}
		node = nodes[1]
		return c.SilenceNode(node)
	})
	if len(attempts) != 2 {
		t.Fatalf("%d attempts, want 2; the first: %+v, %+v", len(attempts), attempts[0].Verdict, attempts[0].Verdict.Job)
	}
	first, second := attempts[0], attempts[1]
	if first.Verdict.Status != metrics.NodeFailed || second.Verdict.Status != metrics.Done {
		t.Errorf("ended %s (%s) and %s (%s)", first.Verdict.Status, first.Verdict.Detail, second.Verdict.Status, second.Verdict.Detail)
	}
	if !slices.Equal(second.Record.Exclude, []string{node}) || slices.Contains(second.Verdict.Job.Nodes, node) {
		t.Errorf("%s crashed; the second attempt kept away from %q and ran on %q", node, second.Record.Exclude, second.Verdict.Job.Nodes)
	}
}

// TestSlurmRequeue lets a node crash during a run that Slurm requeues, as the study requests;
// it stays one attempt.
func TestSlurmRequeue(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{Nodes: 2})
	b := newBench(t, c)
	b.write("site.toml", "")
	attempts := b.disturb(c, "requeue", 1, "[policy]\nrequeue = true\n", c.CrashNode)
	if len(attempts) != 1 || attempts[0].Verdict.Status != metrics.Done {
		t.Fatalf("%d attempts, want 1, done: %+v", len(attempts), attempts[0].Verdict)
	}
	if restarts, err := attempts[0].Run.Restarts(); err != nil || !slices.Equal(restarts, []int{0, 1}) {
		t.Errorf("incarnations %v, want 0 and 1 (%v)", restarts, err)
	}
}

// ranksTrain waits until this number of a study's ranks have recorded steps.
func (b *bench) ranksTrain(study string, ranks int) {
	b.t.Helper()
	for deadline := time.Now().Add(longest); ; time.Sleep(100 * time.Millisecond) {
		training := 0
		files, _ := filepath.Glob(filepath.Join(b.dir, "runs", study, "*", "events", "rank-*"))
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(`"steps":{`)) {
				training++
			}
		}
		if training >= ranks {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%d of %d ranks train after %v", training, ranks, longest)
		}
	}
}

// disturb runs `submit --wait` for a study of one run on the given number of nodes, calls harm
// once the ranks train, and returns the attempts after the command has succeeded.
func (b *bench) disturb(c *slurmtest.Cluster, study string, nodes int, policy string, harm func(node string) error) []*launcher.Attempt {
	b.t.Helper()
	b.write(study+".toml", smallStudy(study, 2000/(nodes*nodes*nodes), fmt.Sprintf("[sweep]\nworkers = [%d]\nworkers_per_node = [1]\n", nodes)+policy))
	var out bytes.Buffer
	cmd := exec.Command(filepath.Join(b.dir, "bin", "scalebench"), "submit", study+".toml", "--site", "site.toml", "--wait", "--interval", "1s")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.dir, b.env, &out, &out
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	for deadline := time.Now().Add(longest); len(b.attempts(study)) == 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatal("nothing was submitted")
		}
	}
	// Wait until all ranks train. If a node disappears earlier, srun reports an ordinary
	// failure, and an incarnation that has not begun leaves no trace.
	b.ranksTrain(study, nodes)
	if err := harm(strings.TrimSpace(b.slurm(c, "squeue", "--noheader", "--states=RUNNING", "--format=%N"))); err != nil {
		b.t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			b.t.Errorf("submit --wait: %v\n%s", err, out.String())
		}
	case <-time.After(6 * longest):
		b.t.Fatalf("submit --wait has not ended:\n%s", out.String())
	}
	b.t.Log(out.String())
	return b.attempts(study)
}
