//go:build slurm && serving

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestServingInProcess runs a real model without a server, through the library of a Python
// environment, and serves it through a worker with that library. No request gets a wrong
// answer. The model's own time is measured, or refused because this machine is too busy, but
// never because the library is missing.
func TestServingInProcess(t *testing.T) {
	python, err := interpreter("mlserver")
	if err != nil {
		t.Fatal(err)
	}
	model, err := exec.Command("../../launcher/framework/locks/onnx-model.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	worker := filepath.Join(dir, "worker")
	build := exec.Command("go", "build", "-tags", "onnxruntime", "-o", worker, module+"/cmd/scalebench-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("site.toml", "worker = \""+worker+"\"\n[pythons]\nmlserver = \""+python+"\"\nonnxruntime = \""+python+"\"\n")
	const workload = "shape = { x = [3, 48, 192] }\nbatch = [1, 4]\nthreads = [2]\nduration = \"4s\"\ntimeout = \"1m\"\nstartup = \"10m\"\nkind = \"serve\"\n[sweep]\nreplicas = [1]\n"
	own := "[workload]\nmodel = \"" + strings.TrimSpace(string(model)) + "\"\n"
	write("alone.toml", "[study]\nname = \"alone\"\n"+own+"target = \"process\"\n"+workload+"framework = [\"onnxruntime\"]\n")
	write("served.toml", "[study]\nname = \"served\"\n"+own+workload+"framework = [\"mlserver\"]\n")
	command := func(arguments ...string) []byte {
		t.Helper()
		cmd := exec.Command(program(t, "scalebench"), append([]string{"--db", filepath.Join(dir, "db")}, arguments...)...)
		cmd.Dir = dir
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("scalebench %q: %v\n%s%s", arguments, err, out, said.String())
		}
		return out
	}
	for _, name := range []string{"alone", "served"} {
		command("run", name+".toml", "--site", "site.toml", "--oversubscribe")
		var rows []struct {
			Batch  *float64
			Errors *float64
		}
		if err := json.Unmarshal(command("scaling", name, "-m", "errors", "--format", "json"), &rows); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2 {
			t.Errorf("%s: %+v", name, rows)
		}
		for _, r := range rows {
			if r.Errors == nil || *r.Errors != 0 {
				t.Errorf("%s: errors %v", name, r.Errors)
			}
		}
		point := map[string]string{"alone": "alone/onnxruntime-w1", "served": "served/mlserver-w1"}[name]
		shown := string(command("show", point, "--format", "json"))
		if strings.Contains(shown, "no model_p50") || !strings.Contains(shown, "version.onnxruntime") {
			t.Errorf("%s: %s", name, shown)
		}
		if name == "served" && !strings.Contains(shown, "model_p50") && !strings.Contains(shown, "the model alone, batch") {
			t.Errorf("nothing is said of the model alone: %s", shown)
		}
	}
}
