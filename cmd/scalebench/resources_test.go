package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/world"
)

// A user's program also gets exactly the swept number of CPUs.
func TestCPUsSwept(t *testing.T) {
	if world.CPUs() < 2 {
		t.Skip("one CPU cannot be swept")
	}
	l := &localRun{dir: t.TempDir()}
	for name, content := range map[string]string{"site.toml": fmt.Sprintf("worker = %q\n", buildWorker(t)), "study.toml": `
[study]
name = "cpus"
[command]
run = ["sh", "-c", "echo cpus: $(nproc)"]
[[extract]]
name = "cpus"
unit = "CPUs"
pattern = 'cpus: (?P<value>\d+)'
[sweep]
design = "one-factor"
framework = ["command"]
workers = [1]
cpus_per_worker = [2, 1]
`} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := l.scalebench(t, "run", "study.toml", "--site", "site.toml").CombinedOutput(); err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	for _, given := range []string{"1", "2"} {
		out, err := l.scalebench(t, "runs", "--study", "cpus", "--where", "resources.cpus_per_worker = "+given, "--measure", "cpus", "--format", "csv").Output()
		if err != nil {
			t.Fatalf("runs: %v\n%s", err, out)
		}
		rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
		if err != nil || len(rows) != 2 || rows[1][len(rows[1])-1] != given || rows[0][len(rows[0])-1] != "cpus" {
			t.Errorf("with %s CPUs: %v, %q", given, err, rows)
		}
	}
}

// A swept memory limit is also enforced on this machine, and running out of it is a result. If
// this user cannot limit memory, the study is refused.
func TestMemorySwept(t *testing.T) {
	l := &localRun{dir: t.TempDir()}
	for name, content := range map[string]string{"site.toml": fmt.Sprintf("worker = %q\n", buildWorker(t)), "study.toml": `
[study]
name = "memory"
repeats = 2
[command]
run = ["sh", "-c", "x=$(head -c 150000000 /dev/zero | tr '\\0' x); echo ${#x}"]
extract = ["time"]
[sweep]
design = "one-factor"
framework = ["command"]
workers = [1]
memory = ["2G", "1G", "64M"]
`} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	output, err := l.scalebench(t, "run", "study.toml", "--site", "site.toml").CombinedOutput()
	out := string(output)
	if strings.Contains(out, "cannot limit memory to resources.memory = 2G") {
		if !strings.Contains(out, "Submit the study to a cluster that limits memory") || strings.Contains(out, ": done") {
			t.Errorf("refused, and yet:\n%s", out)
		}
		t.Skip("this user can make no memory cgroup; the study was refused, as it must be")
	}
	once := ": out_of_memory: the memory limit, resources.memory; killed by SIGKILL"
	if err != nil || strings.Count(out, ": done\n") != 4 || strings.Count(out, once) != 1 || strings.Count(out, "64M is too little for this point: that is its result") != 1 {
		t.Fatalf("run: %v\n%s", err, out)
	}
	if output, err := l.scalebench(t, "run", "study.toml", "--site", "site.toml").CombinedOutput(); err != nil || !strings.Contains(string(output), "or its point ran out of memory, which counts as one; nothing to run") {
		t.Errorf("run again: %v\n%s", err, output)
	}
	output, err = l.scalebench(t, "advise", "memory", "--spec").CombinedOutput()
	exit := (*exec.ExitError)(nil) // 2 repeats are too few for an answer
	if out := string(output); !errors.As(err, &exit) || exit.ExitCode() != exitUndecided || !strings.Contains(out, "memory=64 MiB is too little.") || !strings.Contains(out, "out of memory") || !strings.Contains(out, "Base: memory=2 GiB") {
		t.Errorf("advise --spec: %v\n%s", err, out)
	}
}
