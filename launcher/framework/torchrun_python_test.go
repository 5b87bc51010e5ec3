//go:build python

package framework

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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

// torchrun starts all ranks of the plan.
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

// The early warning ends all ranks regularly, and does not kill torchrun.
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

// torchrun's files are in the run folder: if it is killed, it leaves nothing in the node's /tmp. Here it kills
// itself at the end.
func TestTorchrunKilled(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"torch/distributed", "run", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const double = "import os, signal\n\ndef main(args):\n    assert args[0].startswith('--log_dir='), args\n    os.kill(os.getpid(), signal.SIGKILL)\n"
	for name, text := range map[string]string{"torch/__init__.py": "", "torch/distributed/__init__.py": "", "torch/distributed/run.py": double} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("python3", "programs/torchrun.py")
	c.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "TMPDIR="+filepath.Join(dir, "tmp"), RunVariable+"="+filepath.Join(dir, "run"))
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range map[string]int{"tmp": 0, "run": 1} {
		if entries, err := os.ReadDir(filepath.Join(dir, name)); err != nil || len(entries) != want {
			t.Errorf("%s has %d entries, want %d; %v", name, len(entries), want, err)
		}
	}
}
