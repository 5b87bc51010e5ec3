package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/study"
)

// The default worker is refused if a GPU is requested; its build tags identify it. Files that are not Go
// programs are not judged.
func TestWorkerForGPUs(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := func(name, tags string) string {
		path := filepath.Join(dir, name)
		if out, err := exec.Command("go", "build", "-tags", tags, "-o", path, source).CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		return path
	}
	ordinary, both, script := build("ordinary", "onnxruntime"), build("both", "onnxruntime,gpu"), filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec worker \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		framework, kind, device, worker string
		refused                         bool
	}{
		{"native", "train", "gpu", ordinary, true},
		{"native", "collective", "gpu", ordinary, true},
		{"native", "train", "gpu", both, false},
		{"native", "train", "gpu", script, false},
		{"native", "train", "cpu", ordinary, false},
		{"pytorch-ddp", "train", "gpu", ordinary, false},
	} {
		site := study.DefaultSite()
		site.Worker = test.worker
		c := newChecker(t.Context(), &study.Study{}, site, "")
		c.worker(study.Point{Framework: test.framework, Workload: study.Workload{Kind: test.kind}, Resources: study.Resources{Device: test.device}}, site)
		if refused := len(c.problems) == 1 && strings.Contains(c.problems[0].Message, "make worker-gpu"); refused != test.refused || len(c.problems) > 1 {
			t.Errorf("%+v: %v", test, c.problems)
		}
	}
}
