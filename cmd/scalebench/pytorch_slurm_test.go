//go:build slurm

package main

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/metrics"
	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// TestSlurmPyTorch runs DistributedDataParallel on 2 nodes with 2 ranks each. It compares one
// step with the first step of a single worker, which trains on rank 0's samples: if the ranks
// had not found each other, both would end with the same
// parameters.
func TestSlurmPyTorch(t *testing.T) {
	t.Parallel()
	b := newBench(t, startCluster(t, slurmtest.Options{Conf: "Licenses=turn:1"}))
	b.must(0, nil, "data", "synth", "data", "--train", "640", "--test", "101")
	b.write("site.toml", "python = \"/usr/bin/python3\"\n[[partitions]]\nname = \"main\"\nmax_nodes = 4\ncpus_per_node = 4\noptions = { licenses = \"turn\" }\n")
	study := func(name, workload, sweep string) string {
		b.write(name+".toml", "[study]\nname = \""+name+"\"\n[workload]\n"+workload+`
batch = 16
learning_rate = 0.02
scale_learning_rate = "none"
warmup_epochs = 0
[data]
path = "data"
[resources]
time = "1h"
workers_per_node = 2
[sweep]
framework = ["pytorch-ddp"]
`+sweep)
		b.must(0, nil, "submit", name+".toml", "--site", "site.toml", "--wait", "--interval", "1s")
		return name
	}
	step := b.ends(study("step", "model = \"mlp\"\nmax_steps = 1", "workers = [1, 4]\n"))
	if len(step) != 2 || step[0].start != step[1].start {
		t.Fatalf("runs %+v, want two that start from the same parameters", step)
	}
	if step[0].stop == step[1].stop {
		t.Error("a step of 4 workers is that of rank 0 alone")
	}
	long := b.ends(study("long", "model = \"cnn\"\nepochs = 3\ntargets = [0.15]", "workers = [4]\n"))
	if len(long) != 1 || long[0].steps != 30 || long[0].evaluations != 3 {
		t.Errorf("run %+v, want one of 30 steps and 3 evaluations", long)
	}
	var rows []struct {
		Workers    int
		Throughput *float64
	}
	b.must(0, nil, "collect", "long")
	if b.scaled(&rows, "long") && (len(rows) != 1 || rows[0].Workers != 4) {
		t.Errorf("scaling %+v, want a row of 4 workers", rows)
	}
}

// end describes how a run started and ended on all of its ranks.
type end struct {
	start, stop        string // hash of the parameters
	steps, evaluations int
}

// ends reads the runs of a study, in order of their points. Every rank must have run where the
// plan says, and all ranks must have equal parameters.
func (b *bench) ends(study string) (list []end) {
	t := b.t
	t.Helper()
	attempts, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(b.dir, "runs"), study))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range attempts {
		var ranks []end
		hosts := map[string]int{}
		files, err := a.Run.EventFiles()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			e, covers := end{}, 1
			for _, event := range eventsOf(t, f) {
				switch {
				case f.Writer == "supervisor":
					if i := event.Environment; i != nil && a.Point.Nodes > 1 && (i.Interface == nil || net.ParseIP(i.Interface.Address).IsLoopback()) {
						t.Errorf("%s: rank %d reaches the others by %+v", a.Record.ID, f.Rank, i.Interface)
					}
				case event.Start != nil:
					hosts[event.Start.Host]++
					covers = event.Start.Covers()
					if event.Start.WorldSize != a.Point.Workers || event.Start.Rank != f.Rank {
						t.Errorf("%s: %+v", a.Record.ID, event.Start)
					}
				case event.Train != nil:
					e.start = event.Train.ParameterSHA256
				case event.Evaluation != nil:
					e.evaluations++
				case event.Error != nil:
					t.Errorf("%s: rank %d: %+v", a.Record.ID, f.Rank, event.Error)
				case event.Stop != nil && event.Stop.Status == metrics.StopDone:
					e.stop, e.steps = event.Stop.ParameterSHA256, event.Stop.Steps
				}
			}
			if f.Writer == "rank" {
				for range covers { // a process that drives several has compared them
					ranks = append(ranks, e)
				}
			}
		}
		if len(ranks) != a.Point.Workers || len(hosts) != a.Point.Nodes {
			t.Fatalf("%s: %d ranks on %v, want %d on %d nodes", a.Record.ID, len(ranks), hosts, a.Point.Workers, a.Point.Nodes)
		}
		for rank, e := range ranks {
			if e.start != ranks[0].start || e.stop != ranks[0].stop || e.stop == "" || e.start == e.stop {
				t.Errorf("%s: rank %d has %+v, rank 0 %+v", a.Record.ID, rank, e, ranks[0])
			}
		}
		list = append(list, ranks[0])
	}
	return list
}

// eventsOf reads a file of events, all of which must be valid.
func eventsOf(t *testing.T, f metrics.EventFile) (list []metrics.Event) {
	t.Helper()
	in, err := os.Open(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for r := metrics.NewReader(in, f.Path, 0, 0); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
}
