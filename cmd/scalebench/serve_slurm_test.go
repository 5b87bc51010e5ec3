//go:build slurm

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmServe runs replicas of a service on separate nodes with the load generator on
// one more, or with the load generator on separate cores of their node. Every request is
// answered.
func TestSlurmServe(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	b := newBench(t, c)
	b.write("site.toml", "[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\n")
	const study = `[study]
name = %q
[workload]
kind = "serve"
model = "random:mlp"
threads = [2]
duration = "1s"
client = %q
[resources]
time = "1h"
workers_per_node = %d
[sweep]
replicas = [1, 2]
`
	b.write("apart.toml", fmt.Sprintf(study, "apart", "node", 1))
	b.write("beside.toml", fmt.Sprintf(study, "beside", "cores", 2))
	for name, nodes := range map[string]map[int]int{"apart": {1: 2, 2: 3}, "beside": {1: 1, 2: 1}} {
		b.must(0, nil, "submit", name+".toml", "--site", "site.toml", "--wait", "--interval", "1s")
		var rows []struct {
			Workers int
			Errors  float64
		}
		b.must(0, &rows, "scaling", name, "-m", "errors", "--format", "json")
		if len(rows) != 2 || rows[0].Errors != 0 || rows[1].Errors != 0 {
			t.Errorf("%s: %+v", name, rows)
		}
		for _, a := range b.attempts(name) {
			text, err := os.ReadFile(a.Script())
			if err != nil || !strings.Contains(string(text), fmt.Sprintf("#SBATCH --nodes=%d\n", nodes[a.Point.Workers])) {
				t.Errorf("%s: %d replicas: %v; no job of %d nodes:\n%s", name, a.Point.Workers, err, nodes[a.Point.Workers], text)
			}
			said, err := os.ReadFile(a.Run.RankLog(0))
			at := 0
			for _, phase := range []string{"starting the replicas", "ready", "warming up, batch 1", "calibrating the client, batch 1", "warm", "measuring 2 in flight, batch 1 (1 of 1)", "drained; ending the replicas"} {
				next := strings.Index(string(said)[at:], "\n"+phase)
				if err != nil || next < 0 {
					t.Errorf("%s: %v; no %q in its place:\n%s", name, err, phase, said)
					break
				}
				at += next + len(phase)
			}
			log, err := os.ReadFile(a.Run.RankLog(a.Point.Ranks() - 1))
			if err != nil || !strings.Contains(string(log), fmt.Sprintf("# replica %d on port", a.Point.Workers-1)) {
				t.Errorf("%s: the last rank is not the last replica: %v\n%s", name, err, log)
			}
		}
	}
}

// TestSlurmServeCancelled: while a service is under load, status says so; cancelled,
// it ends with its servers.
func TestSlurmServeCancelled(t *testing.T) {
	t.Parallel()
	c := startCluster(t, slurmtest.Options{})
	b := newBench(t, c)
	b.write("long.toml", `[study]
name = "long"
[workload]
kind = "serve"
model = "random:mlp"
threads = [2]
duration = "40m"
[resources]
time = "1h"
workers_per_node = 1
[sweep]
replicas = [2]
`)
	b.must(0, nil, "submit", "long.toml")
	b.until("long", "under load", func(r statusRow) bool {
		return r.Status == metrics.Running && strings.Contains(r.Detail, "measuring 2 in flight, batch 1 (1 of 1)")
	})
	run := b.attempts("long")[0].Run.Path()
	servers := func() []int {
		return processes(func(environment, line string) bool {
			return strings.Contains(environment, "\x00SCALEBENCH_RUN="+run) && strings.Contains(line, "model-server")
		})
	}
	if list := servers(); len(list) != 2 {
		t.Errorf("processes %v are the servers, want 2", list)
	}
	b.must(0, nil, "cancel", "long")
	b.until("long", "cancelled", func(r statusRow) bool { return r.Status == metrics.Cancelled })
	for deadline := time.Now().Add(2 * time.Minute); len(servers()) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("servers are left: %v", servers())
		}
		time.Sleep(100 * time.Millisecond)
	}
}
