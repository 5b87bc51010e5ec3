//go:build python

package framework

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// startTorchrun starts a point's two nodes, both on this machine, as the
// supervisors of two nodes do.
func startTorchrun(t *testing.T, p study.Point) *ddp {
	t.Helper()
	p.Resources.Launch = "torchrun"
	p.Nodes, p.WorkersPerNode = 2, p.Workers/2
	d := prepare(t, p)
	for node := range p.Nodes {
		w := world.World{Rank: node, LocalSize: 1, Size: p.Nodes, Node: node, Nodes: p.Nodes, Address: "127.0.0.1", Port: d.port, JobID: "17"}
		w = w.PerNode(p.WorkersPerNode)
		d.startOne(p, w, world.WithoutRank)
	}
	return d
}

// torchrun starts all ranks, and they are what the plan has.
func TestTorchrun(t *testing.T) {
	p := point(t, 4)
	d := startTorchrun(t, p)
	if codes := d.codes(); codes[0] != 0 || codes[1] != 0 {
		t.Errorf("exit codes %v", codes)
	}
	events := d.events(p.Workers)
	first := only(t, events[0], stopOf)
	for rank, list := range events {
		start := only(t, list, func(e metrics.Event) *metrics.Start { return e.Start })
		stop := only(t, list, stopOf)
		if start.WorldSize != 4 || start.Rank != rank || start.LocalRank != rank%2 || stop.Status != metrics.StopDone || *stop != *first || stop.Steps != 10 {
			t.Errorf("rank %d: %+v, %+v; rank 0 ends with %+v", rank, start, stop, first)
		}
	}
	log, err := os.ReadFile(d.run.RankLog(0))
	if err != nil || !strings.Contains(string(log), "[default0]:rank ") {
		t.Errorf("the node's log has no line of its first rank: %v\n%s", err, log)
	}
}

// The early warning ends all ranks in order, and torchrun does not die of it.
func TestTorchrunInterrupted(t *testing.T) {
	p := point(t, 4)
	p.Workload.Train.Epochs = 1_000_000
	d := startTorchrun(t, p)
	d.awaitEvaluation()
	if err := syscall.Kill(-d.ranks[1].Process.Pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	codes := d.codes()
	steps := -1
	for rank, list := range d.events(p.Workers) {
		stop := only(t, list, stopOf)
		if steps < 0 {
			steps = stop.Steps
		}
		if stop.Status != metrics.StopInterrupted || stop.Steps != steps {
			t.Errorf("rank %d: %+v, rank 0 made %d steps", rank, stop, steps)
		}
	}
	for node, code := range codes {
		if code != 1 {
			t.Errorf("torchrun of node %d ended with %d, want 1", node, code)
		}
	}
}
