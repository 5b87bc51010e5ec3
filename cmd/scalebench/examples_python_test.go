//go:build python

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test runs examples/command-torchrun as its first lines say, with one epoch instead of six:
// Debian's torchrun starts the ranks, and each of them reports.
func TestExampleCommandTorchrun(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	scalebench := program(t, "scalebench")
	program(t, "scalebench-worker") // which scalebench finds next to itself
	cmd := exec.Command(scalebench, "run", "examples/command-torchrun/study.toml", "epochs=1", "--oversubscribe")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "SCALEBENCH_DB="+filepath.Join(dir, "h.db"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "2 done") {
		t.Fatalf("%v\n%s", err, out)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "examples/command-torchrun/runs/command-torchrun/command-w2-*/rank-00000.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil || !strings.Contains(string(text), "--no_python") || !strings.Contains(string(text), "[default0]:epoch 1: ") {
		t.Errorf("the ranks were not started by torchrun: %v\n%s", err, text)
	}
}
