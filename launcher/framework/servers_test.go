package framework

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/scalebench/scalebench/launcher/rundir"
	"github.com/scalebench/scalebench/launcher/study"
)

// A model server gets the study's model and CPUs and runs a program from the run folder. The supervisor starts
// scalebench's program, which starts that one.
func TestServerStart(t *testing.T) {
	p := study.Point{Workers: 2}
	p.Workload.Kind, p.Workload.Serve.Model, p.Workload.Serve.Batch = "serve", "/m/a.onnx", []int{1, 16, 8}
	p.Workload.Serve.Target = study.HTTP
	p.Resources.Device, p.Resources.CPUsPerWorker = "cpu", 3
	for name, f := range map[string]Framework{"triton": triton, "mlserver": mlserver, "kserve": kserve} {
		s := Rank{Point: p, Run: rundir.Folder("/runs/s/r"), Python: "/env/bin/python", Worker: "/bin/worker", Listen: "10.0.0.7", Ports: Ports{HTTP: 4711, GRPC: 4712}}
		program := "serve_" + name + ".py"
		want := []string{"/env/bin/python", "-B", "-u", filepath.Join(s.Run.Programs(), program), "--model", "/m/a.onnx", "--name", "model", "--listen", "10.0.0.7:4711", "--grpc-port", "0", "--threads", "3", "--batch", "16"}
		if diff := cmp.Diff(want, f.Command(s)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if _, err := fs.Stat(f.Programs, program); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{"/bin/worker", "serve"}, f.Started(s)); diff != "" {
			t.Errorf("%s is started by %s", name, diff)
		}
		if wrong := f.Check(p); len(wrong) > 0 {
			t.Errorf("%s refuses %v", name, wrong)
		}
	}
}
