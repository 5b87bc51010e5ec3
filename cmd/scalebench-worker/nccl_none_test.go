//go:build !gpu

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/framework"
	"github.com/scalebench/scalebench/launcher/worker"
	"github.com/scalebench/scalebench/launcher/world"
)

// The default worker is built without GPU support; its error names the build that has it.
func TestDefaultWorkerRefusesGPUs(t *testing.T) {
	dir := runFolder(t, 1)
	p, err := worker.LoadPoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	p.Resources.Device = "gpu"
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Point(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(os.Args[0], "train")
	w := world.World{Size: 1, LocalSize: 1, Nodes: 1, Address: "127.0.0.1", Port: 1}
	c.Env = append(append(os.Environ(), w.Environ()...), "SCALEBENCH_TEST_AS_WORKER=1", framework.RunVariable+"="+dir.Path())
	said, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "`make worker-gpu` builds one that trains on GPUs") {
		t.Errorf("%v: %s", err, said)
	}
	for _, e := range events(t, dir, "rank") {
		if e.Stop != nil && !strings.Contains(e.Stop.Cause, "make worker-gpu") {
			t.Errorf("%+v", e.Stop)
		}
	}
}
