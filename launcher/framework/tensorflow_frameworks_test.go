//go:build python && frameworks

package framework

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
	"github.com/scalebench/scalebench/metrics"
)

// launchTF starts a point of a framework that has a separate environment on this machine, with the user's files
// next to the programs.
func launchTF(t *testing.T, name string, p study.Point, size int, files map[string]string) *ddp {
	t.Helper()
	p.Framework = name
	d := prepare(t, p)
	d.own(files)
	if name == "keras-mirrored" { // one process for all ranks
		d.startOne(p, world.World{Size: size, LocalSize: size, Nodes: 1, Address: "127.0.0.1", Port: d.port},
			func(environ []string) []string { return environ })
		return d
	}
	d.begin(p, size)
	return d
}

// A process that finds no other ranks stops, because independent copies of a training would
// look like a perfect speedup.
func TestFrameworksRefuseCopies(t *testing.T) {
	for name, says := range map[string]string{
		"mxnet":                  "Horovod has rank 0 of 1, local rank 0 here; the plan has rank 0 of 2",
		"pytorch-horovod":        "Horovod has rank 0 of 1, local rank 0 here; the plan has rank 0 of 2",
		"tensorflow-horovod":     "Horovod has rank 0 of 1, local rank 0 here; the plan has rank 0 of 2",
		"keras-horovod":          "Horovod has rank 0 of 1, local rank 0 here; the plan has rank 0 of 2",
		"tensorflow-multiworker": "TensorFlow has replica 0 of 1 here; the plan has rank 0 of 2",
	} {
		t.Run(name, func(t *testing.T) {
			d := launchTF(t, name, point(t, 2), 1, nil)
			codes := d.codes()
			list := d.events(1)[0]
			e := only(t, list, func(e metrics.Event) *metrics.Error { return e.Error })
			if stop := only(t, list, stopOf); e.Where != "rendezvous" || !strings.Contains(e.Message, says) || stop.Status != metrics.StopFailed || codes[0] == 0 {
				t.Errorf("%+v, %+v, exit code %d; want %q", e, stop, codes[0], says)
			}
		})
	}
}

// A signal to one rank ends all of them after the same step, in order.
func TestFrameworksInterrupted(t *testing.T) {
	for _, name := range []string{"pytorch-horovod", "tensorflow-horovod", "keras-horovod", "tensorflow-multiworker", "keras-mirrored", "mxnet"} {
		t.Run(name, func(t *testing.T) {
			p := point(t, 2)
			p.Workload.Train.Epochs = 1_000_000
			d := launchTF(t, name, p, 2, nil)
			awaitEvaluation(t, d)
			last := d.ranks[len(d.ranks)-1]
			if err := last.Process.Signal(syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			codes := d.codes()
			events := d.events(len(d.ranks))
			first := only(t, events[0], stopOf)
			for rank, list := range events {
				stop := only(t, list, stopOf)
				if stop.Status != metrics.StopInterrupted || stop.Cause == "" || codes[rank] == 0 || stop.Steps != first.Steps || stop.ParameterSHA256 != first.ParameterSHA256 {
					t.Errorf("rank %d: %+v, exit code %d; rank 0 %+v", rank, stop, codes[rank], first)
				}
			}
		})
	}
}

// When a rank dies the others end with an error; they do not wait.
func TestFrameworksRankKilled(t *testing.T) {
	for _, name := range []string{"pytorch-horovod", "tensorflow-horovod", "keras-horovod", "tensorflow-multiworker", "mxnet"} {
		t.Run(name, func(t *testing.T) {
			p := point(t, 2)
			p.Workload.Train.Epochs = 1_000_000
			d := launchTF(t, name, p, 2, nil)
			awaitEvaluation(t, d)
			if err := d.ranks[1].Process.Kill(); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			codes := d.codes()
			if codes[0] == 0 || time.Since(begin) > 3*time.Minute {
				t.Errorf("after %v rank 0 ends with exit code %d", time.Since(begin), codes[0])
			}
		})
	}
}

// awaitEvaluation returns when rank 0 has evaluated.
func awaitEvaluation(t *testing.T, d *ddp) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 5*time.Minute; time.Sleep(100 * time.Millisecond) {
		if text, err := os.ReadFile(d.run.EventFile("rank", 0, 0)); err == nil && strings.Contains(string(text), `"evaluation"`) {
			return
		}
	}
	t.Error("no evaluation after five minutes")
}
