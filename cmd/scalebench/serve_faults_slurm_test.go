//go:build slurm

package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/notation"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// A serveSlurmFault is a fault of the cluster while a service is under load, and how the run may end.
type serveSlurmFault struct {
	class string
	// replica selects the last replica's node instead of the load generator's.
	replica bool
	act     func(c *slurmtest.Cluster, node, run string) error
	boots   bool // the node has to be brought back
	ends    []metrics.Status
	says    string // text in the cause
}

var serveSlurmFaults = []serveSlurmFault{
	{class: "node lost", replica: true, boots: true, ends: []metrics.Status{metrics.NodeFailed, metrics.Failed},
		act: func(c *slurmtest.Cluster, node, _ string) error { return c.CrashNode(node) }},
	// Its connections stay open, but it sends nothing.
	{class: "node off the network", replica: true, boots: true, ends: []metrics.Status{metrics.NodeFailed},
		act: func(c *slurmtest.Cluster, node, _ string) error { return c.SilenceNode(node) }},
	// Its kernel accepts requests, but no process reads them.
	{class: "server stops answering", replica: true, ends: []metrics.Status{metrics.Done},
		act: func(_ *slurmtest.Cluster, _, run string) error {
			return signalRank(run, "model-server", "", syscall.SIGSTOP)
		}},
	{class: "client killed", ends: []metrics.Status{metrics.Failed}, says: "killed",
		act: func(_ *slurmtest.Cluster, _, run string) error { return signalRank(run, "serve", "0", syscall.SIGKILL) }},
}

// signalRank signals one process of a run that has this argument and rank ("": any).
func signalRank(run, argument, rank string, signal syscall.Signal) error {
	for _, p := range serviceProcesses(run) {
		if len(p.arguments) > 1 && p.arguments[1] == argument && (rank == "" || p.rank == rank) {
			return syscall.Kill(p.pid, signal)
		}
	}
	return fmt.Errorf("no process %s of rank %q", argument, rank)
}

// TestSlurmServeFaults loses nodes, connections and processes of services under load
// in jobs: each run ends in a stated cause, or with the errors counted; no process is
// left; and no load has a rate if its replicas were gone before its end.
func TestSlurmServeFaults(t *testing.T) {
	t.Parallel()
	n := *serveFaultCount / 5 // a trial takes longer on a cluster
	if *serveFaultCount == 0 {
		n = len(serveSlurmFaults)
	}
	seed := *faultSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	c := startCluster(t, slurmtest.Options{Nodes: 3})
	b := newBench(t, c)
	b.write("site.toml", "")
	for i := range n {
		f := serveSlurmFaults[i%len(serveSlurmFaults)]
		t.Run(fmt.Sprintf("%s-%d", f.class, i/len(serveSlurmFaults)), func(t *testing.T) {
			b := *b
			b.t = t
			fireAtServiceJob(&b, c, f, fmt.Sprint("s", i), rand.New(rand.NewPCG(seed, uint64(i))))
		})
	}
}

func fireAtServiceJob(b *bench, c *slurmtest.Cluster, f serveSlurmFault, study string, r *rand.Rand) {
	b.t.Helper()
	duration := "10m" // the fault comes before the load ends
	if f.ends[0] == metrics.Done {
		duration = "15s" // on a busy machine, the fault comes seconds after the load's begin is seen
	}
	b.write(study+".toml", fmt.Sprintf(`[study]
name = %q
[workload]
kind = "serve"
model = "random:mlp"
threads = [%d]
duration = %q
timeout = "300ms"
[resources]
time = "20m"
workers_per_node = 1
[sweep]
replicas = [2]
`, study, 1+r.IntN(4), duration))
	b.must(0, nil, "submit", study+".toml", "--site", "site.toml")
	if r := b.until(study, "under load", func(r statusRow) bool { return r.Status.Terminal() || strings.Contains(r.Detail, " in flight") }); r.Status.Terminal() {
		b.t.Fatalf("%s before any fault: %s", r.Status, r.Detail)
	}
	a := b.attempts(study)[0]
	on := b.slurm(c, "squeue", "--noheader", "--format=%N", "--jobs="+*b.until(study, "a job", func(r statusRow) bool { return r.Job != nil }).Job)
	nodes, err := notation.ExpandHosts(strings.TrimSpace(on))
	if err != nil || len(nodes) != 3 {
		b.t.Fatalf("the job is on %q: %v", on, err)
	}
	node := nodes[0]
	if f.replica {
		node = nodes[2]
	}
	time.Sleep(time.Duration(r.Float64() * float64(time.Second)))
	if err := f.act(c, node, a.Run.Path()); err != nil {
		b.t.Fatal(err)
	}
	ended := b.until(study, "over", func(r statusRow) bool { return r.Status.Terminal() })
	if f.boots {
		if err := c.BootNode(node); err != nil {
			b.t.Fatal(err)
		}
	}
	done := ended.Status == metrics.Done
	if !slices.Contains(f.ends, ended.Status) || !strings.Contains(ended.Detail, f.says) || !done && ended.Detail == "" {
		b.t.Errorf("ended %s (%s), want one of %v", ended.Status, ended.Detail, f.ends)
	}
	if left := processesOf(a.Run.Path(), longest); len(left) > 0 {
		b.t.Errorf("left behind: %q", left)
	}
	var shown struct {
		Loads []servedLoad `json:"by_batch_rate_threads"`
	}
	b.must(0, nil, "collect")
	b.must(0, &shown, "show", ended.Run, "--format", "json")
	b.t.Logf("%s: %s: %s: %+v", node, ended.Status, ended.Detail, shown.Loads)
	if done != (len(shown.Loads) == 1) || done && !(shown.Loads[0].Errors > 0) {
		b.t.Errorf("loads %+v of a run that is %s", shown.Loads, ended.Status)
	}
	// It takes a while until other nodes can reach a restarted node.
	for deadline := time.Now().Add(longest); ; time.Sleep(200 * time.Millisecond) {
		srun := exec.Command(filepath.Join(c.Dir, "bin", "srun"), "--immediate=10", "--nodes=3", "--ntasks=3", "true")
		srun.Env = b.env
		if out, err := srun.CombinedOutput(); err == nil {
			return
		} else if time.Now().After(deadline) {
			b.t.Fatalf("the nodes do not come back: %v: %s", err, out)
		}
	}
}
