package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Memory that is swept is limited on this machine, too, and that it ran out is a
// result; where this user can limit none, the study is refused.
func TestMemorySwept(t *testing.T) {
	l := &localRun{dir: t.TempDir()}
	for name, content := range map[string]string{"site.toml": fmt.Sprintf("worker = %q\n", buildWorker(t)), "study.toml": `
[study]
name = "memory"
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
	if err == nil || strings.Count(out, ": done\n") != 2 || strings.Count(out, ": out_of_memory: the memory limit, resources.memory; killed by SIGKILL") != 1 {
		t.Fatalf("run: %v\n%s", err, out)
	}
	output, err = l.scalebench(t, "advise", "memory", "--spec").CombinedOutput()
	if out := string(output); err != nil || !strings.Contains(out, "memory=64 MiB is too little.") || !strings.Contains(out, "out of memory") || !strings.Contains(out, "Base: memory=2 GiB") {
		t.Errorf("advise --spec: %v\n%s", err, out)
	}
}
