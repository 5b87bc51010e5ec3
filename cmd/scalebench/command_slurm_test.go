//go:build slurm

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmCommand runs a user's program on 2 nodes with 2 ranks each. Its ranks are started by
// srun, by one torchrun per node that the program starts itself, and by launch = "torchrun".
// Another program is unaware of scalebench, and its results are read from rank 0's output.
func TestSlurmCommand(t *testing.T) {
	// It runs alone: four processes of PyTorch that meet over gloo must be scheduled at the
	// same time.
	b := newBench(t, startCluster(t, slurmtest.Options{Conf: "Licenses=turn:1"}))
	b.write("site.toml", "python = \"/usr/bin/python3\"\n[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\noptions = { licenses = \"turn\" }\n")
	program, err := filepath.Abs("../../examples/command/train.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]string{
		"rank": `start = "rank"
run = ["{python}", "PROGRAM", "--batch", "{batch}", "--epochs", "{epochs}"]`,
		"node": `start = "node"
environment = { OMP_NUM_THREADS = "1" }
run = ["{python}", "-m", "torch.distributed.run", "--redirects", "1", "--tee", "1",
       "--nnodes", "{nodes}", "--nproc_per_node", "{workers_per_node}", "--rdzv_backend", "c10d",
       "--rdzv_id", "own", "--rdzv_endpoint", "{master_addr}:{master_port}",
       "PROGRAM", "--batch", "{batch}", "--epochs", "{epochs}"]`,
		"torchrun": `run = ["{python}", "PROGRAM", "--batch", "{batch}", "--epochs", "{epochs}"]`,
	} {
		launch := "srun"
		if name == "torchrun" {
			launch = name
		}
		b.write(name+".toml", fmt.Sprintf(`[study]
name = %q
[command]
%s
[workload]
batch = 320
epochs = 2
[resources]
time = "1h"
workers_per_node = 2
launch = %q
[sweep]
framework = ["command"]
workers = [4]
`, name, strings.ReplaceAll(run, "PROGRAM", program), launch))
		b.must(0, nil, "submit", name+".toml", "--site", "site.toml", "--wait", "--interval", "1s")
		// An epoch of 12,800 samples has 10 steps of 4 · 320.
		b.reported(name, 20)
	}

	printing, err := filepath.Abs("../../examples/command-log/train.py")
	if err != nil {
		t.Fatal(err)
	}
	b.write("log.toml", fmt.Sprintf(`[study]
name = "log"
[command]
run = ["{python}", %q, "--batch", "{batch}", "--epochs", "{epochs}"]
[[extract]]
name = "throughput"
pattern = '^epoch \d+ \| (?P<value>[0-9.]+) samples/s'
unit = "samples/s"
per = "epoch"
reduce = "max"
[workload]
batch = 320
epochs = 3
[resources]
time = "1h"
workers_per_node = 2
[sweep]
framework = ["command"]
workers = [4]
`, printing))
	b.must(0, nil, "submit", "log.toml", "--site", "site.toml", "--wait", "--interval", "1s")
	b.stated("log")
}

// stated checks the one run of a study whose throughput comes from rank 0's log: it is the
// largest value printed, the file covers all 4 ranks, and a note describes the figure.
func (b *bench) stated(study string) {
	t := b.t
	t.Helper()
	attempts, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(b.dir, "runs"), study))
	if err != nil || len(attempts) != 1 {
		t.Fatalf("attempts %v, %v", attempts, err)
	}
	text, err := os.ReadFile(attempts[0].Run.RankLog(0))
	if err != nil {
		t.Fatal(err)
	}
	largest, lines := 0.0, 0
	for _, line := range strings.Split(string(text), "\n") {
		var epoch int
		var rate float64
		if n, _ := fmt.Sscanf(line, "epoch %d | %f samples/s", &epoch, &rate); n == 2 {
			largest, lines = max(largest, rate), lines+1
		}
	}
	b.must(0, nil, "collect", study)
	var shown struct {
		Result struct {
			World      int
			Throughput float64
			Skew       *float64
			Warnings   []string
		}
	}
	b.must(0, &shown, "show", attempts[0].Record.ID, "--format", "json")
	r := shown.Result
	if lines != 3 || r.World != 4 || r.Throughput != largest || r.Skew != nil || !strings.Contains(strings.Join(r.Warnings, "\n"), "not measured here") {
		t.Errorf("%d lines, the largest %g; shown %+v", lines, largest, r)
	}
}

// reported checks the only run of a study: each of its 4 ranks must have run where the plan
// says, and recorded this number of steps.
func (b *bench) reported(study string, steps int) {
	t := b.t
	t.Helper()
	attempts, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(b.dir, "runs"), study))
	if err != nil || len(attempts) != 1 {
		t.Fatalf("attempts %v, %v", attempts, err)
	}
	files, err := attempts[0].Run.EventFiles()
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[string][]int{}
	for _, f := range files {
		events := eventsOf(t, f)
		start, stop := events[0].Start, events[len(events)-1].Stop
		if f.Writer != "rank" {
			continue
		}
		hosts[start.Host] = append(hosts[start.Host], f.Rank)
		if start.Rank != f.Rank || start.WorldSize != 4 || start.LocalRank != f.Rank%2 || stop == nil || stop.Status != metrics.StopDone || stop.Steps != steps {
			t.Errorf("%s: rank %d: %+v, %+v", study, f.Rank, start, stop)
		}
		evaluations := 0
		for _, e := range events {
			if e.Evaluation != nil {
				evaluations++
			}
		}
		if want := map[bool]int{true: 2}[f.Rank == 0]; evaluations != want {
			t.Errorf("%s: %d evaluations of rank %d, want %d", study, evaluations, f.Rank, want)
		}
	}
	pairs := 0
	for _, ranks := range hosts {
		if slices.Equal(ranks, []int{0, 1}) || slices.Equal(ranks, []int{2, 3}) {
			pairs++
		}
	}
	if pairs != 2 {
		t.Errorf("%s: ranks by host %v, want two pairs", study, hosts)
	}
	b.must(0, nil, "collect", study)
	var shown struct {
		Result struct {
			World, Steps int
			Samples      int64
		}
		Environments []struct{ Ranks []int }
	}
	b.must(0, &shown, "show", attempts[0].Record.ID, "--format", "json")
	ranks := 0
	for _, e := range shown.Environments {
		ranks += len(e.Ranks)
	}
	if r := shown.Result; r.World != 4 || r.Steps != steps || r.Samples != int64(steps)*4*320 || ranks != 4 {
		t.Errorf("%s: %+v", study, shown)
	}
}
