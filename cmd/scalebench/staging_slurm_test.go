//go:build slurm

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/slurm/slurmtest"
)

// shownStaging is the part about staging of `show --format json` for one run.
type shownStaging struct {
	Staging []struct {
		Node         int
		Host, Item   string
		Source, Path string
		Seconds      float64
		Bytes        int64
		Reused       bool
	}
	Epochs []struct{ Loss float64 }
}

// TestSlurmStaging runs 2 ranks on each of 2 nodes with data and a Python
// environment on the nodes' own disks, which here are folders by the node's
// name.
func TestSlurmStaging(t *testing.T) {
	t.Parallel()
	b := newBench(t, startCluster(t, slurmtest.Options{}))
	for i := range 4 {
		if err := os.MkdirAll(filepath.Join(b.dir, "local", fmt.Sprintf("node%d", i+1)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.must(0, nil, "data", "synth", "data", "--train", "256", "--test", "64")
	site := "[stage]\ndir = \"" + b.dir + "/local/$SLURMD_NODENAME\"\n"
	b.write("kept.toml", site+"keep = true\n")
	b.write("job.toml", site)
	study := func(name, rest string) {
		b.write(name+".study.toml", fmt.Sprintf("[study]\nname = %q\n", name)+rest+`
[resources]
time = "1h"
workers_per_node = 2
[sweep]
workers = [4]
`)
	}
	training := `
[workload]
model = "mlp"
batch = 8
epochs = 1
warmup_epochs = 0
learning_rate = 0.01
[data]
path = "data"
stage = true
`
	// left waits until this number of items is on the nodes' disks: a run is over once
	// its end is recorded, and its job removes what it staged after that.
	left := func(want int, when string) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			items, err := filepath.Glob(filepath.Join(b.dir, "local", "node*", "scalebench-*", "*", "complete.json"))
			if err != nil {
				t.Fatal(err)
			}
			if len(items) == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v are there, want %d", when, items, want)
			}
		}
	}
	// show submits the study and returns what was staged for it, once on each
	// of two nodes.
	show := func(name, site, item string) (s shownStaging) {
		t.Helper()
		b.must(0, nil, "submit", name+".study.toml", "--site", site, "--wait", "--interval", "1s")
		b.must(0, &s, "show", name+"/", "--format", "json")
		if len(s.Staging) != 2 {
			t.Fatalf("%s: staged %+v, want once on each of 2 nodes", name, s.Staging)
		}
		for i, g := range s.Staging {
			if g.Node != i || g.Item != item || g.Seconds <= 0 || g.Bytes == 0 || !strings.HasPrefix(g.Path, filepath.Join(b.dir, "local", g.Host)+"/") {
				t.Errorf("%s: staged %+v; want %s on the node's own disk, with bytes and time", name, g, item)
			}
		}
		if s.Staging[0].Host == s.Staging[1].Host {
			t.Errorf("%s: both on %s", name, s.Staging[0].Host)
		}
		return s
	}

	study("goes", training)
	first := show("goes", "job.toml", "data")
	left(0, "after the job")
	study("stays", training)
	if again := show("stays", "kept.toml", "data"); again.Staging[0].Reused || again.Staging[1].Reused {
		t.Errorf("used what an earlier job had removed: %+v", again.Staging)
	}
	left(2, "kept, one on each of 2 nodes")
	// The source's content is overwritten without changing its size and time, so that runs which
	// read the copies are not affected.
	batch := filepath.Join(b.dir, "data", "data_batch_1.bin")
	info, err := os.Stat(batch)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(batch, make([]byte, info.Size()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(batch, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	study("reuses", training)
	third := show("reuses", "kept.toml", "data")
	for _, g := range third.Staging {
		if !g.Reused {
			t.Errorf("%s staged it again: %+v", g.Host, g)
		}
	}
	study("spoilt", training)
	fourth := show("spoilt", "job.toml", "data")
	if a, b, c := first.Epochs[0].Loss, third.Epochs[0].Loss, fourth.Epochs[0].Loss; math.Abs(a-b) > 1e-6 || math.Abs(a-c) < 1e-3 {
		t.Errorf("loss %g, of the same data kept from before %g, and %g of the source as it is now: the ranks did not read what was staged", a, b, c)
	}
	t.Logf("data: %.0f and %.0f ms, kept from before %.0f and %.0f ms", 1e3*first.Staging[0].Seconds, 1e3*first.Staging[1].Seconds,
		1e3*third.Staging[0].Seconds, 1e3*third.Staging[1].Seconds)

	// Within one allocation, the second run uses the files that the first one staged, and the job
	// removes them at its end.
	study("shares", "[policy]\npacking = \"allocation\"\n"+training)
	text, err := os.ReadFile(filepath.Join(b.dir, "shares.study.toml"))
	if err != nil {
		t.Fatal(err)
	}
	b.write("shares.study.toml", strings.Replace(string(text), "workers = [4]", "workers = [2, 4]", 1))
	b.must(0, nil, "submit", "shares.study.toml", "--site", "job.toml", "--wait", "--interval", "1s")
	for workers, nodes := range map[int]int{4: 2, 2: 1} {
		var s shownStaging
		b.must(0, &s, "show", fmt.Sprintf("shares/native-w%d", workers), "--format", "json")
		if len(s.Staging) != nodes || s.Staging[0].Reused != (workers == 2) {
			t.Errorf("%d workers: staged %+v, want on %d nodes, and reused by the second run", workers, s.Staging, nodes)
		}
	}
	left(2, "after the allocation, the kept ones")

	// The venv contains an additional module; the program prints its location.
	venv := filepath.Join(b.dir, "env")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Fatalf("python3 -m venv: %v: %s", err, out)
	}
	libraries, err := filepath.Glob(filepath.Join(venv, "lib", "python3*", "site-packages"))
	if err != nil || len(libraries) != 1 {
		t.Fatal(libraries, err)
	}
	if err := os.WriteFile(filepath.Join(libraries[0], "installed.py"), []byte("import sys\nplace = sys.prefix\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-czf", filepath.Join(b.dir, "env.tar.gz"), "-C", venv, ".").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	if err := os.RemoveAll(venv); err != nil {
		t.Fatal(err)
	}
	b.write("python.toml", site+"python = \"env.tar.gz\"\n")
	b.write("program.py", "import installed\nimport scalebench\nfor _ in range(20):\n    scalebench.step(samples=1)\nprint('place', installed.place)\n")
	study("python", "[command]\nrun = [\"{python}\", \"program.py\"]\n")
	text, err = os.ReadFile(filepath.Join(b.dir, "python.study.toml"))
	if err != nil {
		t.Fatal(err)
	}
	b.write("python.study.toml", string(text)+"framework = [\"command\"]\n")
	python := show("python", "python.toml", "python")
	logs, err := filepath.Glob(filepath.Join(b.dir, "runs", "python", "*", "rank-*.log"))
	if err != nil || len(logs) != 4 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil || !strings.Contains(string(text), "place "+filepath.Join(b.dir, "local")) {
			t.Errorf("%s (%v):\n%s", log, err, text)
		}
	}
	t.Logf("python: %.0f and %.0f ms", 1e3*python.Staging[0].Seconds, 1e3*python.Staging[1].Seconds)

	// A disk that is too small ends the job before it trains, and says so.
	large := filepath.Join(b.dir, "data", "large.bin")
	if err := errors.Join(os.WriteFile(large, nil, 0o644), os.Truncate(large, 1<<42)); err != nil { // sparse
		t.Fatal(err)
	}
	study("large", training)
	_, complaint, code := b.run("submit", "large.study.toml", "--site", "job.toml", "--wait", "--interval", "1s")
	if code != 3 || !strings.Contains(complaint, "takes 4 TiB or more, and") || !strings.Contains(complaint, "stage.dir") {
		t.Errorf("exit code %d:\n%s", code, complaint)
	}
}
