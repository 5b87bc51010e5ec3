package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A new backend takes one package and one line: `submit` runs a study with a scheduler
// that lives in the command's own memory, selected by the site file.
func TestNewBackend(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	text, err := os.ReadFile("testdata/backend/memory.go.txt")
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(root, "cmd/scalebench/main.go")
	program, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	const after = "\t_ \"github.com/scalebench/scalebench/launcher/backend/local\"\n"
	line := after + "\t_ \"github.com/scalebench/scalebench/launcher/backend/memory\"\n"
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(root, "launcher/backend/memory/memory.go"): write("memory.go", string(text)),
		target: write("main.go", strings.Replace(string(program), after, line, 1)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", write("overlay.json", string(overlay)), "-o", dir+"/", "./cmd/scalebench")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	worker := write("scalebench-worker", "#!/bin/sh\nexit 1\n") // the scheduler starts no process
	if err := os.Chmod(worker, 0o700); err != nil {
		t.Fatal(err)
	}
	scalebench := func(code int, arguments ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "scalebench"), arguments...)
		// Without Slurm's commands nothing can ask Slurm.
		cmd.Dir, cmd.Env = dir, []string{"PATH=", "HOME=" + dir, "SCALEBENCH_DB=" + filepath.Join(dir, "db"), "SCALEBENCH_RUNS=" + filepath.Join(dir, "runs")}
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("scalebench %s: exit code %d, want %d\n%s", strings.Join(arguments, " "), got, code, out)
		}
		return string(out)
	}
	has := func(out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("does not say %q:\n%s", w, out)
			}
		}
	}
	write("site.toml", "backend = \"memory\"\n[[partitions]]\nname = \"main\"\n")
	write("wrong.toml", "backend = \"pbs\"\n")
	write("study.toml", "[study]\nname = \"s\"\nrepeats = 2\n[workload]\nmodel = \"resnet20\"\nmax_steps = 200\nbatch = 32\n[data]\nkind = \"synthetic\"\n[sweep]\nworkers = [1, 2]\n")
	has(scalebench(2, "submit", "study.toml", "--site", "wrong.toml"), `wrong.toml:1: backend: "pbs" is not a scheduler; valid: memory, slurm`)
	has(scalebench(0, "check", "study.toml", "--site", "site.toml"), "4 runs")
	has(scalebench(2, "render", "study.toml", "--site", "site.toml", "-o", "scripts"), `backend "memory" starts attempts without scripts`)
	scalebench(0, "submit", "study.toml", "--site", "site.toml", "--wait", "--interval", "1s")
	has(scalebench(0, "status", "s"), "4 done")
	// 32 samples in a quarter of a second are 128/s for each worker.
	has(scalebench(0, "scaling", "s", "-m", "throughput", "--format", "csv"), "native,1,2,throughput,samples/s,128,", "native,2,2,throughput,samples/s,256,")
	has(scalebench(0, "submit", "study.toml", "--site", "site.toml"), "nothing to submit")
}
