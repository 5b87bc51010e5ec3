//go:build python

package framework

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
	"github.com/scalebench/scalebench/launcher/world"
)

// BenchmarkPyTorchHooks measures with testdata/hooks.py the time that scalebench adds to a step
// of pytorch-ddp, as a share of the step of the smallest model and of ResNet-20.
// The goal is less than 0.5 %.
func BenchmarkPyTorchHooks(b *testing.B) { benchmarkHooks(b, "pytorch-ddp") }

// benchmarkHooks reports the results of testdata/hooks.py for a framework.
func benchmarkHooks(b *testing.B, name string) {
	f, err := Find(name)
	if err != nil {
		b.Fatal(err)
	}
	s := Rank{Point: study.Point{Framework: name, Resources: study.Resources{Device: "cpu", CPUsPerWorker: 1}}, Python: interpreterOf(b, name)}
	command := f.Command(s)
	module := strings.TrimSuffix(filepath.Base(command[len(command)-1]), ".py")
	for _, m := range []struct{ model, steps string }{{"cnn", "300"}, {"resnet20", "60"}} {
		b.Run(m.model, func(b *testing.B) {
			var found struct{ Step, Hooks, Vote, Clock float64 } // s
			for b.Loop() {                                       // runs once; the program repeats the measurement
				port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
				if err != nil {
					b.Fatal(err)
				}
				s.World = world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1", Port: port}
				cmd := exec.Command(command[0], "-B", "testdata/hooks.py", module, m.model, m.steps)
				cmd.Env = append(append(os.Environ(), s.World.Environ()...), "PYTHONPATH=programs", RunVariable+"="+newRun(b).Path())
				if f.Environment != nil {
					cmd.Env = append(cmd.Env, f.Environment(s)...)
				}
				var complaint strings.Builder
				cmd.Stderr = &complaint
				out, err := cmd.Output()
				if err != nil {
					b.Fatalf("%v\n%s", err, complaint.String())
				}
				if err := json.Unmarshal(out, &found); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(found.Vote*1e6, "µs/vote")
			b.ReportMetric(found.Clock*1e6, "clock-µs/reduction")
			b.ReportMetric(found.Step*1e6, "µs/step")
			b.ReportMetric(found.Hooks*1e6, "hooks-µs/step")
			b.ReportMetric(100*found.Hooks/found.Step, "%")
		})
	}
}
