//go:build python

package framework

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/world"
)

// BenchmarkPyTorchHooks times what scalebench adds to a step of pytorch-ddp,
// against the step of the smallest model and of ResNet-20: testdata/hooks.py.
// The aim is a share under 0.5 %.
func BenchmarkPyTorchHooks(b *testing.B) {
	port, err := world.FreePort(net.IPv4(127, 0, 0, 1))
	if err != nil {
		b.Fatal(err)
	}
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1", Port: port}
	var found struct {
		Record, Vote, Bucket float64 // s
		Models               map[string]struct{ Step, Hooks float64 }
	}
	for b.Loop() { // once; it has its own repetitions
		run := newRun(b)
		cmd := exec.Command(debianPython, "-B", "testdata/hooks.py", run.Path())
		cmd.Env = append(append(os.Environ(), w.Environ()...), "PYTHONPATH=programs", RunVariable+"="+run.Path())
		var complaint strings.Builder
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("%v\n%s", err, complaint.String())
		}
		if err := json.Unmarshal(out, &found); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(found.Record*1e6, "record-µs/step")
	b.ReportMetric(found.Vote*1e6, "µs/vote")
	b.ReportMetric(found.Bucket*1e6, "clock-µs/bucket")
	for name, m := range found.Models {
		b.ReportMetric(m.Step*1e6, name+"-µs/step")
		b.ReportMetric(m.Hooks*1e6, name+"-hooks-µs/step")
		b.ReportMetric(100*m.Hooks/m.Step, name+"-%")
	}
}
